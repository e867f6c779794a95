"""The batches of Kafka's segments, appended one by one through our log: the same files, byte for byte."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strandline.config import Settings
from strandline.config.topic import TopicConfig
from strandline.log import AppendOrigin
from strandline.model import TopicPartition
from strandline.records.batch import BatchHeader, iter_headers, stamp
from strandline.testing.clock import VirtualClock
from tests.golden import read_json
from tests.log.harness import LogHarness

RUN_TIME = 1_794_771_100_000

# Topics whose segments are all there: nothing was compacted, deleted or expired.
AS_FOLLOWER = [
    "fx-codecs-0", "fx-codecs-1", "fx-codecs-2", "fx-epochs-0", "fx-epochs-1", "fx-idempotent-0", "fx-idempotent-1",
    "fx-logappend-0", "fx-logappend-1", "fx-onemb-0", "fx-preallocate-0", "fx-pyclients-0", "fx-pyclients-1",
    "fx-pyclients-2", "fx-recompress-0", "fx-txn-0", "fx-txn-1", "fx-txn-2", "fx-txn-open-0", "__transaction_state-1",
    "__consumer_offsets-0", "__share_group_state-0",
]  # fmt: skip
# Without those in which the broker itself chose timestamps or codecs.
AS_LEADER = [name for name in AS_FOLLOWER if name.startswith("fx-") and name[3:6] not in ("log", "rec")]


def partition_of(name: str) -> TopicPartition:
    topic, _, partition = name.rpartition("-")
    return TopicPartition(topic, int(partition))


def topic_config(kafka_classic: Path, topic: str) -> TopicConfig:
    overrides: dict[str, str] = read_json(kafka_classic / "expected/classic/topics.json")[topic]["configs"]
    return Settings.from_properties({}).topic_config(overrides)


def golden_batches(directory: Path) -> Iterator[tuple[BatchHeader, memoryview]]:
    for path in sorted(directory.glob("*.log")):
        data = bytearray(path.read_bytes())
        for position, header in iter_headers(data):
            yield header, memoryview(data)[position : position + header.size]


def harness_for(kafka_classic: Path, name: str, root: Path) -> LogHarness:
    partition = partition_of(name)
    config = topic_config(kafka_classic, partition.topic)
    harness = LogHarness(root, config, VirtualClock(RUN_TIME), partition)
    harness.create()
    return harness


def assert_same_files(directory: Path, golden: Path) -> None:
    compared = []
    for path in sorted(golden.iterdir()):
        if path.suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot"):
            ours = directory / path.name
            if path.suffix == ".snapshot" and not ours.exists() and not (golden / f"{path.stem}.log").exists():
                continue  # of an earlier stop of Kafka at that offset
            assert ours.read_bytes() == path.read_bytes(), path.name
            compared.append(path.name)
    ours_only = {path.name for path in directory.iterdir() if path.suffix == ".log"} - set(compared)
    assert not ours_only


@pytest.mark.parametrize("name", AS_FOLLOWER)
def test_a_follower_writes_the_same_files(kafka_classic: Path, tmp_path: Path, name: str) -> None:
    harness = harness_for(kafka_classic, name, tmp_path)
    epoch = 0
    for header, batch in golden_batches(kafka_classic / "classic" / name):
        if header.leader_epoch != epoch:
            harness.reopen()  # Kafka was restarted here; its count of bytes between index entries began anew
            epoch = header.leader_epoch
        harness.log.append_as_follower(batch, leader_epoch=epoch)
        harness.log.update_high_watermark(harness.log.log_end_offset)
    harness.log.close()
    assert_same_files(harness.directory, kafka_classic / "classic" / name)


@pytest.mark.parametrize("name", AS_LEADER)
def test_a_leader_writes_the_same_files(kafka_classic: Path, tmp_path: Path, name: str) -> None:
    harness = harness_for(kafka_classic, name, tmp_path)
    epoch = 0
    for header, batch in golden_batches(kafka_classic / "classic" / name):
        if header.leader_epoch != epoch:
            harness.reopen()
            epoch = header.leader_epoch
        stamp(batch, 0, 0, -1)  # as the producer sent it
        origin = AppendOrigin.COORDINATOR if header.is_control else AppendOrigin.CLIENT
        info = harness.append(batch, epoch=epoch, origin=origin)
        assert (info.first_offset, info.last_offset) == (header.base_offset, header.last_offset)
    harness.log.close()
    assert_same_files(harness.directory, kafka_classic / "classic" / name)


def test_the_same_batches_through_pending_appends_make_the_same_files(kafka_classic: Path, tmp_path: Path) -> None:
    """Rolling happens while writes are under way; what ends up on disk does not depend on it."""
    name = "fx-txn-1"
    harness = harness_for(kafka_classic, name, tmp_path)
    pending: list[Any] = []
    epoch = 0
    for header, batch in golden_batches(kafka_classic / "classic" / name):
        if header.leader_epoch != epoch or len(pending) == 7:
            for append in reversed(pending):
                append.write()
            for append in pending:
                harness.log.finish_append(append)
            harness.log.update_high_watermark(harness.log.log_end_offset)
            pending.clear()
        if header.leader_epoch != epoch:
            harness.reopen()
            epoch = header.leader_epoch
        stamp(batch, 0, 0, -1)
        origin = AppendOrigin.COORDINATOR if header.is_control else AppendOrigin.CLIENT
        pending.append(harness.log.begin_append(batch, leader_epoch=epoch, origin=origin))
    for append in pending:
        append.write()
        harness.log.finish_append(append)
    harness.log.close()
    assert_same_files(harness.directory, kafka_classic / "classic" / name)


def test_preallocated_segments_are_full_size_until_they_are_closed(kafka_classic: Path, tmp_path: Path) -> None:
    harness = harness_for(kafka_classic, "fx-preallocate-0", tmp_path)
    assert dataclasses.asdict(harness.config)["preallocate"] is True
    path = harness.directory / "00000000000000000000.log"
    assert path.stat().st_size == harness.config.effective_segment_bytes
    assert harness.log.size == 0
    harness.log.close()
    assert path.stat().st_size == 0
