"""The contract of MetadataStore and of the controller's lease, on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from strandline.errors import InvalidConfig
from strandline.metadata import MetadataStore
from strandline.metadata.delta import apply_records
from strandline.metadata.image import EMPTY_IMAGE
from strandline.metadata.log.store import Deposed, ImageIsBehind, Lease, Term
from strandline.metadata.records import ClusterRecord, ControllerChangeRecord, MetadataRecord, ProducerIdsRecord
from strandline.sql import Row, SqlStore, StoreCorrupt, Transaction


@pytest.fixture
def store(sql: SqlStore) -> MetadataStore:
    return MetadataStore(sql)


def block(number: int) -> ProducerIdsRecord:
    return ProducerIdsRecord(node_id=1, broker_epoch=1, next_producer_id=number)


def always(_: Lease) -> bool:
    return True


async def take(store: MetadataStore, node_id: int = 1, duration_ms: int | None = 10_000) -> Term:
    term = await store.take_lease(node_id, may_take=always, duration_ms=duration_ms)
    assert term is not None
    return term


async def append(store: MetadataStore, term: Term, *records: MetadataRecord) -> None:
    await store.append(term, (await store.lease()).next_offset, records)


async def things(sql: SqlStore) -> list[Row]:
    async with sql.transaction() as tx:
        return await tx.fetch("SELECT id, name FROM things")


async def log(store: MetadataStore) -> Sequence[tuple[int, MetadataRecord]]:
    return await store.read(-1)


async def test_a_new_log_is_empty_and_the_lease_is_free(store: MetadataStore) -> None:
    assert await log(store) == []
    assert await store.load() is EMPTY_IMAGE
    lease = await store.lease()
    assert (lease.epoch, lease.node_id, lease.session_id, lease.next_offset) == (0, None, None, 0)
    assert not lease.has_expired


async def test_taking_the_lease_begins_an_epoch_and_writes_it_down(store: MetadataStore) -> None:
    term = await take(store, node_id=7)
    assert (term.epoch, term.first_offset) == (1, 0)
    assert await log(store) == [(0, ControllerChangeRecord(controller_id=7, epoch=1))]
    lease = await store.lease()
    assert (lease.epoch, lease.node_id, lease.session_id) == (1, 7, store.sql.session_id)
    assert lease.remaining_ms is not None
    assert 0 < lease.remaining_ms <= 10_000


async def test_a_lease_that_may_not_be_taken_is_left_alone(store: MetadataStore) -> None:
    await take(store, node_id=1)
    seen: list[Lease] = []

    def refuse(lease: Lease) -> bool:
        seen.append(lease)
        return False

    assert await store.take_lease(2, may_take=refuse, duration_ms=1) is None
    assert seen[0].node_id == 1
    assert len(await log(store)) == 1


async def test_a_lease_runs_out_by_the_time_of_the_database(store: MetadataStore) -> None:
    await take(store, duration_ms=0)
    assert (await store.lease()).has_expired
    await take(store, duration_ms=None)
    lease = await store.lease()
    assert lease.remaining_ms is None
    assert not lease.has_expired


async def test_only_the_holder_renews(store: MetadataStore) -> None:
    old = await take(store, node_id=1, duration_ms=0)
    await store.renew_lease(old, 60_000)
    lease = await store.lease()
    assert lease.remaining_ms is not None
    assert lease.remaining_ms > 50_000
    new = await take(store, node_id=2)
    with pytest.raises(Deposed):
        await store.renew_lease(old, 60_000)
    await store.renew_lease(new, 60_000)


async def test_a_released_lease_is_free_at_once_and_the_next_epoch_is_higher(store: MetadataStore) -> None:
    first = await take(store, node_id=1)
    await store.release_lease(first)
    assert (await store.lease()).node_id is None
    with pytest.raises(Deposed):
        await append(store, first, block(1))
    second = await take(store, node_id=2)
    assert second.epoch == first.epoch + 1
    await store.release_lease(first)  # too late: it is no longer the holder
    assert (await store.lease()).node_id == 2


async def test_records_are_appended_in_order_without_gaps(store: MetadataStore) -> None:
    term = await take(store)
    await append(store, term, ClusterRecord(cluster_id="c"), block(1))
    await append(store, term, block(2))
    assert [offset for offset, _ in await log(store)] == [0, 1, 2, 3]
    assert [record for _, record in await store.read(1)] == [block(1), block(2)]
    assert [offset for offset, _ in await store.read(0, limit=2)] == [1, 2]


async def test_a_page_tells_where_the_log_ended(store: MetadataStore) -> None:
    """A page may end inside an append, the log does not."""
    term = await take(store)
    await append(store, term, *map(block, range(5)))
    records, end = await store.read_page(-1, limit=3)
    assert ([offset for offset, _ in records], end) == ([0, 1, 2], 6)
    await append(store, term, *map(block, range(2)))
    assert (await store.read_page(2, limit=3)).end == 8
    assert await store.read_page(7) == ([], 8)


async def test_a_deposed_controller_cannot_write(store: MetadataStore) -> None:
    old = await take(store, node_id=1)
    await take(store, node_id=2)
    before = await log(store)
    with pytest.raises(Deposed):
        await append(store, old, block(1))
    assert await log(store) == before
    assert (await store.lease()).next_offset == 2


async def test_a_writer_that_has_not_seen_everything_has_to_look_again(store: MetadataStore) -> None:
    term = await take(store)
    await append(store, term, block(1))
    with pytest.raises(ImageIsBehind):
        await store.append(term, 1, (block(2),))
    assert len(await log(store)) == 2


async def test_a_writer_that_has_seen_more_than_there_is_writes_nothing(store: MetadataStore) -> None:
    """A failover has lost commits: its records, or its snapshot, would join two histories."""
    term = await take(store)
    await append(store, term, block(1))
    image = await store.load()
    with pytest.raises(StoreCorrupt, match="has read it up to 2: the database has lost commits"):
        await store.append(term, 3, (block(2),))
    with pytest.raises(StoreCorrupt, match="has lost commits"):
        await store.add_snapshot(replace(image, offset=2))
    assert len(await log(store)) == 2
    assert await store.newest_snapshot() is None
    await store.add_snapshot(image)
    assert await store.newest_snapshot() == image


async def test_all_records_of_an_append_are_written_or_none(store: MetadataStore) -> None:
    term = await take(store)
    task = asyncio.create_task(append(store, term, *(block(number) for number in range(500))))
    await store.lease()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    offsets = [offset for offset, _ in await log(store)]
    assert offsets in ([0], list(range(501)))
    assert (await store.lease()).next_offset == len(offsets)


async def test_what_is_written_together_with_records_is_in_one_transaction(store: MetadataStore, sql: SqlStore) -> None:
    term = await take(store)

    async def together(tx: Transaction) -> None:
        await tx.execute("INSERT INTO things (id, name) VALUES (1, 'with the records')")

    await store.append(term, 1, (block(1),), together)
    assert await things(sql) == [(1, "with the records")]
    assert [record for _, record in await log(store)][1:] == [block(1)]


async def test_a_refusal_of_what_is_written_together_leaves_nothing(store: MetadataStore, sql: SqlStore) -> None:
    term = await take(store)

    async def refuse(tx: Transaction) -> None:
        await tx.execute("INSERT INTO things (id, name) VALUES (1, 'never seen')")
        raise InvalidConfig("no")

    with pytest.raises(InvalidConfig, match="no"):
        await store.append(term, 1, (block(1),), refuse)
    assert await things(sql) == []
    assert len(await log(store)) == 1
    assert (await store.lease()).next_offset == 1
    await append(store, term, block(2))
    assert [record for _, record in await log(store)][1:] == [block(2)]


async def test_a_fenced_or_late_append_writes_nothing_together(store: MetadataStore, sql: SqlStore) -> None:
    old, new = await take(store), await take(store, node_id=2)

    async def together(tx: Transaction) -> None:
        await tx.execute("INSERT INTO things (id, name) VALUES (1, 'never seen')")

    with pytest.raises(Deposed):
        await store.append(old, 2, (block(1),), together)
    with pytest.raises(ImageIsBehind):
        await store.append(new, 1, (block(1),), together)
    assert await things(sql) == []


async def test_an_append_without_records_takes_no_offset(store: MetadataStore, sql: SqlStore) -> None:
    term = await take(store)

    async def together(tx: Transaction) -> None:
        await tx.execute("INSERT INTO things (id, name) VALUES (1, 'alone')")

    await store.append(term, 1, (), together)
    assert await things(sql) == [(1, "alone")]
    assert (await store.lease()).next_offset == 1
    assert len(await log(store)) == 1


async def test_a_rehearsal_does_everything_and_takes_it_back(store: MetadataStore, sql: SqlStore) -> None:
    await take(store)
    seen = []

    async def together(tx: Transaction) -> None:
        await tx.execute("INSERT INTO things (id, name) VALUES (1, 'for a moment')")
        seen.append(await tx.fetch_one("SELECT name FROM things"))

    async def refuse(tx: Transaction) -> None:
        raise InvalidConfig("no")

    await store.rehearse(together)
    assert seen == [("for a moment",)]
    assert await things(sql) == []
    with pytest.raises(InvalidConfig, match="no"):
        await store.rehearse(refuse)


async def test_controllers_that_race_get_different_epochs(store: MetadataStore) -> None:
    terms = await asyncio.gather(*(take(store, node_id) for node_id in range(8)))
    assert sorted(term.epoch for term in terms) == list(range(1, 9))
    assert [offset for offset, _ in await log(store)] == list(range(8))


async def test_appends_that_race_are_not_mixed(store: MetadataStore) -> None:
    term = await take(store)

    async def write(number: int) -> None:
        while True:
            expected = (await store.lease()).next_offset
            try:
                return await store.append(term, expected, [block(number)] * 3)
            except ImageIsBehind:
                continue

    await asyncio.gather(*(write(number) for number in range(6)))
    numbers = [record.next_producer_id for _, record in await log(store) if isinstance(record, ProducerIdsRecord)]
    assert sorted(numbers[0::3]) == list(range(6))
    assert numbers[0::3] == numbers[1::3] == numbers[2::3]


async def test_a_snapshot_replaces_the_records_before_it(store: MetadataStore) -> None:
    term = await take(store)
    await append(store, term, ClusterRecord(cluster_id="c"), *(block(number) for number in range(20)))
    whole = await store.load()
    assert whole == apply_records(EMPTY_IMAGE, await log(store)).new
    assert await store.newest_snapshot_offset() == -1
    await store.add_snapshot(whole)
    assert await store.newest_snapshot_offset() == whole.offset == 21
    assert await store.newest_snapshot() == whole
    assert len(await log(store)) == 22, "who is just behind may still read the records"
    await append(store, term, block(100))
    await store.add_snapshot(await store.load())
    assert [offset for offset, _ in await log(store)] == [22]
    await append(store, term, block(101))
    newest = await store.load()
    assert (newest.offset, newest.next_producer_id, newest.cluster_id) == (23, 101, "c")


async def test_a_repeated_snapshot_is_harmless(store: MetadataStore) -> None:
    term = await take(store)
    await append(store, term, block(1))
    image = await store.load()
    await store.add_snapshot(image)
    await store.add_snapshot(image)
    assert await store.load() == image


async def test_listeners_are_woken_by_appends_and_releases(store: MetadataStore) -> None:
    woken, released = asyncio.Event(), asyncio.Event()
    stop, stop_lease = store.listen(woken.set), store.listen_for_lease(released.set)
    term = await take(store)
    await asyncio.wait_for(woken.wait(), 10)
    woken.clear()
    await append(store, term, block(1))
    await asyncio.wait_for(woken.wait(), 10)
    released.clear()
    await store.release_lease(term)
    await asyncio.wait_for(released.wait(), 10)
    stop()
    stop_lease()
