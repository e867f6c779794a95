"""A remote store that Apache Kafka 4.3.1 wrote, read in place: we see in it what Kafka sees."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio

from strandline.clock import SystemChance, SystemClock, SystemIds
from strandline.records import crc_matches, iter_headers, read_records
from strandline.remote.indexes import RemoteIndexCache, open_index_cache
from strandline.remote.indexes.segment import RemoteIndexes
from strandline.remote.plugins import PluginContext, open_remote_storage
from strandline.remote.ports import RemoteResourceNotFound
from strandline.remote.storage import DeadlineStorage
from strandline.remote.values import IndexType
from tests.golden import copy_of, matches, read_json
from tests.golden import kafka_tiered as kafka_tiered
from tests.remote.segments import golden_metadata


def rows_of(kafka_tiered: Path) -> list[Any]:
    rows: list[Any] = read_json(kafka_tiered / "expected/tiered/remote_segments.json")
    return rows


def expected_of(kafka_tiered: Path, row: Any) -> Any:
    """What Kafka says about one segment: its indexes, batches and records."""
    name = f"{row['topic']}-{row['partition']}.json"
    segments = read_json(kafka_tiered / "expected/tiered/remote_records" / name)["segments"]
    return next(segment for segment in segments if segment["base_offset"] == row["base_offset"])


@pytest_asyncio.fixture
async def storage(kafka_tiered: Path, tmp_path: Path) -> AsyncIterator[DeadlineStorage]:
    """The store of Kafka, opened as ours."""
    remote = copy_of(kafka_tiered / "tiered/remote/kafka-tiered-storage", tmp_path / "remote")
    context = PluginContext(
        data_dir=tmp_path,
        log_dirs=(tmp_path / "logs",),
        node_id=1,
        cluster_id="some-cluster",
        clock=SystemClock(),
        ids=SystemIds(),
        chance=SystemChance(),
    )
    async with open_remote_storage({"url": f"file://{remote}"}, context) as storage:
        yield storage


@pytest_asyncio.fixture
async def cache(storage: DeadlineStorage, tmp_path: Path) -> AsyncIterator[RemoteIndexCache]:
    directory = tmp_path / "remote-log-index-cache"
    async with open_index_cache(directory, storage, max_bytes=1 << 20, clock=SystemClock(), ids=SystemIds()) as cache:
        yield cache


async def test_every_file_of_every_segment_is_there_and_no_other(storage: DeadlineStorage, kafka_tiered: Path) -> None:
    rows = rows_of(kafka_tiered)
    assert len(rows) == 59
    for row in rows:
        metadata = golden_metadata(row)
        found = {"log": len(await storage.fetch_log_segment(metadata, 0, metadata.segment_size_in_bytes))}
        for kind in IndexType:
            try:
                found[kind.value] = len(await storage.fetch_index(metadata, kind))
            except RemoteResourceNotFound:
                assert kind is IndexType.TRANSACTION
        assert found == row["files"]
        epochs = await storage.fetch_index(metadata, IndexType.LEADER_EPOCH)
        assert epochs.decode() == row["leader_epoch_checkpoint"]


async def test_every_batch_and_record_is_the_one_kafka_sees(storage: DeadlineStorage, kafka_tiered: Path) -> None:
    for row in rows_of(kafka_tiered):
        metadata, wanted = golden_metadata(row), expected_of(kafka_tiered, row)
        log = await storage.fetch_log_segment(metadata, 0, metadata.segment_size_in_bytes)
        assert len(log) == wanted["size"]
        batches = list(iter_headers(log))
        assert [(position, header.base_offset, header.last_offset, header.crc) for position, header in batches] == [
            (batch["position"], batch["base_offset"], batch["last_offset"], batch["crc"]) for batch in wanted["batches"]
        ]
        for (position, header), batch in zip(batches, wanted["batches"], strict=True):
            assert crc_matches(log, position, header)
            records = read_records(log[position : position + header.size])
            for record, expected in zip(records, batch["records"], strict=True):
                assert (record.offset, record.timestamp) == (expected["offset"], expected["ts"])
                assert matches(record.key, expected["key"])
                assert matches(record.value, expected["value"])


def entries_of(indexes: RemoteIndexes, start: int, end: int) -> list[list[int]]:
    """The entries of an offset index, asked for as a reader asks: from position to position."""
    found, position = [], -1
    while (following := indexes.next_position(position)) is not None:
        offset = indexes.offset_at_or_after(following)
        assert offset is not None
        found.append([offset, following])
        position = following
    for offset in range(start, end + 1):
        below = [entry for entry in found if entry[0] <= offset]
        assert indexes.position_of(offset) == (below[-1][1] if below else 0)
    return found


async def test_every_index_says_what_kafka_says(cache: RemoteIndexCache, kafka_tiered: Path) -> None:
    for row in rows_of(kafka_tiered):
        metadata, wanted = golden_metadata(row), expected_of(kafka_tiered, row)
        indexes = await cache.indexes(metadata)
        assert entries_of(indexes, metadata.start_offset, metadata.end_offset) == wanted["offset_index"]
        assert indexes.first_offset_for_time(0) == metadata.start_offset
        for timestamp, offset in wanted["time_index"]:
            assert indexes.first_offset_for_time(timestamp) == offset
        aborted = await cache.aborted_transactions(metadata)
        assert [entry._asdict() for entry in aborted] == [
            {name: value for name, value in entry.items() if name != "version"}
            for entry in wanted.get("txn_index") or []
        ]
    assert cache.status().damaged == 0


async def test_a_scan_from_where_the_index_says_finds_every_offset(
    storage: DeadlineStorage, cache: RemoteIndexCache, kafka_tiered: Path
) -> None:
    for row in rows_of(kafka_tiered):
        metadata = golden_metadata(row)
        log = await storage.fetch_log_segment(metadata, 0, metadata.segment_size_in_bytes)
        indexes = await cache.indexes(metadata)
        spans = [(header.base_offset, header.last_offset) for _, header in iter_headers(log)]
        for offset in range(metadata.start_offset, metadata.end_offset + 1):
            scanned = iter_headers(log, indexes.position_of(offset))
            found = next(header for _, header in scanned if header.last_offset >= offset)
            assert (found.base_offset, found.last_offset) == next(span for span in spans if span[1] >= offset)


async def test_the_index_cache_that_kafka_left_is_taken_over(
    storage: DeadlineStorage, kafka_tiered: Path, tmp_path: Path
) -> None:
    directory = copy_of(kafka_tiered / "tiered/local/remote-log-index-cache", tmp_path / "taken-over")
    kept = {path.name.split("_", 1)[1].split(".")[0] for path in directory.glob("*.index")}
    rows = [row for row in rows_of(kafka_tiered) if row["segment_id"] in kept]
    assert rows
    async with open_index_cache(directory, storage, max_bytes=1 << 20, clock=SystemClock(), ids=SystemIds()) as cache:
        assert cache.status().segments == len(kept)
        for row in rows:
            metadata, wanted = golden_metadata(row), expected_of(kafka_tiered, row)
            indexes = await cache.indexes(metadata)
            assert entries_of(indexes, metadata.start_offset, metadata.end_offset) == wanted["offset_index"]
            assert len(await cache.aborted_transactions(metadata)) == len(wanted.get("txn_index") or [])
        assert cache.status().fetches == 0
        assert cache.status().disk_hits == 2 * len(rows)
