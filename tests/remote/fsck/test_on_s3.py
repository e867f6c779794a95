"""The same comparison on a real S3 server."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace

from strandline.objects import ObjectStore, open_objects
from strandline.remote.fsck import RemoteFindingKind
from tests.remote.fsck.world import DAY_MS, OPTIONS, World
from tests.s3 import S3
from tests.s3 import s3 as s3
from tests.s3 import s3_url as s3_url

PREFIX = "tiers/"


async def keys(store: ObjectStore) -> set[str]:
    async with aclosing(store.list("")) as infos:
        return {info.key async for info in infos}


async def test_trouble_on_s3_is_found_and_orphans_are_deleted(world: World, s3: S3, s3_url: str) -> None:
    world.only = "fx-tiered"
    lost = world.object("fx-tiered", 42, "index")
    damaged = world.object("fx-tiered", 84, "log")
    orphan = world.add_orphan("fx-tiered", age_ms=0)
    deep = replace(OPTIONS, deep=True)
    async with open_objects(s3_url, s3.object_options) as store:
        for path in world.remote.glob("fx-tiered-[01]-*/*"):
            if path not in orphan:
                await store.put_file(f"{PREFIX}{path.relative_to(world.remote)}", path)
        healthy = await keys(store)
        assert (await world.compare_in(store, PREFIX, deep)).findings == ()

        for path in orphan:
            await store.put_file(f"{PREFIX}{path.relative_to(world.remote)}", path)
        await store.delete([f"{PREFIX}{lost.relative_to(world.remote)}"])
        world.spoil(damaged, 200)
        await store.put_file(f"{PREFIX}{damaged.relative_to(world.remote)}", damaged)
        found = (await world.compare_in(store, PREFIX, replace(deep, grace_ms=-DAY_MS * 365 * 100))).findings
        assert [(finding.kind, finding.key) for finding in found] == [
            (RemoteFindingKind.DAMAGED, f"{PREFIX}{damaged.relative_to(world.remote)}".removesuffix(".log")),
            (RemoteFindingKind.MISSING, f"{PREFIX}{lost.relative_to(world.remote)}".removesuffix(".index")),
            (RemoteFindingKind.ORPHAN, f"{PREFIX}{orphan[0].relative_to(world.remote)}".removesuffix(orphan[0].suffix)),
        ]
        repair = replace(OPTIONS, repair=True, grace_ms=-DAY_MS * 365 * 100)
        found = (await world.compare_in(store, PREFIX, repair)).findings
        assert [(finding.kind, finding.is_repaired) for finding in found] == [
            (RemoteFindingKind.MISSING, False),
            (RemoteFindingKind.ORPHAN, True),
        ]
        assert await keys(store) == healthy - {f"{PREFIX}{lost.relative_to(world.remote)}"}
