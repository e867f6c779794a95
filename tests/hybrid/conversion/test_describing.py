"""What the pipeline learns of a cluster: enough to open its stores elsewhere, and no secrets."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from strandline.config import Settings
from strandline.config.settings import BROKER_DECLARATIONS
from strandline.controlplane.conversion.values import LogTieringProgress, TopicTiering
from strandline.controlplane.values import DisklessLog
from strandline.conversion_api.codec import decode, encode
from strandline.conversion_api.values import API_VERSION, ClusterDescription
from strandline.diskless.storage import object_options
from strandline.errors import InvalidRequest
from strandline.hybrid.conversion.describing import describe, statuses_of
from strandline.model import TopicIdPartition, TopicPartition

SECRETS = {
    "inkless.storage.aws.access.key.id": "AKIA",
    "inkless.storage.aws.secret.access.key": "hush",
    "inkless.storage.aws.session.token": "hush",
    "rsm.config.storage.aws.access.key.id": "AKIA",
    "rsm.config.storage.aws.secret.access.key": "hush",
    "rsm.config.inkless.storage.aws.session.token": "hush",
}
BUCKET = {
    "strandline.objects.url": "s3://bucket/wal",
    "inkless.object.key.prefix": "deep",
    "inkless.storage.s3.endpoint.url": "http://here:9000",
    "inkless.storage.s3.region": "eu-1",
    "inkless.storage.s3.api.call.timeout": "5000",
    "inkless.storage.s3.api.call.attempt.timeout": "400",
    "inkless.fetch.hedge.ttfb.threshold.ms": "70",
    "rsm.config.url": "s3://bucket/segments",
    "rsm.config.storage.s3.endpoint.url": "http://there:9000",
    "rsm.config.key.prefix": "x",
    "remote.log.storage.system.enable": "true",
}


def test_the_settings_open_the_same_stores_on_another_machine() -> None:
    here = Settings.from_properties(BUCKET)
    there = Settings.from_properties(describe(here, "c").store_settings)
    assert there.diskless.objects_address == here.diskless.objects_address == "s3://bucket/wal/deep"
    assert object_options(there.diskless) == object_options(here.diskless)
    assert there.tiers.remote_log_storage_system_enable
    assert there.rsm_config["url"] == "s3://bucket/segments"
    assert there.rsm_config["inkless.storage.s3.endpoint.url"] == "http://there:9000"
    assert there.rsm_config["key.prefix"] == "x"


def test_settings_under_a_prefix_of_their_own_go_under_the_usual_one() -> None:
    chosen = {"remote.log.storage.manager.impl.prefix": "storage.", "storage.url": "s3://elsewhere"}
    there = Settings.from_properties(describe(Settings.from_properties(chosen), "c").store_settings)
    assert there.rsm_config["url"] == "s3://elsewhere"


def test_directories_are_named_with_their_whole_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = Settings.from_properties(
        {"strandline.data.dir": "data", "remote.log.storage.manager.class.path": "plugins"}
    )
    found = describe(settings, "c").store_settings
    assert found["strandline.objects.url"] == f"file://{tmp_path}/data/objects"
    assert found["rsm.config.url"] == f"file://{tmp_path}/data/remote"
    assert found["remote.log.storage.manager.class.path"] == f"{tmp_path}/plugins"


def test_no_secret_leaves_the_broker() -> None:
    plugin = {"remote.log.storage.manager.class.name": "mine.Storage", "rsm.config.password": "hush"}
    for extra in ({}, plugin):
        found = describe(Settings.from_properties(BUCKET | SECRETS | extra), "c").store_settings
        assert not {"hush", "AKIA"} & set(found.values())
        assert not [name for name in found if BROKER_DECLARATIONS[name].is_sensitive]
        Settings.from_properties(found)  # and what is left fits together


def test_all_settings_of_the_pipeline_are_told_but_the_age_that_brokers_apply_themselves() -> None:
    names = [name for name in BROKER_DECLARATIONS if name.startswith("inkless.tiering.")]
    names.remove("inkless.tiering.default.local.retention.ms")
    values = {name: str(10_000 + number) for number, name in enumerate(names)}
    values["inkless.tiering.max.segment.bytes"] = "20000"
    told = encode(describe(Settings.from_properties(values), "c").pipeline)
    assert told == {
        name.removeprefix("inkless.tiering.").replace(".", "_"): int(value) for name, value in values.items()
    }


def test_the_description_survives_its_json() -> None:
    found = describe(Settings.from_properties(BUCKET | {"node.id": "3"}), "cluster")
    assert (found.broker_id, found.cluster_id, found.api_version) == (3, "cluster", API_VERSION)
    assert decode(ClusterDescription, encode(found)) == found


def test_objects_in_memory_cannot_be_converted() -> None:
    with pytest.raises(InvalidRequest, match=r"strandline\.objects\.url is memory://: .* Keep them in a directory"):
        describe(Settings.from_properties({"strandline.objects.url": "memory://"}), "c")


def progress_of(topic: str, partition: int, boundary: int, end: int, *, rows: int, paused: bool) -> LogTieringProgress:
    log = DisklessLog(
        partition=TopicIdPartition(UUID(int=len(topic)), TopicPartition(topic, partition)),
        log_start_offset=0,
        high_watermark=end,
        tiered_high_offset=boundary - 1,
        diskless_start_offset=boundary,
        byte_size=1000 * rows,
    )
    return LogTieringProgress(
        log=log,
        tiering=TopicTiering(is_paused=paused, triggered_at_ms=7),
        eligible_rows=rows,
        eligible_bytes=10 * rows,
        split_rows=2 * rows,
        split_files=rows,
    )


def test_a_topic_counts_all_its_partitions_and_shows_the_one_that_is_least_far() -> None:
    b, a1, a0 = (
        progress_of("b", 0, 0, 5, rows=1, paused=False),
        progress_of("a", 1, 10, 100, rows=2, paused=True),
        progress_of("a", 0, 30, 100, rows=3, paused=True),
    )
    first, second = statuses_of([b, a1, a0])
    assert (first.topic_name, second.topic_name) == ("a", "b")
    assert (first.tiered_high_offset, first.diskless_start_offset, first.high_watermark) == (9, 10, 100)
    assert (first.pending_batches_count, first.pending_split_files_count, first.eligible_bytes) == (5, 5, 50)
    assert (first.lag_bytes, first.pending_merge_batches_count) == (5000, 10)
    assert (first.is_paused, first.triggered_at_ms, second.is_paused) == (True, 7, False)
    assert [one.partition for one in first.partitions] == [0, 1]
    assert first.partitions[1].diskless_start_offset == 10
    assert statuses_of([]) == ()
