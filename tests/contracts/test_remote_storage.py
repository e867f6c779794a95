"""The promises of `RemoteStorageManager`, on every kind of storage that can run here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

import pytest
import pytest_asyncio

from strandline.clock import SystemChance, SystemClock, SystemIds
from strandline.log.transaction_index import AbortedTxn
from strandline.model import TopicIdPartition, TopicPartition
from strandline.objects import ObjectOptions, ObjectStore, harden, open_objects
from strandline.objects.memory import MemoryStore
from strandline.remote.plugins import PluginContext, open_remote_storage
from strandline.remote.ports import RemoteResourceNotFound, RemoteStorageError, RemoteStorageManager
from strandline.remote.storage import DeadlineStorage, StorageDeadlines
from strandline.remote.storage.objects import ObjectRemoteStorage
from strandline.remote.values import IndexType, RemoteLogSegmentId
from strandline.testing.objects import FaultyStore
from tests.remote.segments import make_segment
from tests.s3 import start_s3

ABORTED = (AbortedTxn(7, 0, 12, 13), AbortedTxn(8, 5, 99, 100))


@dataclass(frozen=True)
class Opened:
    """A storage, and the objects in it."""

    storage: RemoteStorageManager
    objects: ObjectStore

    async def keys(self) -> list[str]:
        return [info.key async for info in self.objects.list("")]


def context_in(directory: Path, *, serves_clients: bool) -> PluginContext:
    return PluginContext(
        data_dir=directory,
        log_dirs=(directory / "logs",),
        node_id=1,
        cluster_id="some-cluster",
        clock=SystemClock(),
        ids=SystemIds(),
        chance=SystemChance(),
        serves_clients=serves_clients,
    )


@pytest_asyncio.fixture(params=["directory", "directory of a broker", "memory", "faulty", "s3", "s3 of a broker"])
async def opened(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opened]:
    """An empty storage, as a broker opens it, or as any other process does."""
    clock = SystemClock()
    kind, _, owner = request.param.partition(" of a ")
    if kind in ("memory", "faulty"):
        bare: ObjectStore = MemoryStore(clock)
        if kind == "faulty":
            bare = FaultyStore(bare, clock)
        objects = harden(bare, ObjectOptions(), clock=clock, chance=SystemChance())
        yield Opened(DeadlineStorage(ObjectRemoteStorage(objects), StorageDeadlines(), clock=clock), objects)
        return
    config, url, options = {}, f"file://{tmp_path}/remote", ObjectOptions()
    if kind == "s3":
        server = start_s3()
        url, options = f"s3://{server.new_bucket()}/some/prefix", server.object_options
        config = {
            "url": url,
            "inkless.storage.s3.endpoint.url": server.endpoint,
            "inkless.storage.s3.region": "us-east-1",
            "inkless.storage.aws.access.key.id": "test",
            "inkless.storage.aws.secret.access.key": "test-secret",
            "inkless.storage.s3.api.call.timeout": "60000",
            "inkless.storage.s3.api.call.attempt.timeout": "30000",
        }
    context = context_in(tmp_path, serves_clients=owner == "broker")
    async with open_remote_storage(config, context) as storage, open_objects(url, options) as objects:
        assert storage.url == url
        yield Opened(storage, objects)


async def test_a_copied_segment_is_read_as_it_was(opened: Opened, tmp_path: Path) -> None:
    made = make_segment(tmp_path / "logs", base_offset=100, aborted=ABORTED)
    assert await opened.storage.copy_log_segment_data(made.metadata, made.data) is None
    for kind, content in made.contents.items():
        assert await opened.storage.fetch_index(made.metadata, kind) == content
    assert bytes(await opened.storage.fetch_log_segment(made.metadata, 0, len(made.log))) == made.log
    assert bytes(await opened.storage.fetch_log_segment(made.metadata, 1234, 77)) == made.log[1234 : 1234 + 77]


async def test_a_range_is_shorter_only_at_the_end_of_the_segment(opened: Opened, tmp_path: Path) -> None:
    made = make_segment(tmp_path / "logs")
    await opened.storage.copy_log_segment_data(made.metadata, made.data)
    size = len(made.log)
    assert bytes(await opened.storage.fetch_log_segment(made.metadata, size - 10, 1000)) == made.log[-10:]
    assert bytes(await opened.storage.fetch_log_segment(made.metadata, size, 1000)) == b""
    assert bytes(await opened.storage.fetch_log_segment(made.metadata, size + 99, 1000)) == b""
    assert bytes(await opened.storage.fetch_log_segment(made.metadata, 10, 0)) == b""


async def test_objects_have_the_names_kafka_gives_them(opened: Opened, tmp_path: Path) -> None:
    made = make_segment(tmp_path / "logs", base_offset=42, aborted=ABORTED)
    await opened.storage.copy_log_segment_data(made.metadata, made.data)
    segment = "orders-3-AAAAAAAAAAAAAAAAAKvN7w/00000000000000000042-AAAAAAAAAAAAAAAAAAAAAQ"
    kinds = ("index", "leader_epoch_checkpoint", "log", "snapshot", "timeindex", "txnindex")
    assert await opened.keys() == [f"{segment}.{kind}" for kind in kinds]


async def test_a_large_segment_is_copied_whole(opened: Opened, tmp_path: Path) -> None:
    made = make_segment(tmp_path / "logs")
    log = bytes(range(256)) * (70 * 1024) + b"the end"  # 17.5 MiB: three parts of a multipart upload
    made.data.log_segment.write_bytes(log)
    metadata = replace(made.metadata, segment_size_in_bytes=len(log))
    await opened.storage.copy_log_segment_data(metadata, made.data)
    assert bytes(await opened.storage.fetch_log_segment(metadata, 0, len(log))) == log
    for start in (8 * 1024 * 1024 - 3, 16 * 1024 * 1024 - 1, len(log) - 20):
        assert bytes(await opened.storage.fetch_log_segment(metadata, start, 100)) == log[start : start + 100]


async def test_copying_can_be_repeated(opened: Opened, tmp_path: Path) -> None:
    made = make_segment(tmp_path / "logs")
    for _ in range(2):
        await opened.storage.copy_log_segment_data(made.metadata, made.data)
    assert bytes(await opened.storage.fetch_log_segment(made.metadata, 0, len(made.log))) == made.log
    assert len(await opened.keys()) == 5


async def test_two_copies_of_one_segment_do_not_mix(opened: Opened, tmp_path: Path) -> None:
    first, second = make_segment(tmp_path / "a", number=1), make_segment(tmp_path / "b", number=2)
    await asyncio.gather(*(opened.storage.copy_log_segment_data(made.metadata, made.data) for made in (first, second)))
    await opened.storage.delete_log_segment_data(first.metadata)
    assert bytes(await opened.storage.fetch_log_segment(second.metadata, 0, len(second.log))) == second.log


async def test_deleting_leaves_nothing_and_can_be_repeated(opened: Opened, tmp_path: Path) -> None:
    made = make_segment(tmp_path / "logs", aborted=ABORTED)
    await opened.storage.copy_log_segment_data(made.metadata, made.data)
    for _ in range(2):
        await opened.storage.delete_log_segment_data(made.metadata)
        assert await opened.keys() == []
    with pytest.raises(RemoteResourceNotFound):
        await opened.storage.fetch_log_segment(made.metadata, 0, 10)


async def test_deleting_what_was_never_copied_is_harmless(opened: Opened, tmp_path: Path) -> None:
    await opened.storage.delete_log_segment_data(make_segment(tmp_path / "logs").metadata)


async def test_deleting_a_half_copied_segment_leaves_nothing(opened: Opened, tmp_path: Path) -> None:
    made = make_segment(tmp_path / "logs")
    made.data.log_segment.unlink()
    with pytest.raises(RemoteStorageError, match=r"\.log cannot be copied: No such file"):
        await opened.storage.copy_log_segment_data(made.metadata, made.data)
    assert not [key for key in await opened.keys() if key.endswith(".log")]
    await opened.storage.delete_log_segment_data(made.metadata)
    assert await opened.keys() == []


async def test_what_is_not_there_is_told_apart_from_what_fails(opened: Opened, tmp_path: Path) -> None:
    made = make_segment(tmp_path / "logs")
    with pytest.raises(RemoteResourceNotFound, match=r"\.log\b") as raised:
        await opened.storage.fetch_log_segment(made.metadata, 0, 10)
    assert opened.storage.url in str(raised.value)
    await opened.storage.copy_log_segment_data(made.metadata, made.data)
    with pytest.raises(RemoteResourceNotFound, match="txnindex"):
        await opened.storage.fetch_index(made.metadata, IndexType.TRANSACTION)


async def test_a_log_that_is_shorter_than_its_metadata_says_is_an_error(opened: Opened, tmp_path: Path) -> None:
    made = make_segment(tmp_path / "logs")
    await opened.storage.copy_log_segment_data(made.metadata, made.data)
    [key] = [key for key in await opened.keys() if key.endswith(".log")]
    await opened.objects.put(key, [made.log[:3000]])
    assert bytes(await opened.storage.fetch_log_segment(made.metadata, 0, 3000)) == made.log[:3000]
    with pytest.raises(RemoteStorageError, match=r"ends at 3000, but the segment has 5000 bytes: it is damaged"):
        await opened.storage.fetch_log_segment(made.metadata, 2000, 2000)


async def test_an_empty_index_is_not_a_missing_one(opened: Opened, tmp_path: Path) -> None:
    made = make_segment(tmp_path / "logs", batches=1)
    assert made.contents[IndexType.OFFSET] == b""
    await opened.storage.copy_log_segment_data(made.metadata, made.data)
    assert await opened.storage.fetch_index(made.metadata, IndexType.OFFSET) == b""


async def test_the_longest_name_of_a_topic_has_a_place(opened: Opened, tmp_path: Path) -> None:
    partitions = [TopicIdPartition(UUID(int=id), TopicPartition("t" * 249, 2**31 - 1)) for id in (1, 2)]
    mades = [
        make_segment(tmp_path / str(partition.topic_id), partition=partition, number=partition.topic_id.int)
        for partition in partitions
    ]
    for made in mades:
        await opened.storage.copy_log_segment_data(made.metadata, made.data)
    await opened.storage.delete_log_segment_data(mades[0].metadata)
    log = await opened.storage.fetch_log_segment(mades[1].metadata, 0, 5000)
    assert bytes(log) == mades[1].log


async def test_a_cancelled_copy_leaves_no_log_or_a_whole_one(opened: Opened, tmp_path: Path) -> None:
    made = make_segment(tmp_path / "logs")
    log = b"0123456789abcdef" * (40 * 1024)
    made.data.log_segment.write_bytes(log)
    for turns in range(0, 60, 4):
        metadata = replace(
            made.metadata,
            segment_id=RemoteLogSegmentId(made.metadata.partition, UUID(int=1000 + turns)),
            segment_size_in_bytes=len(log),
        )
        copying = asyncio.create_task(opened.storage.copy_log_segment_data(metadata, made.data))
        for _ in range(turns):
            await asyncio.sleep(0)  # noqa: TID251 (a turn of the loop, no time)
        copying.cancel()
        await asyncio.gather(copying, return_exceptions=True)
        try:
            assert bytes(await opened.storage.fetch_log_segment(metadata, 0, len(log))) == log
        except RemoteResourceNotFound:
            continue


async def test_many_calls_may_run_at_the_same_time(opened: Opened, tmp_path: Path) -> None:
    async def use(number: int) -> None:
        made = make_segment(tmp_path / str(number), number=number, base_offset=number)
        await opened.storage.copy_log_segment_data(made.metadata, made.data)
        assert bytes(await opened.storage.fetch_log_segment(made.metadata, 100, 200)) == made.log[100:300]
        await opened.storage.delete_log_segment_data(made.metadata)

    await asyncio.gather(*map(use, range(1, 21)))
    assert await opened.keys() == []
