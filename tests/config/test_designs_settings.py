"""Every setting that KIP-405 and the designs of diskless topics name is taken, or refused with a reason."""

from __future__ import annotations

import re

import pytest

from strandline.config import Settings, TieringSettings, validate_topic_overrides
from strandline.config.declare import declarations_of
from strandline.config.rules import validate_broker_overrides
from strandline.errors import InvalidConfig
from tests.config.refusals import refusal_of

TIERING = declarations_of(TieringSettings)

# Names that brokers take and act by.
TAKEN = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": "strandline.remote.object_storage.ObjectRemoteStorage",
    "remote.log.storage.manager.class.path": "/plugins",
    "remote.log.storage.manager.impl.prefix": "storage.",
    "remote.log.metadata.manager.class.name": (
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager"
    ),
    "remote.log.metadata.manager.class.path": "/plugins",
    "remote.log.metadata.manager.impl.prefix": "metadata.",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "3",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "50",
    "rlmm.config.remote.log.metadata.topic.retention.ms": "-1",
    "remote.log.index.file.cache.total.size.mb": "1024",
    "remote.log.manager.task.interval.ms": "30000",
    "remote.log.manager.task.retry.backoff.ms": "500",
    "remote.log.manager.task.retry.backoff.max.ms": "30000",
    "remote.log.manager.task.retry.jitter": "0.2",
    "remote.log.reader.threads": "5",
    "remote.log.reader.max.pending.tasks": "100",
    "log.local.retention.ms": "-2",
    "log.local.retention.bytes": "-2",
    "log.retention.ms": "1000",
    "log.retention.bytes": "1000",
    "min.insync.replicas": "1",
    "unclean.leader.election.enable": "false",
    "log.diskless.enable": "true",
    "inkless.hybrid.read.enabled": "false",
    "inkless.migration.segment.wait.ms": "0",
    "inkless.migration.parallel.topics": "1",
    "inkless.tiering.splitter.interval.ms": "1",
    "inkless.tiering.splitter.max.files.per.run": "1",
    "inkless.tiering.splitter.claim.duration.ms": "1000",
    "inkless.tiering.merger.interval.ms": "1",
    "inkless.tiering.min.segment.bytes": "1",
    "inkless.tiering.max.segment.bytes": "2147483647",
    "inkless.tiering.max.batches.per.run": "1",
}

# Names that brokers take because files of real clusters have them, although they change nothing here.
WITHOUT_EFFECT = {
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "remote.log.manager.thread.pool.size": "4",
    "remote.partition.remover.task.interval.ms": "3600000",
    "rlmm.config.remote.partition.remover.task.interval.ms": "3600000",
    "rlmm.config.remote.log.metadata.common.client.security.protocol": "PLAINTEXT",
    "rlmm.config.remote.log.metadata.producer.batch.size": "100",
    "rlmm.config.remote.log.metadata.consumer.fetch.max.bytes": "100",
}

# Names that brokers refuse, with what the sentence has to say.
REFUSED = {
    "diskless.managed.rf.enabled": "diskless topics have one replica in this version",
    "diskless.allow.from.classic.enable": "a classic topic becomes diskless by its own diskless.enable",
    "inkless.consolidation.enable": "strandline tiering run converts diskless batches into tiered segments",
    "diskless.remote.storage.consolidation.enable": "by local.retention.ms of each topic and the settings inkless.",
    "diskless.migration.state": "is read-only",
    "diskless.enable": "is a setting of topics; on brokers, log.diskless.enable",
    "remote.storage.enable": "is a setting of topics; on brokers, remote.log.storage.system.enable",
    "remote.log.storage.bucket": "a setting of a plugin of tiered storage is rsm.config.remote.log.storage.bucket",
    "remote.log.metadata.topic.replication.factor": "is rlmm.config.remote.log.metadata.topic.replication.factor",
    "remote.log.metadata.topic.num.partitions": "is rlmm.config.remote.log.metadata.topic.num.partitions",
    "remote.log.metadata.topic.retention.ms": "is rlmm.config.remote.log.metadata.topic.retention.ms",
    "remote.log.metadata.common.client.retries": "is rlmm.config.remote.log.metadata.common.client.retries",
    "remote.log.metadata.producer.batch.size": "is rlmm.config.remote.log.metadata.producer.batch.size",
    "remote.log.metadata.consumer.retries": "is rlmm.config.remote.log.metadata.consumer.retries",
    "broker.id": "is called node.id",
}

# Settings of topics.
TAKEN_BY_TOPICS = {
    "diskless.enable": "true",
    "remote.storage.enable": "false",
    "local.retention.ms": "-2",
    "local.retention.bytes": "-2",
    "retention.ms": "1000",
    "retention.bytes": "1000",
    "segment.bytes": "1048576",
    "min.insync.replicas": "1",
    "cleanup.policy": "delete",
}


@pytest.mark.parametrize("name", TAKEN | WITHOUT_EFFECT)
def test_a_broker_takes_it(name: str) -> None:
    assert refusal_of(lambda: Settings.from_properties({name: (TAKEN | WITHOUT_EFFECT)[name]})) is None


def test_what_is_taken_and_ignored_is_listed_at_start() -> None:
    ignored = Settings.from_properties({"remote.partition.remover.task.interval.ms": "3600000"}).ignored
    assert ignored == {
        "remote.partition.remover.task.interval.ms": (
            "segments of deleted topics are deleted every remote.log.manager.task.interval.ms"
        )
    }


@pytest.mark.parametrize("name", REFUSED)
def test_a_broker_refuses_it_and_says_why(name: str) -> None:
    with pytest.raises(InvalidConfig, match=re.escape(REFUSED[name])):
        Settings.from_properties({name: "1"})


@pytest.mark.parametrize("name", TAKEN_BY_TOPICS)
def test_a_topic_takes_it(name: str) -> None:
    validate_topic_overrides({name: TAKEN_BY_TOPICS[name]}, Settings.from_properties({}))


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("inkless.hybrid.read.enabled", True),
        ("inkless.migration.segment.wait.ms", 30_000),
        ("inkless.migration.parallel.topics", 5),
    ],
)
def test_defaults_of_the_switch_are_those_of_the_design(name: str, default: object) -> None:
    assert Settings.from_properties({}).value(name) == default


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("inkless.tiering.splitter.interval.ms", 60_000),
        ("inkless.tiering.splitter.max.files.per.run", 10),
        ("inkless.tiering.splitter.claim.duration.ms", 300_000),
        ("inkless.tiering.merger.interval.ms", 300_000),
        ("inkless.tiering.min.segment.bytes", 1_048_576),
        ("inkless.tiering.max.segment.bytes", 1_073_741_824),
        ("inkless.tiering.max.batches.per.run", 1000),
    ],
)
def test_defaults_of_the_conversion_are_those_of_the_design(name: str, default: object) -> None:
    assert Settings.from_properties({}).value(name) == default


def test_every_setting_of_the_conversion_can_be_changed_for_all_brokers_while_they_run() -> None:
    wish = {name: declaration.text_of(declaration.default) or "" for name, declaration in TIERING.items()}
    validate_broker_overrides(wish, Settings.from_properties({}), is_cluster_default=True)
    changed = Settings.from_properties({}).with_dynamic({"inkless.tiering.max.batches.per.run": "7"}, {})
    assert changed.tiering.inkless_tiering_max_batches_per_run == 7


def test_the_smallest_segment_is_not_larger_than_the_largest() -> None:
    with pytest.raises(
        InvalidConfig, match=r"min\.segment\.bytes \(1048576\) must not be greater than inkless.* \(1000\)"
    ):
        Settings.from_properties({"inkless.tiering.max.segment.bytes": "1000"})


def test_at_least_one_topic_at_a_time_becomes_diskless() -> None:
    with pytest.raises(InvalidConfig, match=r"inkless\.migration\.parallel\.topics must be a whole number from 1 "):
        Settings.from_properties({"inkless.migration.parallel.topics": "0"})


def test_the_state_of_a_switch_cannot_be_set_on_a_topic() -> None:
    with pytest.raises(InvalidConfig, match=r"diskless\.migration\.state is read-only"):
        validate_topic_overrides({"diskless.migration.state": "HYBRID"}, Settings.from_properties({}))


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("remote.log.storage.manager.clas.name", "remote.log.storage.manager.class.name"),
        ("remote.log.metadata.manager.listenername", "remote.log.metadata.manager.listener.name"),
        ("inkless.tiering.spliter.interval.ms", "inkless.tiering.splitter.interval.ms"),
        ("inkless.tiering.segment.min.bytes", "inkless.tiering.min.segment.bytes"),
    ],
)
def test_a_slip_in_a_name_of_the_broker_is_still_corrected(typo: str, meant: str) -> None:
    with pytest.raises(InvalidConfig, match=re.escape(f"did you mean {meant}?")):
        Settings.from_properties({typo: "x"})
