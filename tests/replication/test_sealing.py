"""A partition that is about to change its kind: sealed for clients, or closed to new transactions."""

from __future__ import annotations

import pytest

from strandline.errors import CorruptMessage, InvalidTxnState, NotLeaderOrFollower, RequestTimedOut
from strandline.log import AppendOrigin
from strandline.records.builder import build_batch
from strandline.records.control import ControlType, EndTransactionMarker, build_marker
from strandline.records.record import Record
from strandline.replication import Partition
from strandline.replication.partition import LARGE_APPEND
from tests.replication.conftest import CLOCK, Fixture, batch, image
from tests.replication.test_partition import Bell, append, values_in

SEALED = RequestTimedOut("The topic is being switched to diskless.")


def transactional(value: bytes, *, producer_id: int, sequence: int) -> memoryview:
    record = Record(0, CLOCK.now_ms(), None, value)
    return memoryview(
        build_batch([record], producer_id=producer_id, producer_epoch=0, base_sequence=sequence, is_transactional=True)
    )


def end_transaction(partition: Partition, producer_id: int) -> None:
    marker = EndTransactionMarker(ControlType.COMMIT, 0)
    records = build_marker(marker, producer_id=producer_id, producer_epoch=0, timestamp_ms=CLOCK.now_ms())
    partition.append(memoryview(records), acks=-1, origin=AppendOrigin.COORDINATOR, done=lambda _: None)


def leader(fixture: Fixture, **config: str) -> Partition:
    partition = fixture.partition(**config)
    partition.follow(image())
    return partition


async def test_a_sealed_partition_refuses_clients_until_it_is_unsealed(fixture: Fixture) -> None:
    partition = leader(fixture)
    append(partition, batch(b"before", producer_id=3, sequence=0))
    assert not partition.is_sealed
    partition.seal(SEALED)
    assert partition.is_sealed
    for records in (batch(b"refused"), batch(b"next", producer_id=3, sequence=1), memoryview(b"garbage")):
        with pytest.raises(RequestTimedOut, match="switched to diskless"):
            append(partition, records)
    with pytest.raises(RequestTimedOut):
        append(partition, batch(b"refused"), acks=0)
    assert SEALED.__traceback__ is None, "it would keep the buffers of refused requests alive"
    assert partition.log.reserved_end == 1
    partition.unseal()
    assert not partition.is_sealed
    append(partition, batch(b"next", producer_id=3, sequence=1))
    assert values_in(partition) == [b"before", b"next"]


async def test_coordinators_append_to_a_sealed_partition(fixture: Fixture) -> None:
    partition = leader(fixture)
    append(partition, transactional(b"x", producer_id=3, sequence=0))
    partition.seal(SEALED)
    end_transaction(partition, 3)
    assert not partition.has_open_transactions
    assert partition.log.log_end_offset == 2


async def test_who_does_not_lead_says_so_even_if_it_is_sealed(fixture: Fixture) -> None:
    partition = fixture.partition()
    partition.follow(image(leader=2, replicas=(1, 2), isr=(1, 2)))
    partition.seal(SEALED)
    with pytest.raises(NotLeaderOrFollower):
        append(partition, batch(b"a"))


async def test_without_new_transactions_open_ones_go_on_to_their_end(fixture: Fixture) -> None:
    partition = leader(fixture)
    append(partition, transactional(b"first", producer_id=3, sequence=0))
    partition.refuses_new_transactions = True
    assert partition.has_open_transactions
    append(partition, transactional(b"second", producer_id=3, sequence=1))
    append(partition, batch(b"idempotent", producer_id=5, sequence=0))
    append(partition, batch(b"plain"))
    with pytest.raises(InvalidTxnState, match=r"topic-0.*diskless"):
        append(partition, transactional(b"new", producer_id=4, sequence=0))
    end_transaction(partition, 3)
    assert not partition.has_open_transactions
    with pytest.raises(InvalidTxnState):
        append(partition, transactional(b"third", producer_id=3, sequence=2))
    assert partition.log.log_end_offset == 5
    assert 4 not in partition.log.producers.entries


async def test_the_retry_of_a_batch_whose_transaction_has_ended_is_a_duplicate_still(fixture: Fixture) -> None:
    partition = leader(fixture)
    append(partition, transactional(b"once", producer_id=3, sequence=0))
    end_transaction(partition, 3)
    partition.refuses_new_transactions = True
    appended, _ = append(partition, transactional(b"once", producer_id=3, sequence=0))
    assert (appended.info.is_duplicate, appended.info.first_offset) == (True, 0)
    assert not partition.has_open_transactions


async def test_bytes_that_are_no_batch_are_refused_as_such_without_new_transactions(fixture: Fixture) -> None:
    partition = leader(fixture)
    partition.refuses_new_transactions = True
    with pytest.raises(CorruptMessage):
        append(partition, memoryview(b"garbage"))


async def test_each_restriction_ends_by_itself(fixture: Fixture) -> None:
    partition = leader(fixture)
    partition.refuses_new_transactions = True
    partition.seal(SEALED)
    partition.unseal()
    with pytest.raises(InvalidTxnState):
        append(partition, transactional(b"new", producer_id=4, sequence=0))
    partition.seal(SEALED)
    partition.refuses_new_transactions = False
    with pytest.raises(RequestTimedOut):
        append(partition, batch(b"refused"))
    partition.unseal()
    append(partition, transactional(b"new", producer_id=4, sequence=0))
    assert partition.has_open_transactions


async def test_a_partition_is_quiet_when_everything_is_written_replicated_and_decided(fixture: Fixture) -> None:
    partition = leader(fixture, max_message_bytes="2000000")
    assert partition.is_quiet
    _, waiter = append(partition, batch(b"large", size=LARGE_APPEND))
    assert not partition.is_quiet, "it is being written"
    assert await waiter.outcome is None
    assert partition.is_quiet
    append(partition, transactional(b"x", producer_id=3, sequence=0))
    assert not partition.is_quiet, "its transaction is open"
    end_transaction(partition, 3)
    assert partition.is_quiet


async def test_a_partition_whose_end_is_not_replicated_is_not_quiet(fixture: Fixture) -> None:
    partition = fixture.partition()
    partition.follow(image(replicas=(1, 2), isr=(1, 2)))
    append(partition, batch(b"a"), acks=1)
    assert not partition.is_quiet
    partition.follow(image(replicas=(1, 2), isr=(1,), version=1))
    assert partition.is_quiet


async def test_watchers_can_be_woken_without_an_append(fixture: Fixture) -> None:
    partition = leader(fixture)
    bell = Bell()
    partition.watch(bell)
    partition.notify_watchers()
    assert bell.rings == 1
