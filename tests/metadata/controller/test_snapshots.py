"""A snapshot of the metadata takes long if there are very many topics. The controller goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager

import pytest

from strandline.clock import SystemClock
from strandline.metadata import MetadataImage, MetadataStore
from strandline.metadata.controller.leadership import LEASE_SECONDS, RENEW_SECONDS
from strandline.metadata.controller.upkeep import SNAPSHOT_RECORDS, TICK_SECONDS
from strandline.metadata.log import store
from strandline.metadata.log.snapshot import encode_in_steps
from strandline.metadata.log.store import Term
from strandline.sql import StoreUnavailable, open_store
from strandline.sql.passing import PassingStore
from strandline.testing.clock import VirtualClock
from tests.metadata.cluster import MEMORY, Cluster, member
from tests.waiting import until, until_in

LONG_SECONDS = 10 * LEASE_SECONDS


class Shared(PassingStore):
    """A store that other processes can open, too: the lease has to be renewed."""

    @property
    def is_exclusive(self) -> bool:
        return False


class SlowSnapshots:
    """Snapshots, one at a time, whose encoding takes many steps until `seconds` have passed, also if those change."""

    def __init__(self, clock: VirtualClock, store: MetadataStore) -> None:
        self._clock, self._add = clock, store.add_snapshot
        self.seconds = LONG_SECONDS
        self.begun = self.under_way = 0

    async def add_snapshot(self, image: MetadataImage) -> None:
        assert not self.under_way
        self.begun += 1
        self.under_way += 1
        try:
            await self._add(image)
        finally:
            self.under_way -= 1

    def encode(self, image: MetadataImage) -> Generator[None, None, bytes]:
        begun = self._clock.monotonic()
        while self._clock.monotonic() < begun + self.seconds:
            yield
        return (yield from encode_in_steps(image))


class Leading:
    """The active controller of two brokers, with more records than a snapshot waits for."""

    def __init__(self, cluster: Cluster, clock: VirtualClock, snapshots: SlowSnapshots) -> None:
        self.cluster, self.clock, self.snapshots = cluster, clock, snapshots
        self.renewals = 0

    async def renew_lease(self, term: Term, duration_ms: int) -> None:
        self.renewals += 1

    async def lease_is_kept(self) -> None:
        """Time passes in which the lease has to be renewed."""
        before = self.renewals
        await self.clock.advance(RENEW_SECONDS)
        await until_in(self.clock, lambda: self.renewals > before)


@asynccontextmanager
async def leading(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Leading]:
    clock = VirtualClock()
    async with open_store(MEMORY) as sql:
        cluster = member(Shared(sql), clock)
        await cluster.loader.load()
        assert await cluster.controller.activate()
        for node_id in (1, 2):
            await cluster.start_broker(node_id)
        await cluster.create("t", [[1]] * SNAPSHOT_RECORDS)
        snapshots = SlowSnapshots(clock, cluster.store)
        lead = Leading(cluster, clock, snapshots)
        monkeypatch.setattr(cluster.store, "add_snapshot", snapshots.add_snapshot)
        monkeypatch.setattr(store, "encode_in_steps", snapshots.encode)
        monkeypatch.setattr(cluster.store, "renew_lease", lead.renew_lease)
        yield lead


async def snapshot_begins(lead: Leading) -> None:
    await until_in(lead.clock, lambda: lead.snapshots.under_way == 1)


async def snapshot_written(lead: Leading) -> None:
    async with asyncio.timeout(20):
        while await lead.cluster.store.newest_snapshot_offset() < 0:
            await lead.clock.advance(TICK_SECONDS)
            await SystemClock().sleep(0.005)


async def test_the_lease_is_kept_and_a_silent_broker_fenced_while_a_snapshot_is_encoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with leading(monkeypatch) as lead, lead.cluster.controller.running():
        cluster = lead.cluster
        await snapshot_begins(lead)
        image = cluster.image
        for _ in range(6):
            await cluster.beat(1)
            await lead.lease_is_kept()
        assert lead.snapshots.under_way == lead.snapshots.begun == 1
        await until_in(lead.clock, lambda: cluster.image.brokers[2].fenced)
        assert not cluster.image.brokers[1].fenced
        lead.snapshots.seconds = 0.0  # time does not pass, or broker 1 is silent for too long as well
        await until(lambda: not lead.snapshots.under_way)
        await snapshot_written(lead)
        assert await cluster.store.newest_snapshot() == image


async def test_the_lease_is_kept_while_the_last_snapshot_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    async with leading(monkeypatch) as lead:
        finishing = asyncio.create_task(lead.cluster.controller.upkeep.finish())
        await until(lambda: lead.snapshots.under_way == 1)
        for _ in range(6):
            await lead.lease_is_kept()
        assert not finishing.done()
        lead.clock.move(LONG_SECONDS)
        await asyncio.wait_for(finishing, 20)
        assert await lead.cluster.store.newest_snapshot() == lead.cluster.image


async def test_a_controller_that_stops_gives_up_a_snapshot_under_way_and_writes_the_last_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with leading(monkeypatch) as lead, asyncio.timeout(20), lead.cluster.controller.running():
        cluster = lead.cluster
        await snapshot_begins(lead)
        await cluster.create("newest")
        lead.snapshots.seconds = 0.0
        await cluster.controller.resign()
        assert lead.snapshots.begun == 2
        assert not lead.snapshots.under_way
        assert await cluster.store.newest_snapshot() == cluster.image
        assert (await cluster.store.lease()).node_id is None


async def test_a_snapshot_that_fails_is_written_a_second_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with leading(monkeypatch) as lead, lead.cluster.controller.running():
        lead.snapshots.seconds = 0.0
        add = lead.cluster.store.add_snapshot

        async def fail(_: MetadataImage) -> None:
            monkeypatch.setattr(lead.cluster.store, "add_snapshot", add)
            raise StoreUnavailable("The database is away.")

        monkeypatch.setattr(lead.cluster.store, "add_snapshot", fail)
        await until_in(lead.clock, lambda: "writing a snapshot of the metadata failed, trying again" in caplog.text)
        await snapshot_written(lead)
