"""The contract of the control plane: transactions, from their first batch to their marker."""

from __future__ import annotations

import pytest

from strandline.controlplane import (
    AbortedRange,
    BatchToCommit,
    CommittedBatch,
    FindBatches,
    FoundAborted,
    ProducerBatches,
    Refusal,
    RetentionRule,
    SqlControlPlane,
)
from strandline.model import INT64_MAX, TopicIdPartition
from strandline.records import TransactionVerification
from tests.controlplane.making import (
    ALL_BYTES,
    MISSING,
    TOPIC,
    A,
    B,
    HandSetClock,
    bases,
    batch,
    commit,
    find,
    marker,
    wal,
)
from tests.controlplane.switching import P, producer, switched

FENCED, BY_COORDINATOR = Refusal.INVALID_PRODUCER_EPOCH, Refusal.COORDINATOR_FENCED


def data(
    producer_id: int, sequence: int, records: int = 1, *, epoch: int = 0, on: TopicIdPartition = A
) -> BatchToCommit:
    """A batch of a transaction."""
    return batch(on, records, producer=(producer_id, epoch, sequence), is_transactional=True)


def commits(producer_id: int, epoch: int = 0, *, on: TopicIdPartition = A) -> BatchToCommit:
    return marker(on, (producer_id, epoch))


def aborts(producer_id: int, epoch: int = 0, *, on: TopicIdPartition = A) -> BatchToCommit:
    return marker(on, (producer_id, epoch), is_abort=True)


async def stable(plane: SqlControlPlane, partition: TopicIdPartition = A) -> int:
    """The last stable offset, which logs and rows agree upon."""
    log = (await plane.reads.logs([partition]))[partition]
    (found,) = await find(plane, FindBatches(partition, log.high_watermark, ALL_BYTES))
    assert (found.first_unstable_offset, found.last_aborted_offset) == (
        log.first_unstable_offset,
        log.last_aborted_offset,
    )
    return log.last_stable_offset


async def aborted(plane: SqlControlPlane, from_offset: int = 0, limit: int = 100) -> list[AbortedRange]:
    return list((await plane.reads.aborted_transactions(A, from_offset=from_offset, limit=limit)).ranges)


async def test_a_transaction_holds_the_last_stable_offset_until_its_marker(plane: SqlControlPlane) -> None:
    await commit(plane, "zero", batch(A, 10))
    assert await stable(plane) == 10
    answers = await commit(plane, "one", data(7, 0, 3), data(7, 3, 2), batch(A, 5))
    assert [answer.first_unstable_offset for answer in answers] == [10, 10, 10]
    assert await stable(plane) == 10
    (end,) = await commit(plane, "two", commits(7))
    assert (end.base_offset, end.first_unstable_offset, end.aborted_from) == (20, -1, -1)
    assert await stable(plane) == 21
    assert await aborted(plane) == []


async def test_an_abort_is_kept_as_a_range(plane: SqlControlPlane) -> None:
    await commit(plane, "one", data(7, 0, 3), data(8, 0, 2))
    (end,) = await commit(plane, "two", aborts(7))
    assert (end.first_unstable_offset, end.aborted_from) == (3, 0)
    assert await aborted(plane) == [AbortedRange(7, 0, 5, 3)]
    await commit(plane, "three", aborts(8))
    assert await aborted(plane) == [AbortedRange(7, 0, 5, 3), AbortedRange(8, 3, 6, 7)]
    assert await aborted(plane, from_offset=6) == [AbortedRange(8, 3, 6, 7)]
    assert await aborted(plane, limit=1) == [AbortedRange(7, 0, 5, 3)]
    log = (await plane.reads.logs([A]))[A]
    assert (log.last_stable_offset, log.last_aborted_offset) == (7, 6)
    assert await plane.reads.aborted_transactions(B, from_offset=0, limit=9) == FoundAborted((), 0)
    assert (await plane.reads.aborted_transactions(MISSING, from_offset=0, limit=9)).known_from == INT64_MAX


async def test_one_commit_may_hold_several_transactions_of_several_logs(plane: SqlControlPlane) -> None:
    first = wal("one", data(7, 0), aborts(7), data(7, 1), data(8, 0), data(7, 0, on=B))
    second = wal("two", commits(7), data(9, 0), aborts(8), commits(7, on=B))
    one, two = await plane.commits.commit_files([first, second])
    assert [answer.first_unstable_offset for answer in one] == [0, -1, 2, 2, 0]
    assert [answer.first_unstable_offset for answer in two] == [3, 3, 5, -1]
    assert await stable(plane) == 5
    assert await stable(plane, B) == 2
    assert await aborted(plane) == [AbortedRange(7, 0, 1, 2), AbortedRange(8, 3, 6, 5)]


async def test_a_repeated_commit_gets_the_offsets_of_the_first_time(plane: SqlControlPlane) -> None:
    before = await commit(plane, "one", data(7, 0), data(8, 0), aborts(7))
    await commit(plane, "two", commits(8))
    assert await commit(plane, "one", data(7, 0), data(8, 0), aborts(7)) == before
    assert await stable(plane) == 4


async def test_a_duplicate_inside_a_transaction_changes_nothing(plane: SqlControlPlane) -> None:
    await commit(plane, "one", data(7, 0, 2))
    (again,) = await commit(plane, "two", data(7, 0, 2))
    assert (again.base_offset, again.is_duplicate) == (0, True)
    await commit(plane, "three", commits(7))
    (late,) = await commit(plane, "four", data(7, 0, 2))
    assert late.is_duplicate
    assert await stable(plane) == 3, "a batch that comes again opens no transaction"


async def test_a_batch_outside_of_the_open_transaction_is_refused(plane: SqlControlPlane) -> None:
    await commit(plane, "one", data(7, 0))
    (answer,) = await commit(plane, "two", batch(A, producer=(7, 0, 1)))
    assert (answer.refusal, "transaction open from offset 0" in answer.message) == (Refusal.INVALID_TXN_STATE, True)
    assert bases(await commit(plane, "three", commits(7), batch(A, producer=(7, 0, 1)))) == [1, 2]


async def test_a_marker_without_a_transaction_is_kept_and_fences(plane: SqlControlPlane) -> None:
    (end,) = await commit(plane, "one", marker(A, (7, 3), is_abort=True, coordinator=5))
    assert (end.base_offset, end.aborted_from) == (0, -1)
    assert await aborted(plane) == []
    answers = await commit(plane, "two", data(7, 0, epoch=2), data(7, 1, epoch=3), data(7, 0, epoch=3))
    assert [answer.refusal for answer in answers] == [FENCED, Refusal.OUT_OF_ORDER_SEQUENCE, None]


@pytest.mark.parametrize(
    ("end", "refusal"),
    [
        (marker(A, (7, 3), coordinator=5), None),
        (marker(A, (7, 4), coordinator=5), None),
        (marker(A, (7, 2), coordinator=9), FENCED),
        (marker(A, (7, 3), coordinator=4), BY_COORDINATOR),
        (marker(A, (7, 4), coordinator=4), BY_COORDINATOR),
        (marker(A, (7, 3), coordinator=5, version=2), FENCED),
        (marker(A, (7, 4), coordinator=5, version=2), None),
    ],
)
async def test_epochs_of_markers_are_judged_as_by_a_classic_log(
    plane: SqlControlPlane, end: BatchToCommit, refusal: Refusal | None
) -> None:
    await commit(plane, "one", data(7, 0, epoch=3), marker(A, (7, 3), coordinator=5), data(7, 1, epoch=3))
    (answer,) = await commit(plane, "two", end)
    assert answer.refusal is refusal
    assert await stable(plane) == (2 if refusal else 4)
    if refusal:
        assert answer.message


# What comes late. Clients without `transaction.version` 2 have one epoch for many transactions: only the time at which
# a transaction began tells it from the next one.


def verified(one: BatchToCommit, start: int = -1, *, bumps: bool = False) -> BatchToCommit:
    return one._replace(verification=TransactionVerification(start, bumps))


async def test_a_marker_that_was_committed_before_does_not_end_the_next_transaction(plane: SqlControlPlane) -> None:
    """A broker that stood still commits it when another one has, and the producer has gone on."""
    late = marker(A, (7, 0), start=100)
    await commit(plane, "one", verified(data(7, 0), 100))
    await commit(plane, "by another broker", late)
    await commit(plane, "two", verified(data(7, 1), 200))
    (answer,) = await commit(plane, "late", late)
    assert (answer.refusal, "has ended before" in answer.message) == (FENCED, True)
    assert await stable(plane) == 2, "the second transaction is open"
    await commit(plane, "three", marker(A, (7, 0), is_abort=True, start=200))
    assert await aborted(plane) == [AbortedRange(7, 2, 3, 4)]


async def test_a_batch_whose_transaction_has_ended_opens_no_other(plane: SqlControlPlane) -> None:
    """It was verified before the marker came, and is committed after it."""
    await commit(plane, "one", verified(data(7, 0), 100))
    await commit(plane, "two", marker(A, (7, 0), is_abort=True, start=100))
    (answer,) = await commit(plane, "late", verified(data(7, 1), 100))
    assert (answer.refusal, "has ended" in answer.message) == (Refusal.INVALID_TXN_STATE, True)
    assert await stable(plane) == 2
    (duplicate,) = await commit(plane, "again", verified(data(7, 0), 100))
    assert duplicate.refusal is FENCED or duplicate.is_duplicate
    assert bases(await commit(plane, "three", verified(data(7, 1), 101))) == [2]


async def test_a_batch_that_never_came_before_the_marker_opens_no_transaction(plane: SqlControlPlane) -> None:
    await commit(plane, "one", marker(A, (7, 0), is_abort=True, start=100))
    answers = await commit(plane, "late", verified(data(7, 0), 100), verified(data(7, 0), 99), data(7, 0))
    assert [one.refusal for one in answers] == [Refusal.INVALID_TXN_STATE] * 2 + [None], "nobody knows of the last one"


async def test_a_late_batch_does_not_join_the_next_transaction(plane: SqlControlPlane) -> None:
    await commit(plane, "one", verified(data(7, 0), 100), marker(A, (7, 0), start=100), verified(data(7, 1), 200))
    (answer,) = await commit(plane, "late", verified(data(7, 2), 100))
    assert answer.refusal is Refusal.INVALID_TXN_STATE
    assert bases(await commit(plane, "two", verified(data(7, 2), 200), marker(A, (7, 0), start=200))) == [3, 4]


async def test_markers_whose_start_nobody_knows_are_judged_by_their_epochs(plane: SqlControlPlane) -> None:
    """Those of an operator, and of brokers of an earlier version: they leave what is known of others."""
    await commit(plane, "one", verified(data(7, 0), 100), marker(A, (7, 0), start=100))
    await commit(plane, "two", verified(data(7, 1), 200), commits(7))
    assert await stable(plane) == 4
    (answer,) = await commit(plane, "late", marker(A, (7, 0), start=100))
    assert answer.refusal is FENCED
    assert bases(await commit(plane, "three", marker(A, (7, 0), start=200))) == [4]


@pytest.mark.parametrize(("sequence", "refusal"), [(0, None), (3, Refusal.OUT_OF_ORDER_SEQUENCE)])
async def test_a_producer_with_a_new_epoch_for_each_transaction_begins_with_sequence_0(
    plane: SqlControlPlane, sequence: int, refusal: Refusal | None
) -> None:
    (answer,) = await commit(plane, "one", verified(data(7, sequence, epoch=3), bumps=True))
    assert answer.refusal is refusal
    assert bool(await plane.producers.producers(A)) is (refusal is None)
    assert bases(await commit(plane, "old", verified(data(8, sequence, epoch=3)))) == [0 if refusal else 1]


async def test_the_next_batches_of_such_a_producer_go_on_where_it_is_known(plane: SqlControlPlane) -> None:
    await commit(plane, "one", verified(data(7, 0, 3), bumps=True), marker(A, (7, 1), version=2))
    answers = await commit(
        plane, "two", verified(data(7, 0, 2, epoch=1), bumps=True), verified(data(7, 2, epoch=1), bumps=True)
    )
    assert bases(answers) == [4, 6]


async def test_producers_show_their_transaction_and_its_coordinator(plane: SqlControlPlane) -> None:
    await commit(plane, "one", data(7, 0, 2, epoch=1), marker(A, (7, 1), coordinator=4), data(7, 2, epoch=1))
    assert list(await plane.producers.producers(A)) == [ProducerBatches(7, 1, 2, 1_000, 4, 3)]
    await commit(plane, "two", marker(A, (7, 2), coordinator=6, timestamp=1_500))
    assert list(await plane.producers.producers(A)) == [ProducerBatches(7, 2, -1, 1_500, 6, -1)]


async def test_a_producer_with_an_open_transaction_does_not_expire(plane: SqlControlPlane, time: HandSetClock) -> None:
    await commit(plane, "one", data(7, 0), data(8, 0), commits(8))
    time.now += 10_000
    assert await plane.producers.expire_producers(silent_ms=1_000, limit=10) == 1
    assert [one.producer_id for one in await plane.producers.producers(A)] == [7]
    await commit(plane, "two", commits(7))
    time.now += 10_000
    assert await plane.producers.expire_producers(silent_ms=1_000, limit=10) == 1


async def test_deleting_records_moves_the_last_stable_offset_with_the_start(plane: SqlControlPlane) -> None:
    await commit(plane, "one", data(7, 0, 5))
    await commit(plane, "two", data(7, 5, 5))
    await plane.trimming.delete_records({A: 7})
    assert await stable(plane) == 7
    await commit(plane, "three", aborts(7))
    assert await aborted(plane) == [AbortedRange(7, 0, 10, 11)], "the records from 7 on are aborted"


async def test_aborted_ranges_go_with_the_rows_of_their_markers(plane: SqlControlPlane) -> None:
    await commit(plane, "one", data(7, 0), aborts(7))
    await commit(plane, "two", data(7, 1), data(8, 0))
    await commit(plane, "three", aborts(7), commits(8))
    await plane.trimming.delete_records({A: 2})
    assert await plane.reads.aborted_transactions(A, from_offset=0, limit=9) == FoundAborted(
        (AbortedRange(7, 2, 4, 3),), 2
    )
    await plane.trimming.enforce_retention([RetentionRule(A, -1, 0)], max_rows=100)
    assert await aborted(plane) == []
    await commit(plane, "four", data(7, 2), aborts(7))
    await plane.lifecycle.delete_topics([TOPIC])
    async with plane.store.transaction() as tx:
        assert await tx.fetch("SELECT count(*) FROM inkless_aborted_txn") == [(0,)]


async def test_a_switch_hands_over_the_epochs_of_coordinators(plane: SqlControlPlane) -> None:
    known = producer(7, epoch=3)
    known.coordinator_epoch = 5
    await switched(plane, 100, known)
    (late,) = await commit(plane, "one", marker(P, (7, 3), coordinator=4))
    assert late.refusal is BY_COORDINATOR
    (end,) = await commit(plane, "two", marker(P, (7, 3), coordinator=5))
    assert end == CommittedBatch(None, 100, -1, 0, leader_epoch=end.leader_epoch)
