"""A tiered topic that Kafka wrote: through our reader clients see what Kafka's consumers saw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strandline.remote.reader import RemoteReaderLimits
from tests.golden import read_json
from tests.remote.reader.consuming import COMMITTED, UNCOMMITTED, Consumer, id_of
from tests.remote.reader.golden_world import open_golden


def offsets_of(ranges: list[list[int]]) -> list[int]:
    return [offset for first, last in ranges for offset in range(first, last + 1)]


@pytest.mark.parametrize("has_files", [True, False], ids=["files", "chunks"])
@pytest.mark.parametrize("max_bytes", [1, 700, 1 << 20])
async def test_every_consumer_sees_what_kafkas_saw(
    kafka_tiered: Path, tmp_path: Path, *, has_files: bool, max_bytes: int
) -> None:
    expected = read_json(kafka_tiered / "expected/tiered/visible_offsets.json")
    async with open_golden(kafka_tiered, tmp_path, has_files=has_files) as world:
        remote_answers = 0
        for name, log in world.logs.items():
            for level, isolation in (("read_uncommitted", UNCOMMITTED), ("read_committed", COMMITTED)):
                consumer = Consumer(world.reader, log, isolation, max_bytes)
                seen = await consumer.visible(expected[name]["start"])
                assert seen == offsets_of(expected[name][level]["offsets"]), (name, level)
                remote_answers += consumer.remote_answers
        assert remote_answers > 50
        status = world.reader.status()
        assert sum(counted.errors for counted in status.topics.values()) == 0


@pytest.mark.parametrize("has_files", [True, False], ids=["files", "chunks"])
async def test_reading_may_begin_at_every_offset(kafka_tiered: Path, tmp_path: Path, *, has_files: bool) -> None:
    expected = read_json(kafka_tiered / "expected/tiered/visible_offsets.json")
    async with open_golden(kafka_tiered, tmp_path, has_files=has_files) as world:
        for name in ("fx-tiered-0", "fx-tiered-txn-0", "fx-tiered-deleterecords-0"):
            log = world.logs[name]
            wanted = offsets_of(expected[name]["read_committed"]["offsets"])
            for start in range(expected[name]["start"], log.local_log_start_offset, 7):
                consumer = Consumer(world.reader, log, COMMITTED, 5000)
                assert await consumer.visible(start) == [offset for offset in wanted if offset >= start]


async def test_without_memory_to_keep_anything_everything_is_read_all_the_same(
    kafka_tiered: Path, tmp_path: Path
) -> None:
    expected = read_json(kafka_tiered / "expected/tiered/visible_offsets.json")
    limits = RemoteReaderLimits(cache_max_bytes=0, parallel_reads=1)
    async with open_golden(kafka_tiered, tmp_path, has_files=False, limits=limits) as world:
        consumer = Consumer(world.reader, world.logs["fx-tiered-0"], UNCOMMITTED, 1000)
        assert await consumer.visible(0) == offsets_of(expected["fx-tiered-0"]["read_uncommitted"]["offsets"])
        assert world.reader.status().cache_bytes == 0


@pytest.mark.parametrize("has_files", [True, False], ids=["files", "chunks"])
async def test_timestamps_lead_to_the_offsets_that_kafka_finds(
    kafka_tiered: Path, tmp_path: Path, *, has_files: bool
) -> None:
    expected: dict[str, Any] = read_json(kafka_tiered / "expected/tiered/list_offsets.json")
    found_remote = 0
    async with open_golden(kafka_tiered, tmp_path, has_files=has_files) as world:
        for name, log in world.logs.items():
            for text, answer in expected[name]["read_uncommitted"].items():
                if " " in text:
                    continue  # a special timestamp
                timestamp = int(text)
                found = await world.reader.offset_by_timestamp(id_of(log), log, timestamp) if log.is_remote else None
                found_remote += found is not None
                found = found or log.offset_by_timestamp(timestamp)
                assert (-1 if found is None else found.offset) == answer["offset"], (name, timestamp)
                if found is not None:
                    assert (found.timestamp, found.leader_epoch) == (answer["timestamp"], answer["leader_epoch"])
    assert found_remote > 20
