"""Transactions that begin while a switch waits for others to end: refused while it can go on, and let in while not."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from strandline.clock import SystemClock
from strandline.controlplane.switches import SqlMigrations
from strandline.controlplane.values import BoundarySet, NewBoundary, TopicMigration
from strandline.errors import RequestTimedOut, StrandlineError, TransactionAbortable
from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.hybrid.switching import sealing, switches, turns
from strandline.hybrid.switching.draining import DrainWindows, drain
from strandline.hybrid.switching.status import MigrationPhase
from strandline.hybrid.switching.switch import PartitionSwitch
from strandline.log import AppendOrigin
from strandline.records import NOT_VERIFIED, Record, TransactionVerification, build_batch
from strandline.records.control import ControlType, EndTransactionMarker, build_marker
from strandline.replication import Append
from strandline.sql import StoreUnavailable
from tests.hybrid.switching.world import SECONDS, SwitchingBroker, switching_broker
from tests.moments import T0
from tests.switched import prefix_of

OPEN = 7


async def begin(
    broker: SwitchingBroker, producer_id: int, *, verification: TransactionVerification = NOT_VERIFIED
) -> None:
    """Write the first record of a transaction, as one that its coordinator has admitted. Raises the refusal."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def finished(error: StrandlineError | None) -> None:
        done.set_result(None) if error is None else done.set_exception(error)

    records = build_batch(
        [Record(0, T0, None, b"x")], producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    append = Append(memoryview(records), acks=-1, origin=AppendOrigin.CLIENT, done=finished, verification=verification)
    appended = broker.served("t").appends.append(append)
    if not appended.is_done:
        await done


async def end(broker: SwitchingBroker, producer_id: int) -> None:
    marker = build_marker(
        EndTransactionMarker(ControlType.COMMIT, 0), producer_id=producer_id, producer_epoch=0, timestamp_ms=T0
    )
    await broker.served("t").appends.append_and_wait(memoryview(marker), timeout_ms=10_000)


@pytest_asyncio.fixture
async def draining(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SwitchingBroker]:
    """A partition with an open transaction, which its switch waits for."""
    monkeypatch.setattr(switches, "BOUNDARY_SECONDS", 0.05)
    async with switching_broker(tmp_path, **{"inkless.migration.drain.wait.ms": "600000"}) as broker:
        await begin_draining(broker)
        yield broker


async def begin_draining(broker: SwitchingBroker) -> None:
    await broker.create("t", records=3)
    await begin(broker, OPEN)
    await broker.flag("t", is_diskless=True)
    await wait_draining(broker)


async def wait_draining(broker: SwitchingBroker) -> None:
    def is_draining() -> bool:
        known = broker.known("t")
        return known is not None and known.phase is MigrationPhase.DRAINING_TRANSACTIONS

    await broker.until(is_draining)


async def is_let_in(broker: SwitchingBroker, producer_id: int) -> bool:
    try:
        await begin(broker, producer_id)
    except TransactionAbortable:
        return False
    return True


async def wait_let_in(broker: SwitchingBroker, producer_id: int) -> None:
    async with asyncio.timeout(SECONDS):
        while not await is_let_in(broker, producer_id):
            await SystemClock().sleep(0.01)


async def wait_refused(broker: SwitchingBroker) -> None:
    """Until no transaction of a new producer begins. Those that have begun meanwhile end."""
    async with asyncio.timeout(SECONDS):
        for producer_id in itertools.count(100):
            if not await is_let_in(broker, producer_id):
                return
            await end(broker, producer_id)
            await SystemClock().sleep(0.01)


def take_database_away(patch: pytest.MonkeyPatch) -> None:
    async def away(migrations: SqlMigrations) -> Sequence[TopicMigration]:
        raise StoreUnavailable("A test takes the database away.")

    patch.setattr(SqlMigrations, "topic_migrations", away)


def take_store_away(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DisklessTopics, "why_not_writable", lambda _: "A test takes the store away.")


def give_the_turn_to_others(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(turns, "admitted", lambda *_, **__: set())


@pytest.mark.parametrize("obstacle", [take_database_away, take_store_away, give_the_turn_to_others])
async def test_transactions_begin_while_the_switch_cannot_go_on(
    draining: SwitchingBroker, obstacle: Callable[[pytest.MonkeyPatch], None]
) -> None:
    assert not await is_let_in(draining, 8)
    with pytest.MonkeyPatch.context() as patch:
        obstacle(patch)
        await wait_let_in(draining, 8)
    await wait_refused(draining)
    await end(draining, OPEN)
    known = draining.known("t")
    assert known is not None
    assert known.b0 == -1, "the one that was let in is open"
    await end(draining, 8)
    partition = await draining.switched("t")
    await begin(draining, 9)
    assert prefix_of(partition).end > 0


async def test_a_sealed_partition_takes_no_transaction_until_its_boundary_is_known(
    draining: SwitchingBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the control plane has set it cannot be told while it is away."""
    is_set = SqlMigrations.initialize_diskless_migration

    async def away(migrations: SqlMigrations, boundaries: Sequence[NewBoundary]) -> Sequence[BoundarySet]:
        raise StoreUnavailable("A test takes the database away.")

    monkeypatch.setattr(SqlMigrations, "initialize_diskless_migration", away)
    await end(draining, OPEN)
    replica = draining.replica("t")
    await draining.until(lambda: replica.is_sealed)
    with pytest.raises(RequestTimedOut):
        await begin(draining, 8)
    monkeypatch.setattr(SqlMigrations, "initialize_diskless_migration", is_set)
    await draining.switched("t")
    await begin(draining, 8)


async def test_what_a_coordinator_has_said_is_not_lost_on_the_way_to_the_other_tier(
    draining: SwitchingBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain batch is held while its partition is sealed, and goes on behind the boundary; this one comes again."""
    is_sealed, may_go_on = asyncio.Event(), asyncio.Event()
    initialize = SqlMigrations.initialize_diskless_migration

    async def slowly(migrations: SqlMigrations, boundaries: Sequence[NewBoundary]) -> Sequence[BoundarySet]:
        is_sealed.set()
        await may_go_on.wait()
        return await initialize(migrations, boundaries)

    monkeypatch.setattr(SqlMigrations, "initialize_diskless_migration", slowly)
    monkeypatch.setattr(sealing, "HOLD_S", SECONDS)
    await end(draining, OPEN)
    await asyncio.wait_for(is_sealed.wait(), SECONDS)
    plain = asyncio.create_task(draining.append("t"))
    with pytest.raises(RequestTimedOut):
        await begin(draining, 8, verification=TransactionVerification(5))
    may_go_on.set()
    partition = await draining.switched("t")
    assert await plain >= prefix_of(partition).end
    await begin(draining, 8, verification=TransactionVerification(5))


async def test_one_open_transaction_keeps_others_out_for_a_bounded_time_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(switches, "BOUNDARY_SECONDS", 0.02)
    windows_open: list[bool] = []

    def looked(windows: DrainWindows, *look: Any) -> list[PartitionSwitch]:
        drained = drain(windows, *look)
        windows_open.append(windows.ends_at is not None)
        return drained

    monkeypatch.setattr(turns, "drain", looked)
    async with switching_broker(tmp_path, **{"inkless.migration.drain.wait.ms": "100"}) as broker:
        await begin_draining(broker)
        await broker.until(lambda: "stepped back" in problem(broker))
        before = len(windows_open)
        for producer_id in range(20, 30):
            await begin(broker, producer_id)
            await end(broker, producer_id)
            seen = len(windows_open)
            await broker.until(lambda seen=seen: len(windows_open) > seen)  # type: ignore[misc]
        assert not any(windows_open[before:]), "nobody is kept out again for the same transaction"
        assert f"producer {OPEN} since offset 3" in problem(broker)
        assert any(f"producer {OPEN} since offset 3" in line.getMessage() for line in caplog.records)
        await end(broker, OPEN)
        await broker.switched("t")
        await begin(broker, 9)


async def test_a_switch_comes_to_its_boundary_although_transactions_follow_each_other_without_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switches, "BOUNDARY_SECONDS", 0.05)
    refused = 0

    async def write() -> None:
        nonlocal refused
        previous = OPEN
        for producer_id in itertools.count(100):
            is_begun = await is_let_in(broker, producer_id)
            refused += not is_begun
            if previous:
                await end(broker, previous)
            previous = producer_id if is_begun else 0
            await SystemClock().sleep(0.001)

    async with switching_broker(tmp_path) as broker:
        await broker.create("t", records=3)
        await begin(broker, OPEN)
        async with asyncio.TaskGroup() as group:
            writer = group.create_task(write())
            await broker.flag("t", is_diskless=True)
            await broker.switched("t")
            writer.cancel()
    assert refused > 0


def problem(broker: SwitchingBroker) -> str:
    known = broker.known("t")
    return "" if known is None else known.problem
