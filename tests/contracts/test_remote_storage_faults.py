"""What a remote storage does when the store below it fails: the same on every kind of store."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.clock import SystemChance, SystemClock, SystemIds
from strandline.objects import ObjectOptions, ObjectStoreMisconfigured, Patience, harden
from strandline.objects.address import parse_address
from strandline.objects.opening import open_bare
from strandline.remote.plugins import PluginContext, open_remote_storage
from strandline.remote.ports import RemoteResourceNotFound, RemoteStorageError
from strandline.remote.storage import DeadlineStorage, StorageDeadlines
from strandline.remote.storage.objects import ObjectRemoteStorage
from strandline.remote.values import IndexType
from strandline.testing.objects import ALWAYS, ANY, FaultyStore
from tests.remote.segments import Made, make_segment
from tests.s3 import start_s3

PATIENCE = Patience(attempts=3, backoff=0.001, attempt_deadline=30, deadline=60)


@dataclass(frozen=True)
class Faulty:
    """A storage on a store that fails as a test says."""

    storage: DeadlineStorage
    store: FaultyStore

    async def suffixes(self) -> list[str]:
        """The kinds of the objects that are there."""
        self.store.heal()
        return sorted([info.key.rpartition(".")[2] async for info in self.store.list("")])


@pytest_asyncio.fixture(params=["directory", "memory", "s3"])
async def faulty(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Faulty]:
    url, options = "memory://", ObjectOptions(patience=PATIENCE)
    if request.param == "directory":
        url = f"file://{tmp_path}/remote"
    if request.param == "s3":
        server = start_s3()
        url, options = f"s3://{server.new_bucket()}/prefix", replace(options, s3=server.options)
    clock = SystemClock()
    async with open_bare(parse_address(url), options, clock=clock, ids=SystemIds()) as bare:
        store = FaultyStore(bare, clock)
        objects = harden(store, options, clock=clock, chance=SystemChance())
        yield Faulty(DeadlineStorage(ObjectRemoteStorage(objects), StorageDeadlines(), clock=clock), store)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """A segment whose log goes to a bucket in parts."""
    made = make_segment(tmp_path / "logs")
    log = bytes(range(251)) * 40_000
    made.data.log_segment.write_bytes(log)
    return replace(made, metadata=replace(made.metadata, segment_size_in_bytes=len(log)), log=log)


async def test_what_fails_now_and_then_succeeds(faulty: Faulty, made: Made) -> None:
    faulty.store.fail("put_file")
    faulty.store.lose_answer("put_file", skip=2)
    faulty.store.lose_answer("put")
    await faulty.storage.copy_log_segment_data(made.metadata, made.data)
    faulty.store.fail("get_range", times=2)
    assert bytes(await faulty.storage.fetch_log_segment(made.metadata, 0, len(made.log))) == made.log
    faulty.store.shorten("get_range", 100)
    assert bytes(await faulty.storage.fetch_log_segment(made.metadata, 1000, 5000)) == made.log[1000:6000]
    faulty.store.fail("get")
    assert await faulty.storage.fetch_index(made.metadata, IndexType.OFFSET) == made.contents[IndexType.OFFSET]
    faulty.store.lose_answer("delete")
    await faulty.storage.delete_log_segment_data(made.metadata)
    assert await faulty.suffixes() == []


@pytest.mark.parametrize("skip", range(4))
async def test_a_copy_that_fails_for_good_leaves_no_log_and_can_be_repeated_or_deleted(
    faulty: Faulty, made: Made, skip: int
) -> None:
    for _ in range(2):
        faulty.store.fail("put_file", times=ALWAYS, skip=skip)
        with pytest.raises(RemoteStorageError, match=r"failed 3 times\. The last error: A test lets put_file fail"):
            await faulty.storage.copy_log_segment_data(made.metadata, made.data)
        assert "log" not in await faulty.suffixes()
    await faulty.storage.delete_log_segment_data(made.metadata)
    assert await faulty.suffixes() == []
    await faulty.storage.copy_log_segment_data(made.metadata, made.data)
    assert bytes(await faulty.storage.fetch_log_segment(made.metadata, 0, len(made.log))) == made.log


async def test_a_delete_that_fails_half_way_can_be_repeated(faulty: Faulty, made: Made) -> None:
    await faulty.storage.copy_log_segment_data(made.metadata, made.data)
    faulty.store.fail("delete", times=ALWAYS, skip=1)
    with pytest.raises(RemoteStorageError, match="Deleting 5 objects"):
        await faulty.storage.delete_log_segment_data(made.metadata)
    with pytest.raises(RemoteResourceNotFound):
        await faulty.storage.fetch_log_segment(made.metadata, 0, 10)
    assert "log" not in await faulty.suffixes()
    await faulty.storage.delete_log_segment_data(made.metadata)
    assert await faulty.suffixes() == []


async def test_what_cannot_succeed_is_tried_once(faulty: Faulty, made: Made) -> None:
    faulty.store.fail(ANY, times=ALWAYS, error=ObjectStoreMisconfigured("check the rights"))
    with pytest.raises(RemoteStorageError, match="check the rights"):
        await faulty.storage.fetch_log_segment(made.metadata, 0, 10)
    assert faulty.store.count() == 1


async def test_failures_of_one_segment_do_not_touch_others(faulty: Faulty, made: Made, tmp_path: Path) -> None:
    other = make_segment(tmp_path / "other", number=2, base_offset=1000)
    gate = faulty.store.block("put_file", times=1)
    copying = asyncio.create_task(faulty.storage.copy_log_segment_data(made.metadata, made.data))
    await gate.wait_reached()
    await faulty.storage.copy_log_segment_data(other.metadata, other.data)
    assert bytes(await faulty.storage.fetch_log_segment(other.metadata, 0, 5000)) == other.log
    assert faulty.storage.status().operations["copy"].pending == 1
    gate.release()
    await copying


async def test_an_endpoint_without_a_server_ends_in_an_error_that_names_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    config = {
        "url": "s3://some-bucket/prefix",
        "storage.s3.endpoint.url": f"http://127.0.0.1:{port}",
        "storage.aws.access.key.id": "id",
        "storage.aws.secret.access.key": "very-secret",
        "storage.s3.api.call.timeout": "1000",
        "storage.s3.api.call.attempt.timeout": "500",
    }
    context = PluginContext(
        data_dir=tmp_path,
        log_dirs=(tmp_path,),
        node_id=1,
        cluster_id="some-cluster",
        clock=SystemClock(),
        ids=SystemIds(),
        chance=SystemChance(),
    )
    made = make_segment(tmp_path / "logs")
    async with open_remote_storage(config, context) as storage:
        for call in (
            storage.copy_log_segment_data(made.metadata, made.data),
            storage.fetch_log_segment(made.metadata, 0, 10),
            storage.fetch_index(made.metadata, IndexType.OFFSET),
            storage.delete_log_segment_data(made.metadata),
        ):
            with pytest.raises(RemoteStorageError, match="s3://some-bucket/prefix") as raised:
                await call
            assert not isinstance(raised.value, RemoteResourceNotFound)
            assert "very-secret" not in str(raised.value)
