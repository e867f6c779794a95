"""From properties to settings: what is taken, what is refused, and which of several values wins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.config import (
    AdminSettings,
    ClusterSettings,
    GroupSettings,
    LogSettings,
    NetworkSettings,
    ReplicationSettings,
    Settings,
    TopicConfig,
    TransactionSettings,
)
from strandline.config.declare import Declaration, Value
from strandline.config.rules import (
    DYNAMIC_NAMES,
    check_tiering_change,
    validate_broker_overrides,
    validate_topic_overrides,
)
from strandline.config.settings import AREAS, BROKER_DECLARATIONS
from strandline.config.topic import TOPIC_DECLARATIONS
from strandline.errors import InvalidConfig, InvalidRequest
from tests.config.refusals import refusal_of
from tests.config.strategies import legal_values

HOUR = 3_600_000
KAFKA_FILE = {
    "process.roles": "broker,controller",
    "node.id": "7",
    "controller.quorum.voters": "7@localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "advertised.listeners": "PLAINTEXT://localhost:9092",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "num.network.threads": "3",
    "log.dirs": "/var/one,/var/two",
    "log.retention.hours": "24",
}


def _with_values(declared: Mapping[str, Declaration]) -> st.SearchStrategy[tuple[str, Value]]:
    names = st.sampled_from(sorted(declared))
    return names.flatmap(lambda name: st.tuples(st.just(name), legal_values(declared[name])))


def test_no_property_at_all_gives_a_broker_that_runs() -> None:
    settings = Settings.from_properties({})
    assert settings.log == LogSettings()
    assert settings.network == NetworkSettings()
    assert settings.groups == GroupSettings()
    assert settings.transactions == TransactionSettings()
    assert settings.cluster == ClusterSettings()
    assert settings.replication == ReplicationSettings()
    assert settings.admin == AdminSettings()
    assert settings.topic_config({}) == TopicConfig()
    assert settings.log.log_dirs == ("strandline-data/logs",)
    assert settings.cluster.strandline_metadata_url == "sqlite:///strandline-data/metadata.db"


def test_a_file_made_for_kafka_is_taken() -> None:
    settings = Settings.from_properties(KAFKA_FILE)
    assert settings.cluster.node_id == 7
    assert [str(endpoint) for endpoint in settings.network.endpoints] == ["PLAINTEXT://:9092"]
    assert settings.log.log_dirs == ("/var/one", "/var/two")
    assert list(settings.ignored) == ["controller.quorum.voters"]


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"log.segment.byts": "1"}, "log.segment.byts is not a setting of the broker; did you mean log.segment.bytes?"),
        ({"segment.bytes": "1"}, "did you mean log.segment.bytes?"),
        ({"xyzzy": "1"}, "xyzzy is not a setting of the broker."),
        ({"log.segment.bytes": "12"}, "log.segment.bytes must be a whole number from 1048576 to 2147483647"),
        ({"compression.gzip.level": "0"}, "compression.gzip.level must be a whole number from 1 to 9, or -1"),
        ({"compression.type": "zip"}, "must be one of uncompressed, zstd, lz4, snappy, gzip, producer, but is 'zip'"),
        ({"log.cleanup.policy": "delete,delete"}, "log.cleanup.policy must be a list without repetitions"),
        ({"auto.create.topics.enable": "yes"}, "auto.create.topics.enable must be true or false, but is 'yes'"),
        ({"log.dirs": ""}, "log.dirs must be a list of one or more"),
        ({"process.roles": "controller"}, "process.roles must contain broker"),
        ({"broker.id": "1"}, "broker.id is called node.id"),
        ({"ssl.keystore.location": "x"}, "ssl.keystore.location cannot be set: TLS is not available"),
        ({"remote.log.manager.task.retry.jitter": "0.6"}, "must be a number from 0.0 to 0.5, but is '0.6'"),
        ({"remote.log.reader.thread": "1"}, "did you mean remote.log.reader.threads?"),
        (
            {"rsm.config.urll": "file://x"},
            "rsm.config.urll is not a setting of the broker; did you mean rsm.config.url",
        ),
        ({"my.urll": "x", "remote.log.storage.manager.impl.prefix": "my."}, "did you mean my.url?"),
        ({"rlmm.config.remote.log.metadata.topic.num.partitions": "0"}, "must be a whole number from 1 to 2147483647"),
        (
            {"remote.log.manager.task.retry.backoff.ms": "9", "remote.log.manager.task.retry.backoff.max.ms": "8"},
            "must not be greater than remote.log.manager.task.retry.backoff.max.ms",
        ),
        (
            {
                "remote.log.index.file.cache.total.size.mb": "1",
                "remote.log.index.file.cache.total.size.bytes": "1048576",
            },
            "only one of them may be given",
        ),
        (
            {"diskless.storage.system.enable": "false", "log.diskless.enable": "true"},
            "log.diskless.enable cannot be true while diskless.storage.system.enable is false",
        ),
        ({"diskless.managed.rf.enable": "true"}, "diskless topics have one replica in this version"),
        ({"inkless.control.plane.class": "x"}, "the control plane is in the database of strandline.metadata.url"),
        ({"inkless.storage.backend.class": "x"}, "strandline.objects.url names the object store"),
        ({"inkless.produce.buffer.max.byte": "1"}, "did you mean inkless.produce.buffer.max.bytes?"),
        ({"inkless.produce.commit.interval.ms": "0"}, "must be a whole number from 1 to 2147483647"),
        ({"strandline.objects.url": "/var/objects"}, "strandline.objects.url must begin with one of file://, s3://"),
        ({"strandline.objects.url": "s3://key:secret@bucket"}, "must not hold credentials"),
        ({"inkless.object.key.prefix": "a/"}, "must neither begin nor end with a slash, but is 'a/'"),
        ({"inkless.storage.aws.access.key.id": "k"}, "must be set together or not at all"),
        (
            {"inkless.storage.s3.api.call.timeout": "5"},
            "must not be greater than inkless.storage.s3.api.call.timeout (5)",
        ),
        ({"broker.session.timeout.ms": "2000"}, "must be at least twice broker.heartbeat.interval.ms"),
        ({"group.min.session.timeout.ms": "2000000"}, "must not be less than group.min.session.timeout.ms"),
        ({"group.consumer.session.timeout.ms": "1"}, "from group.consumer.min.session.timeout.ms (45000)"),
        ({"replica.fetch.wait.max.ms": "60000"}, "must not be greater than replica.socket.timeout.ms (30000)"),
        ({"log.cleaner.max.compaction.lag.ms": "1", "log.cleaner.min.compaction.lag.ms": "2"}, "must not be greater"),
        ({"strandline.http.listen": "9644"}, "strandline.http.listen must be host:port"),
        ({"strandline.metadata.url": "mysql://x"}, "strandline.metadata.url must be sqlite:///path or postgresql://"),
        ({"log.retention.ms": "0"}, "log.retention.ms must be a whole number from 1 to 9223372036854775807, or -1"),
        ({"max.connections.per.ip.overrides": "host"}, "must be address:count pairs, but has 'host'"),
    ],
)
def test_a_bad_setting_is_refused_in_one_sentence(properties: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        Settings.from_properties(properties)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, 168 * HOUR),
        ({"log.retention.hours": "2"}, 2 * HOUR),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 3 * 60_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "5"}, 5),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "-1"}, -1),
        ({"log.retention.ms": "-1"}, -1),
    ],
)
def test_the_smallest_unit_of_retention_wins(properties: dict[str, str], expected: int) -> None:
    settings = Settings.from_properties(properties)
    assert settings.log.retention_ms == expected
    assert settings.topic_config({}).retention_ms == expected


def test_the_smallest_unit_of_rolling_and_flushing_wins() -> None:
    settings = Settings.from_properties({"log.roll.hours": "2", "log.roll.jitter.hours": "1"})
    assert (settings.log.roll_ms, settings.log.roll_jitter_ms) == (2 * HOUR, HOUR)
    settings = Settings.from_properties(
        {"log.roll.hours": "2", "log.roll.ms": "9", "log.roll.jitter.hours": "1", "log.roll.jitter.ms": "0"}
    )
    assert (settings.log.roll_ms, settings.log.roll_jitter_ms) == (9, 0)
    assert Settings.from_properties({"log.flush.scheduler.interval.ms": "7"}).topic_config({}).flush_ms == 7
    assert Settings.from_properties({"log.flush.interval.ms": "5"}).topic_config({}).flush_ms == 5


def test_log_dirs_wins_over_log_dir_and_both_over_the_data_directory() -> None:
    assert Settings.from_properties({"strandline.data.dir": "/d"}).log.log_dirs == ("/d/logs",)
    assert Settings.from_properties({"strandline.data.dir": "/d", "log.dir": "/l"}).log.log_dirs == ("/l",)
    assert Settings.from_properties({"log.dir": "/l", "log.dirs": "/a, /b"}).log.log_dirs == ("/a", "/b")
    url = Settings.from_properties({"strandline.data.dir": "/d"}).cluster.strandline_metadata_url
    assert url == "sqlite:////d/metadata.db"


def test_topic_overrides_win_over_the_broker_and_dynamic_settings_over_the_file() -> None:
    static = Settings.from_properties({"log.segment.bytes": "2000000"})
    default = static.with_dynamic({"log.segment.bytes": "3000000"}, {})
    own = static.with_dynamic({"log.segment.bytes": "3000000"}, {"log.segment.bytes": "4000000"})
    assert [s.topic_config({}).segment_bytes for s in (static, default, own)] == [2000000, 3000000, 4000000]
    assert own.topic_config({"segment.bytes": "5000000"}).segment_bytes == 5000000
    assert own.with_dynamic({}, {}).topic_config({}).segment_bytes == 2000000


def test_topics_with_equal_overrides_share_one_value_but_not_across_settings() -> None:
    settings = Settings.from_properties({})
    assert settings.topic_config({"retention.ms": "1"}) is settings.topic_config({"retention.ms": "1"})
    changed = settings.with_dynamic({"log.retention.ms": "9"}, {})
    assert (settings.topic_config({}).retention_ms, changed.topic_config({}).retention_ms) == (168 * HOUR, 9)


def test_a_stored_dynamic_value_that_is_not_legal_any_more_is_left_out_and_told() -> None:
    settings = Settings.from_properties({}).with_dynamic({"log.segment.bytes": "1", "gone": "x"}, {"log.roll.ms": "5"})
    assert settings.log.log_segment_bytes == 1024**3
    assert settings.log.roll_ms == 5
    assert len(settings.rejected) == 2


@given(_with_values({name: BROKER_DECLARATIONS[name] for name in DYNAMIC_NAMES}))
def test_every_legal_dynamic_value_comes_into_force_or_is_refused(pair: tuple[str, Value]) -> None:
    name, value = pair
    text = BROKER_DECLARATIONS[name].text_of(value) or ""
    settings = Settings.from_properties({})
    refusal = refusal_of(lambda: validate_broker_overrides({name: text}, settings, is_cluster_default=False))
    if refusal is not None:
        assert name in refusal
    else:
        assert settings.with_dynamic({}, {name: text}).value(name) == value


@pytest.mark.parametrize(
    ("overrides", "is_cluster_default", "sentence"),
    [
        ({"log.dirs": "/x"}, False, "log.dirs cannot be changed while the broker runs"),
        ({"nonsense": "1"}, True, "nonsense is not a setting of the broker"),
        ({"log.segment.bytes": "1"}, True, "log.segment.bytes must be a whole number from 1048576"),
        ({"sasl.kerberos.min.time.before.relogin": "1"}, True, "belongs to one broker"),
        ({"log.cleaner.min.compaction.lag.ms": "5", "log.cleaner.max.compaction.lag.ms": "4"}, True, "greater than"),
    ],
)
def test_a_bad_dynamic_setting_is_refused(overrides: dict[str, str], is_cluster_default: bool, sentence: str) -> None:
    with pytest.raises(InvalidRequest, match=sentence):
        validate_broker_overrides(overrides, Settings.from_properties({}), is_cluster_default=is_cluster_default)


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"segment.byte": "1"}, "segment.byte is not a topic setting; did you mean segment.bytes?"),
        ({"segment.bytes": "100"}, "segment.bytes must be a whole number from 1048576 to 2147483647"),
        ({"retention.ms": "-2"}, "retention.ms must be a whole number from -1 to"),
        (
            {"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"},
            "must not be greater than max.compaction.lag.ms",
        ),
        ({"cleanup.policy": "shred"}, "cleanup.policy must be a list without repetitions, out of compact, delete"),
        ({"leader.replication.throttled.replicas": "0-1"}, r"must be \*, or pairs of partition:broker"),
        ({"follower.replication.throttled.replicas": "*,0:1"}, r"must be \*, or pairs of partition:broker"),
        ({"remote.storage.enable": "true"}, "while remote.log.storage.system.enable is false"),
        ({"diskless.enable": "perhaps"}, "diskless.enable must be true or false"),
        ({"diskless.enable": "true", "cleanup.policy": "compact"}, "A diskless topic cannot be compacted"),
        ({"diskless.enable": "true", "cleanup.policy": "delete,compact"}, "cleanup.policy must be delete with"),
        (
            {"diskless.enable": "true", "remote.storage.enable": "true"},
            "diskless.enable and remote.storage.enable cannot both be true",
        ),
    ],
)
def test_a_bad_topic_override_is_refused(overrides: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidConfig, match=sentence):
        validate_topic_overrides(overrides, Settings.from_properties({}))


def test_a_topic_that_exists_may_be_both_diskless_and_tiered() -> None:
    both = {"diskless.enable": "true", "remote.storage.enable": "true"}
    with pytest.raises(InvalidConfig, match="cannot both be true for a new topic"):
        validate_topic_overrides(both, TIERING)
    validate_topic_overrides(both, TIERING, may_be_switched=True)


TIERING = Settings.from_properties({"remote.log.storage.system.enable": "true"})


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"cleanup.policy": "compact"}, "A tiered topic cannot be compacted: cleanup.policy must be delete"),
        ({"cleanup.policy": "delete,compact"}, "A tiered topic cannot be compacted"),
        ({"local.retention.ms": "2", "retention.ms": "1"}, "must be from 0 to retention.ms (1), or -2, but is '2'"),
        ({"local.retention.ms": "-1", "retention.ms": "1"}, "must be from 0 to retention.ms (1), or -2, but is '-1'"),
        ({"local.retention.bytes": "2", "retention.bytes": "1"}, "local.retention.bytes must be from 0 to"),
        (
            {"remote.log.copy.disable": "true", "local.retention.ms": "1", "retention.ms": "2"},
            "With remote.log.copy.disable, local.retention.ms must be -2 or equal to retention.ms (2)",
        ),
    ],
)
def test_a_tiered_topic_with_settings_that_do_not_fit_is_refused(overrides: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidConfig, match=re.escape(sentence)):
        validate_topic_overrides({"remote.storage.enable": "true", **overrides}, TIERING)
    if "cleanup.policy" not in overrides:
        validate_topic_overrides(overrides, TIERING)  # without tiering they mean nothing, as in Kafka


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"cleanup.policy": ""},
        {"local.retention.ms": "1", "retention.ms": "1"},
        {"local.retention.ms": "-1", "retention.ms": "-1"},
        {"local.retention.bytes": "1", "retention.bytes": "-1"},
        {"remote.log.copy.disable": "true", "local.retention.ms": "2", "retention.ms": "2"},
    ],
)
def test_good_settings_of_a_tiered_topic_are_taken(overrides: dict[str, str]) -> None:
    validate_topic_overrides({"remote.storage.enable": "true", **overrides}, TIERING)


@pytest.mark.parametrize(
    ("before", "after", "is_allowed"),
    [
        ("false", {"remote.storage.enable": "true"}, True),
        ("true", {"remote.storage.enable": "false"}, False),
        ("true", {}, False),
        ("true", {"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"}, True),
        ("true", {"remote.storage.enable": "true", "remote.log.copy.disable": "true"}, True),
        ("false", {"remote.log.delete.on.disable": "true"}, True),
    ],
)
def test_tiering_ends_only_with_the_deletion_of_remote_segments(
    before: str, after: dict[str, str], is_allowed: bool
) -> None:
    old, new = TIERING.topic_config({"remote.storage.enable": before}), TIERING.topic_config(after)
    if is_allowed:
        check_tiering_change("a", old, new)
    else:
        with pytest.raises(InvalidConfig, match=r"set remote\.storage\.enable=false and remote\.log\.delete\.on\.dis"):
            check_tiering_change("a", old, new)


def test_settings_behind_a_prefix_are_handed_on_without_it() -> None:
    settings = Settings.from_properties(
        {
            "rsm.config.url": "s3://bucket/prefix",
            "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
            "rlmm.config.remote.log.metadata.producer.acks": "all",
        }
    )
    assert settings.rsm_config["url"] == "s3://bucket/prefix"
    assert settings.rsm_config["inkless.storage.s3.api.call.timeout"] == "30000"
    assert settings.rlmm_config["remote.log.metadata.topic.num.partitions"] == "3"
    assert settings.rlmm_config["remote.log.metadata.producer.acks"] == "all"
    assert settings.tiers.rlmm_config_remote_log_metadata_topic_num_partitions == 3


def test_another_prefix_can_be_chosen_for_settings_that_are_handed_on() -> None:
    settings = Settings.from_properties(
        {
            "remote.log.metadata.manager.impl.prefix": "described.",
            "described.remote.log.metadata.topic.num.partitions": "4",
        }
    )
    assert settings.rlmm_config["remote.log.metadata.topic.num.partitions"] == "4"
    assert settings.tiers.rlmm_config_remote_log_metadata_topic_num_partitions == 4


def test_a_storage_plugin_takes_any_setting() -> None:
    settings = Settings.from_properties(
        {"remote.log.storage.manager.class.name": "mine.Storage", "rsm.config.tape.drive": "7"}
    )
    assert settings.rsm_config["tape.drive"] == "7"


def test_remote_segments_are_below_the_data_directory_unless_they_have_their_own_place() -> None:
    assert Settings.from_properties({"strandline.data.dir": "/d"}).rsm_config["url"] == "file:///d/remote"
    assert Settings.from_properties({"rsm.config.url": "file:///x"}).rsm_config["url"] == "file:///x"
    in_a_bucket = Settings.from_properties({"rsm.config.inkless.storage.s3.bucket.name": "b"})
    assert in_a_bucket.rsm_config["url"] == "s3://b"


def test_the_size_of_the_index_cache_may_be_given_under_the_name_of_the_kip() -> None:
    assert Settings.from_properties({}).tiers.index_cache_max_bytes == 1024**3
    given = Settings.from_properties({"remote.log.index.file.cache.total.size.mb": "2"})
    assert given.tiers.index_cache_max_bytes == 2 * 1024**2


@given(_with_values(TOPIC_DECLARATIONS))
def test_every_legal_topic_value_comes_into_force_or_is_refused(pair: tuple[str, Value]) -> None:
    name, value = pair
    declaration = TOPIC_DECLARATIONS[name]
    overrides = {name: declaration.text_of(value) or ""}
    settings = Settings.from_properties({})
    refusal = refusal_of(lambda: validate_topic_overrides(overrides, settings))
    if refusal is not None:
        assert name in refusal
    else:
        assert getattr(settings.topic_config(overrides), declaration.attribute) == value


def test_good_topic_overrides_are_taken() -> None:
    overrides = {
        "cleanup.policy": "compact,delete",
        "leader.replication.throttled.replicas": "0:1,1:2",
        "follower.replication.throttled.replicas": "*",
        "local.retention.ms": "5",
        "internal.segment.bytes": "1024",
    }
    settings = Settings.from_properties({})
    validate_topic_overrides(overrides, settings)
    config = settings.topic_config(overrides)
    assert config.effective_segment_bytes == 1024
    assert config.is_compacted
    assert config.is_deleted_by_retention


def test_a_topic_cannot_be_diskless_where_the_broker_has_no_diskless_storage() -> None:
    settings = Settings.from_properties({"diskless.storage.system.enable": "false"})
    with pytest.raises(InvalidConfig, match=r"while diskless\.storage\.system\.enable is false"):
        validate_topic_overrides({"diskless.enable": "true"}, settings)


def test_the_broker_default_of_compaction_keeps_a_topic_from_being_diskless() -> None:
    settings = Settings.from_properties({"log.cleanup.policy": "compact"})
    with pytest.raises(InvalidConfig, match="cannot be compacted"):
        validate_topic_overrides({"diskless.enable": "true"}, settings)
    validate_topic_overrides({"diskless.enable": "true", "cleanup.policy": "delete"}, settings)


def test_a_topic_is_diskless_by_its_own_setting_alone() -> None:
    settings = Settings.from_properties({"log.diskless.enable": "true"})
    assert not settings.topic_config({}).diskless_enable
    assert settings.topic_config({"diskless.enable": "true"}).diskless_enable


@pytest.mark.parametrize(
    ("properties", "address"),
    [
        ({}, f"file://{Path.cwd()}/strandline-data/objects"),
        ({"strandline.data.dir": "/srv/data"}, "file:///srv/data/objects"),
        ({"strandline.objects.url": "file:///objects", "inkless.object.key.prefix": "a/b"}, "file:///objects/a/b"),
        ({"strandline.objects.url": "s3://bucket/one/", "inkless.object.key.prefix": "two"}, "s3://bucket/one/two"),
        ({"inkless.storage.s3.bucket.name": "bucket"}, "s3://bucket"),
        ({"inkless.storage.s3.bucket.name": "one", "strandline.objects.url": "s3://two"}, "s3://two"),
        ({"strandline.objects.url": "memory://"}, "memory://"),
        ({"strandline.objects.url": "memory://", "inkless.object.key.prefix": "a"}, "memory://"),
    ],
)
def test_objects_have_an_address(properties: dict[str, str], address: str) -> None:
    assert Settings.from_properties(properties).diskless.objects_address == address


def test_a_topic_setting_of_a_newer_version_does_not_stop_an_older_broker() -> None:
    assert Settings.from_properties({}).topic_config({"from.the.future": "1"}) == TopicConfig()


def test_every_setting_can_be_asked_for_by_name() -> None:
    settings = Settings.from_properties({})
    for name, declaration in BROKER_DECLARATIONS.items():
        assert settings.value(name) == declaration.default
    with pytest.raises(InvalidConfig, match=r"did you mean node\.id"):
        settings.value("node.ids")
    assert set(AREAS) == {
        "cluster",
        "network",
        "log",
        "replication",
        "groups",
        "share_groups",
        "sharing",
        "transactions",
        "diskless",
        "tiers",
        "tiering",
        "admin",
    }
