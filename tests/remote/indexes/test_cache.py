"""The cache of remote indexes: bounded, shared, kept over restarts, and never wrong."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import pytest

from strandline.clock import SystemIds
from strandline.log.transaction_index import AbortedTxn
from strandline.model import uuid_to_text
from strandline.objects.memory import MemoryStore
from strandline.remote.indexes.cache import RemoteIndexCache, open_index_cache
from strandline.remote.indexes.files import IndexFiles
from strandline.remote.indexes.segment import RemoteIndexDamaged
from strandline.remote.ports import RemoteResourceNotFound, RemoteStorageError
from strandline.remote.storage.objects import ObjectRemoteStorage
from strandline.remote.values import IndexType, RemoteLogSegmentMetadata
from strandline.testing.clock import VirtualClock
from strandline.testing.objects import FaultyStore
from tests.remote.segments import Made, make_segment
from tests.waiting import wait_until

ABORTED = (AbortedTxn(7, 0, 12, 13), AbortedTxn(8, 5, 99, 100))
ROOM = 1 << 20


class Harness:
    """A remote store with segments, and caches of their indexes in one directory."""

    def __init__(self, tmp_path: Path) -> None:
        self.clock = VirtualClock()
        self.store = FaultyStore(MemoryStore(self.clock), self.clock)
        self.storage = ObjectRemoteStorage(self.store)
        self.directory = tmp_path / "remote-log-index-cache"
        self._segments = tmp_path / "segments"

    async def made(self, number: int = 1, *, aborted: tuple[AbortedTxn, ...] = ABORTED, batches: int = 50) -> Made:
        """A segment in the remote store."""
        base = number * 1000
        shifted = tuple(AbortedTxn(a.producer_id, *(field + base for field in a[1:])) for a in aborted)
        made = make_segment(self._segments, number=number, base_offset=base, aborted=shifted, batches=batches)
        await self.storage.copy_log_segment_data(made.metadata, made.data)
        self.store.calls.clear()
        return made

    @asynccontextmanager
    async def cache(self, max_bytes: int = ROOM, max_memory_bytes: int = ROOM) -> AsyncIterator[RemoteIndexCache]:
        async with open_index_cache(
            self.directory,
            self.storage,
            max_bytes=max_bytes,
            max_memory_bytes=max_memory_bytes,
            clock=self.clock,
            ids=SystemIds(),
        ) as cache:
            yield cache

    def files(self) -> list[str]:
        return sorted(os.listdir(self.directory))


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


def names_of(number: int, *suffixes: str) -> list[str]:
    return [f"{number * 1000}_{uuid_to_text(UUID(int=number))}.{suffix}" for suffix in suffixes]


async def test_an_index_is_fetched_once_and_kept_under_the_name_kafka_gives_it(harness: Harness) -> None:
    made = await harness.made(3)
    async with harness.cache() as cache:
        for _ in range(3):
            indexes = await cache.indexes(made.metadata)
            assert indexes.position_of(3000 + 19) == 100
        assert harness.store.count("get") == 2
        assert harness.files() == names_of(3, "index", "sums", "timeindex")
        assert tuple(await cache.aborted_transactions(made.metadata)) == (
            AbortedTxn(7, 3000, 3012, 3013),
            AbortedTxn(8, 3005, 3099, 3100),
        )
        assert harness.files() == names_of(3, "index", "sums", "timeindex", "txnindex")
        status = cache.status()
        assert (status.memory_hits, status.disk_hits, status.fetches) == (2, 0, 2)
        assert status.bytes == sum((harness.directory / name).stat().st_size for name in harness.files())


async def test_the_cache_survives_a_restart(harness: Harness) -> None:
    made = await harness.made()
    async with harness.cache() as cache:
        await cache.indexes(made.metadata)
        await cache.aborted_transactions(made.metadata)
        size = cache.status().bytes
    harness.store.fail("get", times=1000)
    async with harness.cache() as cache:
        assert (cache.status().segments, cache.status().bytes) == (1, size)
        assert (await cache.indexes(made.metadata)).position_of(1019) == 100
        assert len(await cache.aborted_transactions(made.metadata)) == 2
        assert (cache.status().disk_hits, cache.status().fetches) == (2, 0)


async def test_what_was_left_half_written_is_removed_at_the_start_and_strangers_are_left_alone(
    harness: Harness,
) -> None:
    harness.directory.mkdir()
    for name in ("half.tmp", "0_x.index.deleted", "notes.txt"):
        (harness.directory / name).write_bytes(b"x")
    async with harness.cache() as cache:
        assert harness.files() == ["notes.txt"]
        assert cache.status().segments == 0


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 + 1)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


@pytest.mark.parametrize("damage", [flip, cut, empty, zero, os.unlink], ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("suffix", ["index", "timeindex", "txnindex", "sums"])
async def test_a_damaged_file_is_found_and_fetched_again(
    harness: Harness, suffix: str, damage: Callable[[Path], None]
) -> None:
    made = await harness.made()
    async with harness.cache() as cache:
        indexes = await cache.indexes(made.metadata)
        aborted = [*await cache.aborted_transactions(made.metadata)]
    damage(harness.directory / names_of(1, suffix)[0])
    async with harness.cache() as cache:
        again = await cache.indexes(made.metadata)
        for offset in range(1000, 1500):
            assert again.position_of(offset) == indexes.position_of(offset)
        for timestamp in range(0, 50_000, 500):
            assert again.first_offset_for_time(timestamp) == indexes.first_offset_for_time(timestamp)
        assert [*await cache.aborted_transactions(made.metadata)] == aborted
    async with harness.cache() as cache:  # and it is whole again
        await cache.indexes(made.metadata)
        assert [*await cache.aborted_transactions(made.metadata)] == aborted
        assert (cache.status().damaged, cache.status().errors) == (0, 0)


@pytest.mark.parametrize("kind", [IndexType.OFFSET, IndexType.TIMESTAMP, IndexType.TRANSACTION])
async def test_a_damaged_remote_index_ends_in_an_error_that_names_it(harness: Harness, kind: IndexType) -> None:
    made, other = await harness.made(1), await harness.made(2)
    await harness.store.put(harness.storage.index_key(made.metadata, kind), [made.contents[kind][:-3]])
    async with harness.cache() as cache:
        ask = cache.aborted_transactions if kind is IndexType.TRANSACTION else cache.indexes
        with pytest.raises(RemoteIndexDamaged, match=rf"The {kind.value} of orders-3 .* offsets 1000 to 1499 is damag"):
            await ask(made.metadata)
        await cache.indexes(other.metadata)
        assert cache.status().errors == 1
        assert names_of(1, kind.value)[0] not in harness.files()
        # Once the object is restored, so is the partition.
        await harness.store.put(harness.storage.index_key(made.metadata, kind), [made.contents[kind]])
        await ask(made.metadata)


async def test_a_missing_remote_index_is_told(harness: Harness) -> None:
    made = await harness.made()
    await harness.store.delete([harness.storage.index_key(made.metadata, IndexType.TIMESTAMP)])
    async with harness.cache() as cache:
        with pytest.raises(RemoteResourceNotFound, match="timeindex"):
            await cache.indexes(made.metadata)
    assert harness.files() == []


async def test_a_segment_without_aborted_transactions_is_asked_for_them_once(harness: Harness) -> None:
    made = await harness.made(aborted=())
    async with harness.cache() as cache:
        for _ in range(2):
            assert not len(await cache.aborted_transactions(made.metadata))
    async with harness.cache() as cache:
        assert not len(await cache.aborted_transactions(made.metadata))
    assert harness.store.count("get") == 1


async def test_a_segment_that_is_being_deleted_is_not_taken_for_one_without_aborted_transactions(
    harness: Harness,
) -> None:
    made = await harness.made()
    async with harness.cache() as cache:
        await cache.indexes(made.metadata)
        await harness.storage.delete_log_segment_data(made.metadata)
        with pytest.raises(RemoteResourceNotFound, match=r"\.log"):
            await cache.aborted_transactions(made.metadata)
    assert names_of(1, "txnindex")[0] not in harness.files()


async def test_many_who_ask_at_once_share_one_fetch(harness: Harness) -> None:
    made = await harness.made()
    gate = harness.store.block("get")
    async with harness.cache() as cache:
        asking = [asyncio.create_task(cache.indexes(made.metadata)) for _ in range(20)]
        await gate.wait_reached()
        assert cache.status().pending == 1
        gate.release()
        found = await asyncio.gather(*asking)
        assert all(indexes is found[0] for indexes in found)
        assert harness.store.count("get") == 2


async def test_a_fetch_goes_on_when_those_who_asked_have_gone(harness: Harness) -> None:
    made = await harness.made()
    gate = harness.store.block("get")
    async with harness.cache() as cache:
        asking = [asyncio.create_task(cache.indexes(made.metadata)) for _ in range(3)]
        await gate.wait_reached()
        for task in asking:
            task.cancel()
        assert all(
            isinstance(end, asyncio.CancelledError) for end in await asyncio.gather(*asking, return_exceptions=True)
        )
        gate.release()
        await asyncio.to_thread(wait_until, lambda: len(harness.files()) == 3)
        await cache.indexes(made.metadata)
        assert harness.store.count("get") == 2


async def test_a_fetch_that_failed_is_not_remembered(harness: Harness) -> None:
    made = await harness.made()
    harness.store.fail("get", times=2)
    async with harness.cache() as cache:
        with pytest.raises(RemoteStorageError, match="A test lets get fail"):
            await cache.indexes(made.metadata)
        await cache.indexes(made.metadata)


async def test_closing_ends_those_who_wait(harness: Harness) -> None:
    made = await harness.made()
    gate = harness.store.block("get")
    async with harness.cache() as cache:
        asking = asyncio.create_task(cache.indexes(made.metadata))
        await gate.wait_reached()
    with pytest.raises(RemoteStorageError, match="closed"):
        await asking


async def test_the_files_stay_below_their_bound_and_those_used_least_recently_go_first(harness: Harness) -> None:
    mades = [await harness.made(number) for number in range(1, 6)]
    async with harness.cache() as probe:
        await probe.indexes(mades[0].metadata)
        size = probe.status().bytes
        probe.forget([mades[0].metadata.segment_id])
    async with harness.cache(max_bytes=3 * size + size // 2) as cache:
        for made in mades[:3]:
            await cache.indexes(made.metadata)
        await cache.indexes(mades[0].metadata)  # now the second is the oldest
        await cache.indexes(mades[3].metadata)
        status = cache.status()
        assert (status.segments, status.evictions) == (3, 1)
        assert status.bytes <= status.max_bytes
    assert {name.split("_")[0] for name in harness.files()} == {"1000", "3000", "4000"}


async def test_the_order_of_use_survives_a_restart(harness: Harness) -> None:
    mades = [await harness.made(number) for number in range(1, 4)]
    async with harness.cache() as cache:
        for made in mades:
            await cache.indexes(made.metadata)
            harness.clock.move(1)
        size = cache.status().bytes // 3
    async with harness.cache() as cache:
        await cache.indexes(mades[0].metadata)
    async with harness.cache(max_bytes=2 * size + size // 2):
        pass
    assert {name.split("_")[0] for name in harness.files()} == {"1000", "3000"}


async def test_an_index_larger_than_the_whole_cache_is_still_served(harness: Harness) -> None:
    made = await harness.made()
    async with harness.cache(max_bytes=1, max_memory_bytes=1) as cache:
        for _ in range(2):
            assert (await cache.indexes(made.metadata)).position_of(1019) == 100
        assert (cache.status().bytes, cache.status().memory_bytes) == (0, 0)
    assert harness.files() == []


async def test_memory_is_bounded_too(harness: Harness) -> None:
    mades = [await harness.made(number) for number in range(1, 9)]
    async with harness.cache() as probe:
        await probe.indexes(mades[0].metadata)
        one = probe.status().memory_bytes
        assert one >= len(mades[0].contents[IndexType.OFFSET]) + len(mades[0].contents[IndexType.TIMESTAMP])
        probe.forget([mades[0].metadata.segment_id])
    async with harness.cache(max_memory_bytes=3 * one) as cache:
        for made in mades:
            await cache.indexes(made.metadata)
            assert cache.status().memory_bytes <= 3 * one
        await cache.indexes(mades[7].metadata)
        await cache.indexes(mades[0].metadata)
        assert (cache.status().memory_hits, cache.status().disk_hits, cache.status().fetches) == (1, 1, 8)


async def test_what_readers_use_stays_in_memory_until_they_use_other_indexes(harness: Harness) -> None:
    mades = [await harness.made(number) for number in range(1, 5)]
    async with harness.cache() as probe:
        await probe.indexes(mades[0].metadata)
        one = probe.status().memory_bytes
    async with harness.cache(max_memory_bytes=5 * one) as cache:  # two thirds of them for positions
        for made in mades[:3]:
            await cache.indexes(made.metadata)
        cache.note_use(mades[0].metadata.segment_id.id)
        await cache.indexes(mades[3].metadata)
        await cache.indexes(mades[0].metadata)
        assert cache.status().memory_hits == 1


async def test_aborted_transactions_are_at_hand_once_they_were_asked_for(harness: Harness) -> None:
    made = await harness.made()
    async with harness.cache() as cache:
        assert cache.aborted_transactions_now(made.metadata) is None
        found = await cache.aborted_transactions(made.metadata)
        assert cache.aborted_transactions_now(made.metadata) is found
        cache.forget([made.metadata.segment_id])
        assert cache.aborted_transactions_now(made.metadata) is None


async def test_what_was_handed_out_stays_good_when_its_files_make_room(harness: Harness) -> None:
    first, second = await harness.made(1), await harness.made(2)
    async with harness.cache(max_bytes=1000, max_memory_bytes=1) as cache:
        indexes = await cache.indexes(first.metadata)
        await cache.indexes(second.metadata)
        cache.forget([first.metadata.segment_id])
        assert [indexes.position_of(offset) for offset in (1000, 1019, 1499)] == [0, 100, 4900]


async def test_indexes_of_deleted_segments_are_forgotten(harness: Harness) -> None:
    made, other = await harness.made(1), await harness.made(2)
    async with harness.cache() as cache:
        for metadata in (made.metadata, other.metadata):
            await cache.indexes(metadata)
            await cache.aborted_transactions(metadata)
        cache.forget([made.metadata.segment_id])
        await harness.storage.delete_log_segment_data(made.metadata)
        with pytest.raises(RemoteResourceNotFound):
            await cache.indexes(made.metadata)
        await cache.indexes(other.metadata)
    assert {name.split("_")[0] for name in harness.files()} == {"2000"}


async def test_an_index_that_arrives_after_its_segment_was_forgotten_is_not_kept(harness: Harness) -> None:
    made = await harness.made()
    gate = harness.store.block("get")
    async with harness.cache() as cache:
        asking = asyncio.create_task(cache.indexes(made.metadata))
        await gate.wait_reached()
        cache.forget([made.metadata.segment_id])
        gate.release()
        await asking
        status = cache.status()
        assert (status.segments, status.bytes, status.memory_bytes) == (0, 0, 0)
    assert harness.files() == []


async def test_files_that_make_room_while_others_of_their_segment_are_written_leave_no_trace(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await harness.made()
    reached, go_on = threading.Event(), threading.Event()
    store = IndexFiles.store

    def slow(self: IndexFiles, metadata: RemoteLogSegmentMetadata, found: Mapping[IndexType, bytes]) -> int:
        if IndexType.TRANSACTION in found:
            reached.set()
            go_on.wait(30)
        return store(self, metadata, found)

    monkeypatch.setattr(IndexFiles, "store", slow)
    async with harness.cache() as cache:
        await cache.indexes(made.metadata)
        asking = asyncio.create_task(cache.aborted_transactions(made.metadata))
        await asyncio.to_thread(reached.wait, 30)
        cache._disk.drop(made.metadata.segment_id.id)
        go_on.set()
        assert len(await asking) == 2
        assert (cache.status().segments, cache.status().bytes) == (0, 0)
    assert harness.files() == []


async def test_what_is_fetched_again_right_after_it_was_forgotten_is_kept(harness: Harness) -> None:
    made = await harness.made()
    async with harness.cache() as cache:
        for _ in range(20):
            await cache.indexes(made.metadata)
            cache.forget([made.metadata.segment_id])
        await cache.indexes(made.metadata)
    assert harness.files() == names_of(1, "index", "sums", "timeindex")


async def test_a_disk_that_cannot_keep_an_index_does_not_keep_it_from_its_reader(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = await harness.made()

    def full(self: IndexFiles, *_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(IndexFiles, "store", full)
    async with harness.cache() as cache:
        assert (await cache.indexes(made.metadata)).position_of(1019) == 100
        assert cache.status().bytes == 0
    assert "No space left" in caplog.text


async def test_readers_and_deletions_at_the_same_time_leave_a_cache_that_adds_up(harness: Harness) -> None:
    mades = [await harness.made(number) for number in range(1, 13)]

    async def use(number: int) -> None:
        for turn in range(15):
            made = mades[(number * 7 + turn * 5) % len(mades)]
            base = made.metadata.start_offset
            assert (await cache.indexes(made.metadata)).position_of(base + 19) == 100
            assert len(await cache.aborted_transactions(made.metadata)) == 2
            if (number + turn) % 4 == 0:
                cache.forget([made.metadata.segment_id])

    async with harness.cache(max_bytes=4000, max_memory_bytes=3000) as cache:
        await asyncio.gather(*map(use, range(10)))
        status = cache.status()
        assert status.bytes <= 4000
        assert status.memory_bytes <= 3000
        assert status.pending == 0
    files = [harness.directory / name for name in harness.files()]
    assert sum(path.stat().st_size for path in files) == status.bytes
    assert len({path.name.split(".")[0] for path in files}) == status.segments
    for path in files:
        if path.suffix == ".sums":
            assert {path.with_suffix(f".{kind}").exists() for kind in json.loads(path.read_bytes())} == {True}
