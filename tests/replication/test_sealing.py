"""A partition that is about to change its kind: sealed for clients, or closed to new transactions."""

from __future__ import annotations

import math

import pytest

from strandline.errors import (
    CorruptMessage,
    NotLeaderOrFollower,
    OutOfOrderSequence,
    RequestTimedOut,
    StrandlineError,
    TransactionAbortable,
)
from strandline.log import AppendOrigin, LogAppendInfo
from strandline.records.builder import build_batch
from strandline.records.control import ControlType, EndTransactionMarker, build_marker
from strandline.records.record import Record
from strandline.replication import Append, Appended, Partition
from strandline.replication.leader import LARGE_APPEND
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
    partition.append(Append(memoryview(records), acks=-1, origin=AppendOrigin.COORDINATOR, done=lambda _: None))


def leader(fixture: Fixture, **config: str) -> Partition:
    partition = fixture.partition(**config)
    partition.follow(image())
    return partition


async def test_a_sealed_partition_refuses_clients_until_it_is_unsealed(fixture: Fixture) -> None:
    partition = leader(fixture)
    append(partition, batch(b"before", producer_id=3, sequence=0))
    assert not partition.is_sealed
    partition.restrict().seal(SEALED)
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


async def test_no_marker_moves_the_end_of_a_sealed_partition(fixture: Fixture) -> None:
    """Its boundary may be set already. Nothing is open when a partition is sealed, so nobody waits for the marker."""
    partition = leader(fixture)
    append(partition, transactional(b"x", producer_id=3, sequence=0))
    end_transaction(partition, 3)
    partition.restrict().seal(SEALED)
    with pytest.raises(type(SEALED)):
        end_transaction(partition, 3)
    assert partition.log.log_end_offset == 2
    partition.unseal()
    end_transaction(partition, 3)
    assert partition.log.log_end_offset == 3


async def test_who_does_not_lead_says_so_even_if_it_is_sealed(fixture: Fixture) -> None:
    partition = fixture.partition()
    partition.follow(image(leader=2, replicas=(1, 2), isr=(1, 2)))
    partition.restrict().seal(SEALED)
    with pytest.raises(NotLeaderOrFollower):
        append(partition, batch(b"a"))


async def test_without_new_transactions_open_ones_go_on_to_their_end(fixture: Fixture) -> None:
    partition = leader(fixture)
    append(partition, transactional(b"first", producer_id=3, sequence=0))
    partition.restrict().refuse_new_transactions(math.inf)
    assert partition.has_open_transactions
    append(partition, transactional(b"second", producer_id=3, sequence=1))
    append(partition, batch(b"idempotent", producer_id=5, sequence=0))
    append(partition, batch(b"plain"))
    with pytest.raises(TransactionAbortable, match=r"topic-0.*diskless"):
        append(partition, transactional(b"new", producer_id=4, sequence=0))
    end_transaction(partition, 3)
    assert not partition.has_open_transactions
    with pytest.raises(TransactionAbortable):
        append(partition, transactional(b"third", producer_id=3, sequence=2))
    assert partition.log.log_end_offset == 5
    assert 4 not in partition.log.producers.entries


async def test_the_retry_of_a_batch_whose_transaction_has_ended_is_a_duplicate_still(fixture: Fixture) -> None:
    partition = leader(fixture)
    append(partition, transactional(b"once", producer_id=3, sequence=0))
    end_transaction(partition, 3)
    partition.restrict().refuse_new_transactions(math.inf)
    appended, _ = append(partition, transactional(b"once", producer_id=3, sequence=0))
    assert (appended.info.is_duplicate, appended.info.first_offset) == (True, 0)
    assert not partition.has_open_transactions


async def test_bytes_that_are_no_batch_are_refused_as_such_without_new_transactions(fixture: Fixture) -> None:
    partition = leader(fixture)
    partition.restrict().refuse_new_transactions(math.inf)
    with pytest.raises(CorruptMessage):
        append(partition, memoryview(b"garbage"))


async def test_each_restriction_ends_by_itself(fixture: Fixture) -> None:
    partition = leader(fixture)
    partition.restrict().refuse_new_transactions(math.inf)
    partition.restrict().seal(SEALED)
    partition.unseal()
    with pytest.raises(TransactionAbortable):
        append(partition, transactional(b"new", producer_id=4, sequence=0))
    partition.restrict().seal(SEALED)
    partition.restrict().let_transactions_begin()
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


# Held for a moment


def held(partition: Partition, *batches: memoryview) -> list[tuple[Appended, list[StrandlineError | None]]]:
    """Append while the partition holds what comes; each with what its `done` was called with."""
    partition.restrict().seal(SEALED, is_brief=True)
    appends = []
    for records in batches:
        answers: list[StrandlineError | None] = []
        appended = partition.append(Append(records, acks=-1, origin=AppendOrigin.CLIENT, done=answers.append))
        assert not appended.is_done
        assert not answers
        appends.append((appended, answers))
    return appends


async def test_held_appends_go_on_in_their_order_when_the_seal_is_broken(fixture: Fixture) -> None:
    partition = leader(fixture)
    appends = held(partition, *(batch(b"%d" % n, producer_id=3, sequence=n) for n in range(3)))
    assert partition.log.reserved_end == 0
    partition.unseal()
    append(partition, batch(b"3", producer_id=3, sequence=3))
    assert values_in(partition) == [b"0", b"1", b"2", b"3"]
    assert [(one.info.first_offset, one.info.last_offset) for one, _ in appends] == [(0, 0), (1, 1), (2, 2)]
    assert [answers for _, answers in appends] == [[None]] * 3


async def test_held_appends_go_on_elsewhere(fixture: Fixture) -> None:
    partition, other = leader(fixture), Elsewhere()
    ((appended, answers),) = held(partition, batch(b"held"))
    for one in partition.restrict().take_held():
        one.go_on(other.append)
    assert not answers, "it is not committed yet"
    other.commit(41)
    assert (appended.info.first_offset, answers) == (41, [None])
    with pytest.raises(RequestTimedOut):  # no more are held, and the partition is still sealed
        append(partition, batch(b"late"))
    assert partition.log.reserved_end == 0


class Elsewhere:
    """Takes appends, and gives them their offset later."""

    def append(self, append: Append) -> Appended:
        self.info = LogAppendInfo(-1, -1, -1, -1, False, len(append.records), -1)
        self.done = append.done
        return Appended(self.info, is_done=False, is_written=False, is_copied=True)

    def commit(self, offset: int) -> None:
        self.info.first_offset = self.info.last_offset = offset
        self.done(None)


async def test_a_held_append_that_is_refused_where_it_goes_on_gets_that_refusal(fixture: Fixture) -> None:
    partition = leader(fixture)
    ((_, answers),) = held(partition, memoryview(b"garbage" * 20))
    partition.unseal()
    assert [type(answer) for answer in answers] == [CorruptMessage]


@pytest.mark.parametrize("end", ["too long", "sealed for good", "closed", "another leader"])
async def test_held_appends_are_refused_when_nothing_becomes_of_them(fixture: Fixture, end: str) -> None:
    partition = leader(fixture)
    ((_, answers),) = held(partition, batch(b"held", producer_id=3, sequence=0))
    match end:
        case "too long":
            partition.restrict().stop_holding()
        case "sealed for good":
            partition.restrict().seal(RequestTimedOut("The boundary is not known."))
        case "closed":
            partition.close(NotLeaderOrFollower("Closed."))
        case _:
            partition.follow(image(leader=2, replicas=(1, 2), isr=(1, 2), version=9))
    expected = RequestTimedOut if end in ("too long", "sealed for good") else NotLeaderOrFollower
    assert [type(answer) for answer in answers] == [expected]
    assert partition.restrict().first_batches is not None, "what follows it has to wait until it comes again"


@pytest.mark.parametrize("is_held", [True, False])
async def test_what_follows_a_refused_first_batch_waits_for_it_also_where_no_boundary_was_set(
    fixture: Fixture, is_held: bool
) -> None:
    partition = leader(fixture)
    partition.restrict().seal(SEALED, is_brief=is_held)
    if is_held:
        held(partition, batch(b"first", producer_id=3, sequence=0))
        partition.restrict().stop_holding()
    else:
        with pytest.raises(RequestTimedOut):
            append(partition, batch(b"first", producer_id=3, sequence=0))
    partition.unseal()
    with pytest.raises(OutOfOrderSequence, match="refused and has to be sent again first"):
        append(partition, batch(b"second", producer_id=3, sequence=1))
    append(partition, batch(b"of another", producer_id=4, sequence=0))
    append(partition, batch(b"first", producer_id=3, sequence=0))
    append(partition, batch(b"second", producer_id=3, sequence=1))
    assert values_in(partition) == [b"of another", b"first", b"second"]
    assert partition.gate is None, "nothing is left to be restricted: batches take the short way again"


async def test_a_gate_that_restricts_nothing_leaves_with_the_next_append(fixture: Fixture) -> None:
    partition = leader(fixture)
    partition.restrict().seal(SEALED)
    partition.restrict().refuse_new_transactions(math.inf)
    partition.unseal()
    append(partition, batch(b"a"))
    assert partition.gate is not None
    partition.restrict().let_transactions_begin()
    append(partition, batch(b"b"))
    assert partition.gate is None


async def test_an_append_that_nobody_answers_is_not_held(fixture: Fixture) -> None:
    partition = leader(fixture)
    partition.restrict().seal(SEALED, is_brief=True)
    with pytest.raises(RequestTimedOut):
        append(partition, batch(b"a"), acks=0)
