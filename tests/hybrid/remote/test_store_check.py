"""Which directory becomes the storage of segments, and which is refused."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from strandline.clock import SystemClock, SystemIds
from strandline.config.topic import TopicConfig
from strandline.controlplane.database import Database
from strandline.controlplane.store_records import REMOTE_STORE, RecordedStore, SqlStoreRecords
from strandline.hybrid.remote.store_check import remote_use
from strandline.hybrid.store_identity import StoreIdentity
from strandline.metadata import MetadataImage, TopicImage
from strandline.metadata.image import PartitionImage
from strandline.model import TopicIdPartition, TopicPartition
from strandline.objects import ObjectOptions, ObjectStore
from strandline.objects.address import parse_address
from strandline.objects.marker import REMOTE_STORE_ID_KEY
from strandline.objects.opening import open_bare
from strandline.objects.store import WrongStore
from strandline.remote.storage.names import partition_directory
from strandline.remote.storage.settings import parse_object_settings
from tests.hybrid.diskless.world import open_world

TOPIC = uuid.UUID(int=7)
ONE, TWO = (TopicIdPartition(TOPIC, TopicPartition("t", number)) for number in range(2))
IMAGE = MetadataImage(
    topics={"t": TopicImage("t", TOPIC, tuple(PartitionImage(number, (1,), (1,), 1, 0, 0) for number in range(2)))}
)


class Records(SqlStoreRecords):
    """Whether its logs have segments is what a test says."""

    has_segments = False

    async def has_remote_segments(self) -> bool:
        return self.has_segments


@asynccontextmanager
async def opened_records(tmp_path: Path) -> AsyncIterator[Records]:
    async with open_world(tmp_path) as world:
        yield Records(Database(world.cluster.sql))


@asynccontextmanager
async def comparing(
    records: Records,
    path: Path,
    *,
    data: Path = Path("/nowhere"),
    may_have_segments: bool = False,
    certain: tuple[TopicIdPartition, ...] = (),
    is_alone: bool = True,
) -> AsyncIterator[tuple[StoreIdentity, ObjectStore]]:
    """What a broker with a data directory compares the storage in another directory with."""
    use = remote_use(
        parse_object_settings({"url": f"file://{path}"}, data),
        lambda: IMAGE,
        lambda topic: TopicConfig(remote_storage_enable=True),
        records=records,
        may_have_segments=lambda _: may_have_segments,
        with_remote_part=lambda: certain,
        may_move=lambda: is_alone,
    )
    place = parse_address(f"file://{path}")
    async with open_bare(place, ObjectOptions(), clock=SystemClock(), ids=SystemIds()) as store:
        yield StoreIdentity(use, records, ids=SystemIds()), store


async def copy_segment(store: ObjectStore, partition: TopicIdPartition) -> None:
    await store.put(f"{partition_directory(partition)}/00000000000000000000-x.log", [b"x"])


async def test_an_unused_storage_may_be_left_for_another_by_the_only_broker(tmp_path: Path) -> None:
    async with opened_records(tmp_path) as records:
        async with comparing(records, tmp_path / "one") as (identity, store):
            await identity.settle(store)
        async with comparing(records, tmp_path / "two", is_alone=False) as (identity, store):
            with pytest.raises(WrongStore):
                await identity.settle(store)
        async with comparing(records, tmp_path / "two") as (identity, store):
            await identity.settle(store)
            recorded = await records.recorded_store(REMOTE_STORE)
            assert recorded is not None
            assert recorded.url == f"file://{tmp_path}/two"


@pytest.mark.parametrize(("segments_of_logs", "segments_of_rows"), [(True, False), (False, True)])
async def test_a_storage_that_may_have_segments_is_not_left(
    tmp_path: Path, segments_of_logs: bool, segments_of_rows: bool
) -> None:
    async with opened_records(tmp_path) as records:
        async with comparing(records, tmp_path / "one") as (identity, store):
            await identity.settle(store)
        recorded = await records.recorded_store(REMOTE_STORE)
        records.has_segments = segments_of_rows
        async with comparing(records, tmp_path / "two", may_have_segments=segments_of_logs) as (identity, store):
            with pytest.raises(WrongStore, match="strandline stores accept remote"):
                await identity.settle(store)
        assert await records.recorded_store(REMOTE_STORE) == recorded


@pytest.mark.parametrize(("segments_of_logs", "segments_of_rows"), [(True, False), (False, True)])
async def test_the_first_storage_is_recorded_only_with_the_segments_that_there_may_be(
    tmp_path: Path, segments_of_logs: bool, segments_of_rows: bool
) -> None:
    """Brokers of earlier versions recorded none. The segments may be those of converted topics, or of other brokers."""
    async with opened_records(tmp_path) as records:
        records.has_segments = segments_of_rows
        async with comparing(records, tmp_path / "wrong", may_have_segments=segments_of_logs) as (identity, store):
            with pytest.raises(WrongStore, match="the objects that the database names are not there"):
                await identity.settle(store)
        assert await records.recorded_store(REMOTE_STORE) is None
        assert not (tmp_path / "wrong" / REMOTE_STORE_ID_KEY).exists()
        async with comparing(records, tmp_path / "right", may_have_segments=segments_of_logs) as (identity, store):
            await copy_segment(store, TWO)
            await identity.settle(store)
        assert await records.recorded_store(REMOTE_STORE) is not None


async def test_a_storage_that_was_in_use_by_mistake_is_not_recorded(tmp_path: Path) -> None:
    """It has segments of one partition, but not of all that have left the disk of this broker in part."""
    async with (
        opened_records(tmp_path) as records,
        comparing(records, tmp_path / "one", may_have_segments=True, certain=(ONE, TWO)) as (identity, store),
    ):
        await copy_segment(store, ONE)
        with pytest.raises(WrongStore):
            await identity.settle(store)
        await copy_segment(store, TWO)
        await identity.settle(store)


@pytest.mark.parametrize("has_id", [True, False])
async def test_a_copy_at_another_address_is_refused_whatever_it_holds(tmp_path: Path, has_id: bool) -> None:
    async with opened_records(tmp_path) as records:
        await records.record_store(REMOTE_STORE, RecordedStore("ours", f"file://{tmp_path}/one"), instead_of=None)
        for path, is_ours in ((tmp_path / "two", False), (tmp_path / "one", True)):
            path.mkdir()
            async with comparing(records, path, may_have_segments=True) as (identity, store):
                await copy_segment(store, ONE)
                if has_id:
                    (path / REMOTE_STORE_ID_KEY).write_text('{"store_id": "ours"}')
                if is_ours:
                    await identity.settle(store)  # gets back an id that was deleted
                    assert "ours" in (path / REMOTE_STORE_ID_KEY).read_text()
                else:
                    with pytest.raises(WrongStore, match="strandline stores accept remote"):
                        await identity.settle(store)


async def test_an_unused_storage_may_be_moved_and_its_new_address_is_recorded(tmp_path: Path) -> None:
    """Or it would be refused once it is in use."""
    async with opened_records(tmp_path) as records:
        await records.record_store(REMOTE_STORE, RecordedStore("ours", f"file://{tmp_path}/one"), instead_of=None)
        path = tmp_path / "two"
        path.mkdir()
        (path / REMOTE_STORE_ID_KEY).write_text('{"store_id": "ours"}')
        async with comparing(records, path, is_alone=False) as (identity, store):
            with pytest.raises(WrongStore):
                await identity.settle(store)
        async with comparing(records, path) as (identity, store):
            await identity.settle(store)
        assert await records.recorded_store(REMOTE_STORE) == RecordedStore("ours", f"file://{path}")
        async with comparing(records, path, may_have_segments=True) as (identity, store):
            await identity.settle(store)


async def test_the_storage_in_a_data_directory_moves_with_it(tmp_path: Path) -> None:
    async with opened_records(tmp_path) as records:
        await records.record_store(REMOTE_STORE, RecordedStore("ours", "file:///before/remote"), instead_of=None)
        path = tmp_path / "data" / "remote"
        path.mkdir(parents=True)
        (path / REMOTE_STORE_ID_KEY).write_text('{"store_id": "ours"}')
        async with comparing(records, path, data=tmp_path / "data", may_have_segments=True) as (identity, store):
            await identity.settle(store)
            await identity.compare(store)
            assert identity.why_wrong() is None
