"""The parts of the reader, each against a simple model of itself."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.clock import SystemClock
from strandline.errors import KafkaStorageError
from strandline.objects.store import Buffer
from strandline.records import fair_shares
from strandline.remote.ports import RemoteResourceNotFound
from strandline.remote.reader.limits import MemoryBudget, ReadGate
from strandline.remote.reader.segments.memory import ChunkCache
from strandline.remote.values import IndexType, LogSegmentData, RemoteLogSegmentMetadata
from strandline.testing.clock import VirtualClock
from tests.remote.segments import make_segment

CONTENT = bytes(range(251)) * 4000


class ByteStorage:
    """A remote storage that has one segment, and may have lost it."""

    url = "test://bytes"

    def __init__(self) -> None:
        self.is_lost = False
        self.reads: list[tuple[int, int]] = []

    async def copy_log_segment_data(self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData) -> bytes | None:
        raise AssertionError("this storage takes no copies")

    async def fetch_log_segment(self, metadata: RemoteLogSegmentMetadata, start: int, length: int) -> Buffer:
        self.reads.append((start, length))
        await SystemClock().sleep(0)
        if self.is_lost:
            raise RemoteResourceNotFound("a test lost it")
        return CONTENT[start : start + length]

    async def fetch_index(self, metadata: RemoteLogSegmentMetadata, index_type: IndexType) -> bytes:
        raise AssertionError("this storage has no indexes")

    async def delete_log_segment_data(self, metadata: RemoteLogSegmentMetadata) -> None:
        raise AssertionError("this storage deletes nothing")

    async def close(self) -> None:
        return


@pytest.fixture(scope="module")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> RemoteLogSegmentMetadata:
    directory: Path = tmp_path_factory.mktemp("segment")
    return replace(make_segment(directory).metadata, segment_size_in_bytes=len(CONTENT))


ranges = st.lists(
    st.tuples(st.integers(0, len(CONTENT) - 1), st.integers(1, 400_000), st.sampled_from(["load", "ahead", "fail"])),
    min_size=1,
    max_size=15,
)


@given(steps=ranges, limit=st.sampled_from([0, 200_000, 600_000, 10_000_000]))
def test_whatever_is_read_kept_and_dropped_the_bytes_are_right(
    metadata: RemoteLogSegmentMetadata, steps: list[tuple[int, int, str]], limit: int
) -> None:
    async def run() -> None:
        storage = ByteStorage()
        cache = ChunkCache(storage, ReadGate(2, 100, SystemClock()), None, SystemClock(), max_bytes=limit)
        source = cache.source(metadata)
        for position, length, kind in steps:
            if kind == "ahead":
                assert source.load_ahead(position, length) <= min(position + length, len(CONTENT))
                continue
            storage.is_lost = kind == "fail"
            loading = source.load(position, length)
            wanted = CONTENT[position : position + length]
            try:
                await loading.wait()
                records = source.slice(position, length)
                assert b"".join(records.parts) == wanted
                assert source.at_hand(position, length) == len(wanted)
                head = source.peek(position, 100)
                assert head is not None
                assert bytes(head) == wanted[:100] or len(wanted) < 100
            except RemoteResourceNotFound:
                assert storage.is_lost or kind != "fail"
            finally:
                loading.release()
                storage.is_lost = False
            cache.trim()
            assert cache.used <= limit
        await cache.close()

    asyncio.run(run())


async def test_what_is_being_read_is_not_read_again(metadata: RemoteLogSegmentMetadata) -> None:
    storage = ByteStorage()
    cache = ChunkCache(storage, ReadGate(4, 100, SystemClock()), None, SystemClock(), max_bytes=1 << 20)
    source = cache.source(metadata)
    loadings = [source.load(0, 300_000), source.load(100_000, 400_000), source.load(0, 500_000)]
    for loading in loadings:
        await loading.wait()
        loading.release()
    assert storage.reads == [(0, 300_000), (300_000, 200_000)]
    source.close()
    assert cache.used == 0


@given(wants=st.lists(st.integers(0, 1000), max_size=8), total=st.integers(0, 5000))
def test_shares_are_fair(wants: list[int], total: int) -> None:
    shares = fair_shares(wants, total)
    assert sum(shares) <= total
    assert all(share <= want for share, want in zip(shares, wants, strict=True))
    unserved = [share for share, want in zip(shares, wants, strict=True) if share < want]
    if unserved:  # no share exceeds an unserved one by more than one byte
        assert max(shares) <= min(unserved) + 1
        assert total - sum(shares) < len(wants)


async def test_a_gate_bounds_running_and_waiting_reads() -> None:
    gate = ReadGate(2, 1, SystemClock())
    leave = asyncio.Event()

    async def pass_through() -> None:
        async with gate.turn():
            await leave.wait()

    for _ in range(3):
        gate.enter()
    with pytest.raises(KafkaStorageError, match=r"max\.pending\.tasks"):
        gate.enter()
    inside = [asyncio.create_task(pass_through()) for _ in range(3)]
    await VirtualClock().settle()
    assert (gate.running, gate.waiting, gate.has_spare) == (2, 1, False)
    leave.set()
    await asyncio.gather(*inside)
    assert (gate.running, gate.waiting, gate.has_spare) == (0, 0, True)


async def test_memory_goes_to_those_who_asked_first_and_comes_back_from_those_who_gave_up() -> None:
    budget = MemoryBudget(10)
    order: list[int] = []
    leave = asyncio.Event()

    async def take(number: int, size: int) -> None:
        async with budget.reserved(size):
            order.append(number)
            await leave.wait()

    tasks = [asyncio.create_task(take(number, size)) for number, size in enumerate((6, 100, 3, 2))]
    await VirtualClock().settle()
    assert order == [0]
    tasks[1].cancel()
    await VirtualClock().settle()
    assert order == [0, 2]
    leave.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [0, 2, 3]
    async with asyncio.timeout(5), budget.reserved(100):  # more than there is, if it is alone
        assert True


async def test_a_gate_knows_how_long_its_slots_were_held() -> None:
    clock = VirtualClock()
    gate = ReadGate(2, 10, clock)
    gate.enter()
    gate.enter()
    async with gate.turn():
        clock.move(3)
        assert gate.busy_seconds == 3
        async with gate.turn():
            clock.move(2)
    clock.move(5)
    assert gate.busy_seconds == 7


async def test_idle_slots_are_those_of_the_last_minute() -> None:
    """RemoteLogReaderAvgIdlePercent (KIP-405)."""
    clock = VirtualClock()
    gate = ReadGate(4, 10, clock)
    assert gate.idle_percent == 100
    gate.enter()
    async with gate.turn():
        for _ in range(12):
            clock.move(10)
            assert gate.idle_percent == pytest.approx(75)
    clock.move(30)
    assert gate.idle_percent == pytest.approx(87.5)
    clock.move(60)
    assert gate.idle_percent == pytest.approx(100)
