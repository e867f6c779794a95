"""The same work on a bucket of a real S3 server: listing in pages, deleting many at once, reading tails."""

from __future__ import annotations

from strandline.clock import SystemChance, SystemClock
from strandline.controlplane import SqlControlPlane
from strandline.diskless.fsck import FsckOptions, WalFault
from strandline.diskless.upkeep import FileCleaner, OrphanFinder
from strandline.objects import open_objects
from strandline.sql import open_store
from strandline.testing.clock import VirtualClock
from tests.diskless.batches import append
from tests.diskless.world import A0, B0, World
from tests.s3 import start_s3

GRACE_MS = 60_000


async def test_objects_are_checked_and_cleaned_on_s3() -> None:
    s3 = start_s3()
    clock, chance = VirtualClock(SystemClock().now_ms()), SystemChance(1)
    url = f"s3://{s3.new_bucket()}/some/prefix"
    async with open_store("sqlite:///:memory:") as sql, open_objects(url, s3.object_options) as store:
        world = World(SqlControlPlane(sql, clock=clock, time=clock), store, None, clock)
        await world.create_logs(A0, B0)
        expired = [await world.write(A0) for _ in range(5)]
        kept = await world.write(A0, B0)
        lost = (await world.upload([append(B0)])).object_key
        await world.drop(A0)
        clock.move(2 * GRACE_MS / 1000)

        options = FsckOptions(grace_ms=GRACE_MS, overdue_ms=GRACE_MS, deep=True)
        report = await world.compare(options)
        assert {(finding.kind, finding.key) for finding in report.findings} == {
            (WalFault.ORPHAN, lost),
            *((WalFault.OVERDUE, key) for key in expired),
        }

        finder = OrphanFinder(
            world.plane.files, store, clock=clock, chance=chance, broker_id=1, interval_ms=1, grace_ms=GRACE_MS
        )
        cleaner = FileCleaner(
            world.plane.files, store, clock=clock, chance=chance, interval_ms=1, grace_ms=0, max_files_per_round=100
        )
        assert (await finder.run_once()).orphans_taken == 1
        assert (await cleaner.run_once()).files_deleted == 6
        assert await world.keys() == {kept}
        assert (await world.compare(options)).findings == ()
