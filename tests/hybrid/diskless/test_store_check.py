"""Whether a store is the one of the control plane, while other brokers write, and after the record of it was lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from strandline.clock import SystemClock, SystemIds
from strandline.config import Settings
from strandline.controlplane.database import Database
from strandline.controlplane.store_records import DISKLESS_STORE, RecordedStore, SqlStoreRecords, StoreProofs
from strandline.hybrid.diskless.store_check import objects_identity
from strandline.hybrid.store_identity import StoreIdentity
from strandline.objects import ObjectOptions, ObjectStore
from strandline.objects.address import parse_address
from strandline.objects.marker import STORE_ID_KEY
from strandline.objects.opening import open_bare
from strandline.objects.store import WrongStore
from strandline.sql import Transaction
from tests.hybrid.diskless.world import World, open_world


class BusyRecords(SqlStoreRecords):
    """Other brokers commit an object between any two questions."""

    looks = 0

    async def store_proofs(self, limit: int) -> StoreProofs:
        self.looks += 1
        assert self.looks < 50, "the comparison lasts as long as others write"
        return StoreProofs(["wal/1"], [f"wal/{self.looks}"])


@pytest.mark.parametrize("there", [[], ["wal/1"]], ids=["an empty one", "a copy without the newest objects"])
async def test_a_store_that_is_not_ours_is_found_out_while_others_write(tmp_path: Path, there: list[str]) -> None:
    address = f"file://{tmp_path}"
    settings = Settings.from_properties({"strandline.objects.url": address})
    async with open_world(tmp_path) as world:
        records = BusyRecords(Database(world.cluster.sql))
        await records.record_store(DISKLESS_STORE, RecordedStore("ours", "file:///elsewhere"), instead_of=None)
        identity = objects_identity(settings, world.cluster.loader, records, SystemIds())
        place, options = parse_address(address), ObjectOptions()
        async with open_bare(place, options, clock=SystemClock(), ids=SystemIds()) as store:
            for key in there:
                await store.put(key, [b"x"])
            records.looks = 1
            with pytest.raises(WrongStore, match="is not the store that holds the objects"):
                await identity.compare(store)


@asynccontextmanager
async def comparing(world: World, path: Path, *, node_id: int = 1) -> AsyncIterator[tuple[StoreIdentity, ObjectStore]]:
    """What a broker compares the store in a directory with."""
    address = f"file://{path}"
    settings = Settings.from_properties({"strandline.objects.url": address, "node.id": str(node_id)})
    identity = objects_identity(settings, world.cluster.loader, world.plane.stores, SystemIds())
    async with open_bare(parse_address(address), ObjectOptions(), clock=SystemClock(), ids=SystemIds()) as store:
        yield identity, store


class InterruptedRecords(SqlStoreRecords):
    """Something happens between the first questions of a comparison and the last."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def store_proofs(self, limit: int) -> StoreProofs:
        proofs = await super().store_proofs(limit)
        if (meanwhile := self.meanwhile) is not None:
            self.meanwhile = None
            await meanwhile()
        return proofs


async def test_a_store_that_is_recorded_while_it_is_compared_is_ours(tmp_path: Path) -> None:
    address = f"file://{tmp_path}/objects"
    settings = Settings.from_properties({"strandline.objects.url": address})
    async with open_world(tmp_path) as world, comparing(world, tmp_path / "objects") as (_, store):
        records = InterruptedRecords(Database(world.cluster.sql))
        identity = objects_identity(settings, world.cluster.loader, records, SystemIds())
        records.meanwhile = lambda: identity.settle(store)
        await identity.compare(store)
        assert identity.why_wrong() is None


async def lose_record(world: World) -> None:
    """As after a restore of the database to a moment before its first store."""

    async def work(tx: Transaction) -> None:
        await tx.execute("DELETE FROM strandline_store")

    await world.cluster.sql.transact(work)


async def test_the_record_of_a_store_in_use_is_written_again_if_the_database_has_lost_it(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, comparing(world, tmp_path / "objects") as (identity, store):
        await identity.settle(store)
        before = await world.plane.stores.recorded_store(DISKLESS_STORE)
        await lose_record(world)
        await identity.compare(store)
        assert identity.why_wrong() is None
        assert await world.plane.stores.recorded_store(DISKLESS_STORE) == before


async def test_no_other_directory_takes_the_place_of_a_store_whose_record_is_lost(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, comparing(world, tmp_path / "objects") as (identity, store):
        await identity.settle(store)
        recorded = await world.plane.stores.recorded_store(DISKLESS_STORE)
        assert recorded is not None
        await lose_record(world)
        await store.delete([STORE_ID_KEY])  # as of an empty directory, where the disk is not mounted any more
        with pytest.raises(
            WrongStore, match=f"has lost its record of the store {recorded.store_id}, which this broker"
        ):
            await identity.compare(store)
        assert await world.plane.stores.recorded_store(DISKLESS_STORE) is None


@pytest.mark.parametrize("first", [1, 2])
async def test_one_store_is_recorded_if_brokers_with_different_ones_find_none(tmp_path: Path, first: int) -> None:
    async with (
        open_world(tmp_path) as world,
        comparing(world, tmp_path / "1") as (used, used_store),
        comparing(world, tmp_path / "2", node_id=2) as (new, new_store),
    ):
        await used.settle(used_store)
        await lose_record(world)
        calls = [used.compare(used_store), new.settle(new_store)]
        results = await asyncio.gather(*(calls if first == 1 else reversed(calls)), return_exceptions=True)
        assert {type(result) for result in results} == {WrongStore, type(None)}
        recorded = await world.plane.stores.recorded_store(DISKLESS_STORE)
        for identity, store in ((used, used_store), (new, new_store)):
            if identity.why_wrong() is None:
                assert recorded is not None
                assert recorded.url == store.url
                await identity.compare(store)
            else:
                with pytest.raises(WrongStore, match="the database expects the store"):
                    await identity.compare(store)
