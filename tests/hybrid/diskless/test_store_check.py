"""Whether a store is the one of the control plane, while other brokers write."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.clock import SystemClock, SystemIds
from strandline.config import Settings
from strandline.controlplane import SqlControlPlane
from strandline.controlplane.store_records import DISKLESS_STORE, RecordedStore, StoreProofs
from strandline.hybrid.diskless.store_check import objects_identity
from strandline.objects import ObjectOptions
from strandline.objects.address import parse_address
from strandline.objects.opening import open_bare
from strandline.objects.store import WrongStore
from tests.hybrid.diskless.world import open_world


class BusyPlane(SqlControlPlane):
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
        plane = BusyPlane(world.cluster.sql)
        await plane.record_store(DISKLESS_STORE, RecordedStore("ours", "file:///elsewhere"), instead_of=None)
        identity = objects_identity(settings, world.cluster.loader, plane, SystemIds())
        place, options = parse_address(address), ObjectOptions()
        async with open_bare(place, options, clock=SystemClock(), ids=SystemIds()) as store:
            for key in there:
                await store.put(key, [b"x"])
            plane.looks = 1
            with pytest.raises(WrongStore, match="is not the store that holds the objects"):
                await identity.compare(store)
