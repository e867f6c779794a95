"""Every call to a remote storage ends, and one that does not come back shows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.clock import SystemChance, SystemClock
from strandline.objects import ObjectOptions, ObjectStoreUnavailable, Patience, harden
from strandline.objects.memory import MemoryStore
from strandline.objects.store import Buffer
from strandline.remote.ports import RemoteResourceNotFound, RemoteStorageError
from strandline.remote.storage import DeadlineStorage, StorageDeadlines
from strandline.remote.storage.objects import ObjectRemoteStorage
from strandline.remote.values import IndexType, LogSegmentData, RemoteLogSegmentMetadata
from strandline.testing.clock import VirtualClock
from strandline.testing.objects import ANY, FaultyStore
from tests.remote.segments import Made, make_segment

DEADLINES = StorageDeadlines(copy=30.0, fetch=20.0, delete=10.0, slowest_bytes_per_second=1000)


class Stubborn:
    """A plugin whose calls do as they are told: hang, ignore that they are cancelled, or fail in its own ways."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.error: Exception | None = None
        self.is_deaf = True
        self.closed = 0

    @property
    def url(self) -> str:
        return "plugin://"

    async def _wait(self) -> None:
        while not self.gate.is_set():
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                if not self.is_deaf:
                    raise
        if self.error is not None:
            raise self.error

    async def copy_log_segment_data(self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData) -> bytes | None:
        await self._wait()
        return b"custom"

    async def fetch_log_segment(self, metadata: RemoteLogSegmentMetadata, start: int, length: int) -> Buffer:
        await self._wait()
        return bytes(length)

    async def fetch_index(self, metadata: RemoteLogSegmentMetadata, index_type: IndexType) -> bytes:
        await self._wait()
        return b"index"

    async def delete_log_segment_data(self, metadata: RemoteLogSegmentMetadata) -> None:
        await self._wait()

    async def close(self) -> None:
        self.closed += 1
        await self._wait()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest_asyncio.fixture
async def plugin() -> AsyncIterator[Stubborn]:
    plugin = Stubborn()
    yield plugin
    plugin.gate.set()


@pytest.fixture
def storage(plugin: Stubborn, clock: VirtualClock) -> DeadlineStorage:
    return DeadlineStorage(plugin, DEADLINES, clock=clock)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return make_segment(tmp_path / "logs")


async def test_a_copy_that_never_returns_ends_at_its_deadline_and_goes_on_to_show(
    storage: DeadlineStorage, plugin: Stubborn, clock: VirtualClock, made: Made
) -> None:
    copying = asyncio.create_task(storage.copy_log_segment_data(made.metadata, made.data))
    await clock.advance(34)  # 30 seconds, and 5 more for 5000 bytes
    assert not copying.done()
    status = storage.status()
    assert (status.oldest_pending_seconds, status.operations["copy"].pending) == (34, 1)
    assert status.operations["copy"].oldest_pending == ("orders-3 offsets 0 to 499 (segment AAAAAAAAAAAAAAAAAAAAAQ)")
    await clock.advance(3)
    with pytest.raises(RemoteStorageError, match=r"Copying orders-3 offsets 0 to 499 .* did not end within 35 seconds"):
        await copying
    # The plugin is deaf: the call goes on, and its age with it.
    await clock.advance(100)
    status = storage.status()
    assert (status.oldest_pending_seconds, status.stuck) == (137, 1)
    assert (status.operations["copy"].errors, status.operations["copy"].timeouts) == (1, 1)
    plugin.gate.set()
    await clock.settle()
    status = storage.status()
    assert (status.oldest_pending_seconds, status.stuck, status.operations["copy"].pending) == (0, 0, 0)


async def test_every_operation_has_its_deadline(storage: DeadlineStorage, clock: VirtualClock, made: Made) -> None:
    calls = [
        asyncio.create_task(storage.copy_log_segment_data(made.metadata, made.data)),
        asyncio.create_task(storage.fetch_log_segment(made.metadata, 0, 10)),
        asyncio.create_task(storage.fetch_index(made.metadata, IndexType.OFFSET)),
        asyncio.create_task(storage.delete_log_segment_data(made.metadata)),
    ]
    await clock.advance(40)
    for call in calls:
        with pytest.raises(RemoteStorageError, match="did not end within"):
            await call


async def test_a_call_that_lets_itself_be_cancelled_is_not_stuck(
    storage: DeadlineStorage, plugin: Stubborn, clock: VirtualClock, made: Made
) -> None:
    plugin.is_deaf = False
    fetching = asyncio.create_task(storage.fetch_log_segment(made.metadata, 0, 10))
    await clock.advance(20)
    with pytest.raises(RemoteStorageError, match="Reading orders-3"):
        await fetching
    assert storage.status().stuck == 0
    assert storage.status().operations["fetch"].pending == 0


async def test_a_cancelled_caller_does_not_wait_for_a_deaf_plugin(
    storage: DeadlineStorage, clock: VirtualClock, made: Made
) -> None:
    fetching = asyncio.create_task(storage.fetch_log_segment(made.metadata, 0, 10))
    await clock.settle()
    fetching.cancel()
    await clock.advance(1)
    assert fetching.cancelled()
    assert storage.status().stuck == 1
    assert storage.status().operations["fetch"].errors == 0


async def test_a_storage_that_hangs_is_not_asked_for_ever_more(
    storage: DeadlineStorage, plugin: Stubborn, clock: VirtualClock, made: Made
) -> None:
    fetching = [asyncio.create_task(storage.fetch_log_segment(made.metadata, 0, 10)) for _ in range(64)]
    await clock.advance(22)
    await asyncio.gather(*fetching, return_exceptions=True)
    with pytest.raises(RemoteStorageError, match=r"64 calls to the remote storage plugin:// hang"):
        await storage.delete_log_segment_data(made.metadata)
    plugin.gate.set()
    await clock.settle()
    await storage.delete_log_segment_data(made.metadata)


async def test_whatever_a_plugin_raises_is_an_error_of_the_storage(
    storage: DeadlineStorage, plugin: Stubborn, made: Made
) -> None:
    plugin.gate.set()
    plugin.error = KeyError("what?")
    with pytest.raises(RemoteStorageError, match=r"Deleting orders-3 .* from plugin:// failed: KeyError\('what\?'\)"):
        await storage.delete_log_segment_data(made.metadata)
    plugin.error = RemoteResourceNotFound("gone")
    with pytest.raises(RemoteResourceNotFound, match="gone"):
        await storage.fetch_index(made.metadata, IndexType.OFFSET)
    assert storage.status().operations["delete"].errors == 1
    assert storage.status().operations["fetch_index"].errors == 1


async def test_calls_bytes_and_time_are_counted(
    storage: DeadlineStorage, plugin: Stubborn, clock: VirtualClock, made: Made
) -> None:
    copying = asyncio.create_task(storage.copy_log_segment_data(made.metadata, made.data))
    await clock.advance(2)
    plugin.gate.set()
    assert await copying == b"custom"
    await storage.fetch_log_segment(made.metadata, 0, 123)
    await storage.fetch_index(made.metadata, IndexType.OFFSET)
    await storage.delete_log_segment_data(made.metadata)
    operations = storage.status().operations
    assert {name: (operation.calls, operation.bytes, operation.seconds) for name, operation in operations.items()} == {
        "copy": (1, 5000, 2),
        "fetch": (1, 123, 0),
        "fetch_index": (1, 5, 0),
        "delete": (1, 0, 0),
    }
    assert all(operation.oldest_pending is None for operation in operations.values())


async def test_a_plugin_that_does_not_close_does_not_hold_up_the_broker(
    storage: DeadlineStorage, plugin: Stubborn, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    closing = asyncio.create_task(storage.close())
    with caplog.at_level(logging.WARNING):
        await clock.advance(22)
        await closing
    assert "plugin:// did not close" in caplog.text
    plugin.gate.set()
    plugin.error = OSError("no")
    await DeadlineStorage(plugin, DEADLINES, clock=SystemClock()).close()
    assert "closing remote storage plugin:// failed" in caplog.text
    assert plugin.closed == 2


def faulty_storage(clock: VirtualClock) -> tuple[FaultyStore, DeadlineStorage]:
    patience = Patience(attempts=3, backoff=1.0, attempt_deadline=4.0, deadline=9.0, slowest_copy=1000)
    faulty = FaultyStore(MemoryStore(clock), clock)
    objects = harden(faulty, ObjectOptions(patience=patience), clock=clock, chance=SystemChance())
    return faulty, DeadlineStorage(ObjectRemoteStorage(objects), DEADLINES, clock=clock)


async def test_a_store_that_fails_now_and_then_is_asked_again(clock: VirtualClock, made: Made) -> None:
    faulty, storage = faulty_storage(clock)
    faulty.fail("put_file", times=2)
    faulty.lose_answer("put")
    copying = asyncio.create_task(storage.copy_log_segment_data(made.metadata, made.data))
    await clock.advance(20)
    await copying
    faulty.fail("get_range")
    faulty.shorten("get_range", 10, skip=1)
    fetching = asyncio.create_task(storage.fetch_log_segment(made.metadata, 0, 500))
    await clock.advance(20)
    assert bytes(await fetching) == made.log[:500]
    faulty.lose_answer("delete")
    deleting = asyncio.create_task(storage.delete_log_segment_data(made.metadata))
    await clock.advance(20)
    await deleting
    assert storage.status().operations["copy"].errors == 0


@pytest.mark.parametrize("operation", ["put_file", "put"])
async def test_a_copy_that_fails_for_good_has_no_log(clock: VirtualClock, made: Made, operation: str) -> None:
    faulty, storage = faulty_storage(clock)
    faulty.fail(operation, times=1000, error=ObjectStoreUnavailable("the bucket is on fire"))
    copying = asyncio.create_task(storage.copy_log_segment_data(made.metadata, made.data))
    await clock.advance(60)
    with pytest.raises(RemoteStorageError, match=r"failed 3 times.*the bucket is on fire"):
        await copying
    assert not [key async for key, *_ in faulty.list("") if key.endswith(".log")]


async def test_a_store_that_hangs_ends_in_an_error_of_the_storage(clock: VirtualClock, made: Made) -> None:
    faulty, storage = faulty_storage(clock)
    faulty.block(ANY)
    for call in (
        storage.copy_log_segment_data(made.metadata, made.data),
        storage.fetch_log_segment(made.metadata, 0, 10),
        storage.fetch_index(made.metadata, IndexType.TIMESTAMP),
        storage.delete_log_segment_data(made.metadata),
    ):
        running = asyncio.create_task(call)
        await clock.advance(40)
        with pytest.raises(RemoteStorageError, match="The store did not answer in time"):
            await running
    assert storage.status().stuck == 0


async def test_a_segment_is_deleted_log_first(clock: VirtualClock, made: Made) -> None:
    faulty, storage = faulty_storage(clock)
    await storage.copy_log_segment_data(made.metadata, made.data)
    assert [call.keys[0].rpartition(".")[2] for call in faulty.calls][-1] == "log"
    faulty.fail("delete", skip=1, times=1000)
    deleting = asyncio.create_task(storage.delete_log_segment_data(made.metadata))
    await clock.advance(60)
    with pytest.raises(RemoteStorageError):
        await deleting
    with pytest.raises(RemoteResourceNotFound):
        await storage.fetch_log_segment(made.metadata, 0, 10)
    faulty.heal()
    await storage.delete_log_segment_data(made.metadata)
    assert [info async for info in faulty.list("")] == []
