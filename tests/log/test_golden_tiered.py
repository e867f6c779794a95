"""The log directory of a tiered Kafka 4.3.1: we see in it what Kafka sees, and would copy what it copied."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strandline.clock import SystemChance
from strandline.config.log import LogSettings
from strandline.config.topic import TopicConfig
from strandline.errors import OffsetMovedToTieredStorage
from strandline.log import ClosedSegment, LogManager
from strandline.log.checkpoints import LOG_START_OFFSETS
from strandline.model import TopicPartition, uuid_to_text
from strandline.testing.clock import VirtualClock
from tests.golden import copy_of, read_json
from tests.log.harness import offsets_in

RUN_TIME = 1_794_771_100_000


def config_of(topics: Any, topic: str) -> TopicConfig:
    overrides = topics[topic]["configs"]
    return TopicConfig(
        cleanup_policy=(overrides.get("cleanup.policy", "delete"),),
        remote_storage_enable=overrides.get("remote.storage.enable") == "true",
        remote_log_copy_disable=overrides.get("remote.log.copy.disable") == "true",
        local_retention_bytes=int(overrides.get("local.retention.bytes", -2)),
        retention_bytes=int(overrides.get("retention.bytes", -1)),
        retention_ms=int(overrides.get("retention.ms", -1)),
    )


def managed(kafka_tiered: Path, directory: Path) -> LogManager:
    """The logs of `directory`, which is or was a copy of the golden one."""
    topics = read_json(kafka_tiered / "expected/tiered/topics.json")
    settings = LogSettings(log_dirs=(str(directory),))
    clock = VirtualClock(RUN_TIME)
    manager = LogManager(settings, node_id=1, clock=clock, chance=SystemChance(1), remote_enabled=True)
    manager.load(lambda topic: config_of(topics, topic))
    return manager


@pytest.fixture
def manager(kafka_tiered: Path, tmp_path: Path) -> Iterator[LogManager]:
    manager = managed(kafka_tiered, copy_of(kafka_tiered / "tiered/local", tmp_path / "local"))
    yield manager
    manager.shutdown()


@pytest.fixture
def list_offsets(kafka_tiered: Path) -> dict[str, Any]:
    found: dict[str, Any] = read_json(kafka_tiered / "expected/tiered/list_offsets.json")
    return {name: answers for name, answers in found.items() if name.startswith("fx-")}


def highest_remote(kafka_tiered: Path) -> dict[str, int]:
    highest: dict[str, int] = {}
    for segment in read_json(kafka_tiered / "expected/tiered/remote_segments.json"):
        name = f"{segment['topic']}-{segment['partition']}"
        highest[name] = max(highest.get(name, -1), segment["end_offset"])
    return highest


def test_the_log_starts_where_kafka_says_on_disk_and_in_all(manager: LogManager, list_offsets: dict[str, Any]) -> None:
    logs = {str(log.topic_partition): log for log in manager.all_logs()}
    assert len(list_offsets) == 11
    for name, answers in list_offsets.items():
        log, wanted = logs[name], answers["read_uncommitted"]
        assert log.is_remote == (name != "fx-tiered-never-0")
        for special, offset in (
            ("-2 earliest", log.log_start_offset),
            ("-4 earliest_local", log.local_log_start_offset),
        ):
            assert offset == wanted[special]["offset"], name
            assert log.epoch_for_offset(offset) == wanted[special]["leader_epoch"], name
        assert log.high_watermark == wanted["-1 latest"]["offset"]


def test_local_records_are_read_and_remote_ones_are_elsewhere(
    manager: LogManager, list_offsets: dict[str, Any]
) -> None:
    for name in list_offsets:
        log = next(log for log in manager.all_logs() if str(log.topic_partition) == name)
        assert offsets_in(log)[0] == log.segments.first.base_offset
        for offset in range(log.log_start_offset, log.local_log_start_offset):
            with pytest.raises(OffsetMovedToTieredStorage):
                log.read(offset, 1)


@pytest.mark.parametrize("is_checkpoint_lost", [False, True])
def test_a_restart_keeps_the_log_start(
    kafka_tiered: Path, tmp_path: Path, list_offsets: dict[str, Any], is_checkpoint_lost: bool
) -> None:
    """Also if only the leader epochs remember it."""
    local = copy_of(kafka_tiered / "tiered/local", tmp_path / "local")
    managed(kafka_tiered, local).shutdown()
    assert "fx-tiered-keep 0 0\n" in (local / LOG_START_OFFSETS).read_text()
    if is_checkpoint_lost:
        (local / LOG_START_OFFSETS).unlink()
    manager = managed(kafka_tiered, local)
    starts = {str(log.topic_partition): log.log_start_offset for log in manager.all_logs()}
    manager.shutdown()
    for name, answers in list_offsets.items():
        assert starts[name] == answers["read_uncommitted"]["-2 earliest"]["offset"], name


def test_what_we_would_copy_is_what_kafka_copied(manager: LogManager, kafka_tiered: Path) -> None:
    log = manager.get(TopicPartition("fx-tiered-keep", 0))
    assert log is not None
    assert log.topic_id is not None
    name = f"{log.topic_partition}-{uuid_to_text(log.topic_id)}"
    remote = kafka_tiered / "tiered/remote/kafka-tiered-storage" / name
    segments = log.remote.segments_to_copy(0)
    wanted = [
        segment
        for segment in read_json(kafka_tiered / "expected/tiered/remote_segments.json")
        if segment["topic"] == "fx-tiered-keep"
    ]
    assert [(s.base_offset, s.end_offset, s.max_timestamp, s.size) for s in segments] == [
        (w["base_offset"], w["end_offset"], w["max_timestamp"], w["files"]["log"]) for w in wanted
    ]
    for segment, description in zip(segments, wanted, strict=True):
        copied = f"{segment.base_offset:020d}-{description['segment_id']}"
        assert files_of(segment) == {
            suffix: (remote / f"{copied}.{suffix}").read_bytes() for suffix in description["files"]
        }
    assert segments[4].leader_epochs == {0: 168, 2: 180}
    assert segments[5].leader_epochs == {2: 210}


def files_of(segment: ClosedSegment) -> dict[str, bytes]:
    paths = {
        "log": segment.log,
        "index": segment.offset_index,
        "timeindex": segment.time_index,
        "snapshot": segment.producer_snapshot,
        "txnindex": segment.txn_index,
    }
    files = {suffix: path.read_bytes() for suffix, path in paths.items() if path is not None}
    return files | {"leader_epoch_checkpoint": segment.epoch_history}


def test_retention_deletes_nothing_before_it_knows_what_was_copied(manager: LogManager, kafka_tiered: Path) -> None:
    highest = highest_remote(kafka_tiered)
    for log in manager.all_logs():
        if log.is_remote:
            before = log.log_start_offset, log.local_log_start_offset
            assert log.retention.delete_old_segments(RUN_TIME) == 0
            log.remote.update_highest_offset(highest[str(log.topic_partition)])
            assert log.retention.delete_old_segments(RUN_TIME) == 0  # Kafka has done that already
            assert (log.log_start_offset, log.local_log_start_offset) == before
