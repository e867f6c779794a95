"""What becomes of requests about transactions, as Kafka decides it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.coordinators.transactions.metadata import LAST_EPOCH, TransactionMetadata, of_value
from strandline.coordinators.transactions.rules import (
    Step,
    decide_add,
    decide_end,
    decide_init,
    verify,
)
from strandline.coordinators.transactions.states import LEGAL_BEFORE, TransactionState
from strandline.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTxnState,
    ProducerFenced,
    StrandlineError,
    TransactionAbortable,
)
from strandline.model import NO_PRODUCER_EPOCH, NO_TIMESTAMP, ProducerAndEpoch, TopicPartition

S = TransactionState
NOW = 1_000_000
A, B = TopicPartition("a", 0), TopicPartition("b", 1)
NEW = TransactionMetadata(transactional_id="pay", producer_id=7, timeout_ms=60_000, last_update_ms=NOW)
READY = replace(NEW, producer_epoch=3)
ME = ProducerAndEpoch(7, 3)
BOTH = frozenset({A, B})
OPEN = replace(READY, state=S.ONGOING, partitions=frozenset({A}), start_ms=NOW, client_version=2)


def in_state(state: TransactionState, **changes: int) -> TransactionMetadata:
    partitions = frozenset({A}) if state in (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT) else frozenset()
    return replace(READY, state=state, partitions=partitions, **changes)  # type: ignore[arg-type]


def init(
    current: TransactionMetadata, expected: ProducerAndEpoch | None = None, *, new_producer_id: int = -1
) -> TransactionMetadata | Step:
    return decide_init(
        current,
        expected=expected,
        timeout_ms=5_000,
        is_pending=False,
        new_producer_id=new_producer_id,
        now_ms=NOW,
    )


class TestInit:
    def test_a_new_id_begins_with_epoch_0(self) -> None:
        first = init(NEW)
        assert isinstance(first, TransactionMetadata)
        assert (first.producer_id, first.producer_epoch, first.state) == (7, 0, S.EMPTY)
        assert (first.timeout_ms, first.start_ms, first.partitions) == (5_000, NO_TIMESTAMP, frozenset())

    @pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
    def test_each_time_the_epoch_rises_and_fences_the_one_before(self, state: TransactionState) -> None:
        again = init(in_state(state))
        assert isinstance(again, TransactionMetadata)
        assert (again.producer_epoch, again.last_producer_epoch, again.state) == (4, NO_PRODUCER_EPOCH, S.EMPTY)

    def test_the_same_producer_goes_on_after_an_error_and_may_repeat_that(self) -> None:
        expected = ProducerAndEpoch(7, 3)
        once = init(READY, expected)
        assert isinstance(once, TransactionMetadata)
        assert (once.producer_epoch, once.last_producer_epoch) == (4, 3)
        assert init(once, expected) == once
        with pytest.raises(ProducerFenced):
            init(once, ProducerAndEpoch(7, 2))
        with pytest.raises(ProducerFenced):
            init(once, ProducerAndEpoch(8, 4))

    def test_an_open_transaction_is_aborted_first(self) -> None:
        assert init(OPEN) is Step.ABORT_FIRST
        with pytest.raises(ProducerFenced):
            init(OPEN, ProducerAndEpoch(9, 3))

    @pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
    def test_while_one_is_ended_others_wait(self, state: TransactionState) -> None:
        with pytest.raises(ConcurrentTransactions):
            init(in_state(state))
        with pytest.raises(ConcurrentTransactions):
            decide_init(READY, expected=None, timeout_ms=1, is_pending=True, now_ms=NOW)

    def test_used_up_epochs_make_a_new_producer_id(self) -> None:
        last = replace(READY, producer_epoch=LAST_EPOCH)
        assert init(last) is Step.NEEDS_PRODUCER_ID
        fresh = init(last, ProducerAndEpoch(7, LAST_EPOCH), new_producer_id=8)
        assert isinstance(fresh, TransactionMetadata)
        assert (fresh.producer_id, fresh.producer_epoch, fresh.previous_producer_id) == (8, 0, 7)
        # The answer was lost: the producer still has its old id and epoch.
        again = init(fresh, ProducerAndEpoch(7, LAST_EPOCH))
        assert isinstance(again, TransactionMetadata)
        assert (again.producer_id, again.producer_epoch) == (8, 0)
        with pytest.raises(ProducerFenced):
            init(fresh, ProducerAndEpoch(7, 5))

    @pytest.mark.parametrize("version", [1, 2])
    def test_a_producer_goes_on_after_the_broker_has_aborted_its_transaction(self, version: int) -> None:
        """By a timeout, or because it initialised with its transaction open (KIP-360)."""
        aborted = replace(OPEN, client_version=version).fenced(client_version=version, now_ms=NOW)
        with pytest.raises(ConcurrentTransactions):
            init(aborted, ME)
        goes_on = init(aborted.completed(NOW), ME)
        assert isinstance(goes_on, TransactionMetadata)
        assert (goes_on.producer_id, goes_on.producer_epoch, goes_on.state) == (7, 4, S.EMPTY)
        assert init(goes_on, ME) == goes_on, "the answer was lost"

    def test_it_does_not_once_another_producer_has_taken_over(self) -> None:
        other = init(OPEN.fenced(client_version=2, now_ms=NOW).completed(NOW))
        assert isinstance(other, TransactionMetadata)
        assert other.producer_epoch == 5
        with pytest.raises(ProducerFenced):
            init(other, ME)

    def test_the_epoch_of_the_marker_that_fences_the_last_one_is_not_given_away(self) -> None:
        """Nothing could fence its owner."""
        last = ProducerAndEpoch(7, LAST_EPOCH)
        aborted = replace(OPEN, producer_epoch=LAST_EPOCH).fenced(client_version=2, now_ms=NOW).completed(NOW)
        assert init(aborted, last) is Step.NEEDS_PRODUCER_ID
        fresh = init(aborted, last, new_producer_id=8)
        assert isinstance(fresh, TransactionMetadata)
        assert (fresh.producer_id, fresh.producer_epoch) == (8, 0)
        assert init(fresh, last) == replace(fresh, previous_producer_id=8), "the answer was lost"


class TestAdd:
    def add(self, current: TransactionMetadata, producer: ProducerAndEpoch = ME) -> object:
        return decide_add(current, producer, [A, B], client_version=2, is_pending=False, now_ms=NOW + 1)

    @pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
    def test_the_first_partition_begins_a_transaction(self, state: TransactionState) -> None:
        begun = self.add(in_state(state))
        assert isinstance(begun, TransactionMetadata)
        assert (begun.state, begun.partitions, begun.start_ms) == (S.ONGOING, BOTH, NOW + 1)

    def test_more_partitions_and_the_same_ones_again(self) -> None:
        more = self.add(OPEN)
        assert isinstance(more, TransactionMetadata)
        assert (more.partitions, more.start_ms) == (BOTH, NOW)
        assert self.add(more) is None

    def test_others_are_refused(self) -> None:
        with pytest.raises(InvalidProducerIdMapping):
            self.add(OPEN, ProducerAndEpoch(8, 3))
        for epoch in (2, 4):
            with pytest.raises(ProducerFenced):
                self.add(OPEN, ProducerAndEpoch(7, epoch))
        for state in (S.PREPARE_COMMIT, S.PREPARE_ABORT):
            with pytest.raises(ConcurrentTransactions):
                self.add(in_state(state))

    def test_what_was_never_added_is_not_verified(self) -> None:
        errors, start_ms = verify(OPEN, ProducerAndEpoch(7, 3), [A, B], is_pending=False)
        assert (errors[A], start_ms) == (None, OPEN.start_ms)
        assert isinstance(errors[B], TransactionAbortable)
        assert all(verify(READY, ProducerAndEpoch(7, 3), [A], is_pending=False).errors.values())
        with pytest.raises(ProducerFenced):
            verify(OPEN, ProducerAndEpoch(7, 2), [A], is_pending=False)


def end(current: TransactionMetadata, epoch: int, *, is_commit: bool, version: int) -> object:
    """The state that is written; None if it is so already; or the class of the refusal."""
    try:
        found = decide_end(
            current,
            ProducerAndEpoch(7, epoch),
            is_commit=is_commit,
            client_version=version,
            is_pending=False,
            now_ms=NOW,
        )
    except StrandlineError as error:
        return type(error)
    return found.state if isinstance(found, TransactionMetadata) else found


class TestEnd:
    @pytest.mark.parametrize(
        ("state", "commit", "abort"),
        [
            (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT),
            (S.COMPLETE_COMMIT, None, InvalidTxnState),
            (S.COMPLETE_ABORT, InvalidTxnState, None),
            (S.PREPARE_COMMIT, ConcurrentTransactions, InvalidTxnState),
            (S.PREPARE_ABORT, InvalidTxnState, ConcurrentTransactions),
            (S.EMPTY, InvalidTxnState, InvalidTxnState),
        ],
    )
    def test_version_1(self, state: TransactionState, commit: object, abort: object) -> None:
        current = in_state(state)
        assert end(current, 3, is_commit=True, version=1) == commit
        assert end(current, 3, is_commit=False, version=1) == abort
        for epoch in (2, 4):
            assert end(current, epoch, is_commit=True, version=1) is ProducerFenced

    @pytest.mark.parametrize(
        ("state", "commit", "abort"),
        [
            (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT),
            (S.COMPLETE_COMMIT, InvalidTxnState, S.PREPARE_ABORT),
            (S.COMPLETE_ABORT, InvalidTxnState, S.PREPARE_ABORT),
            (S.PREPARE_COMMIT, ConcurrentTransactions, ConcurrentTransactions),
            (S.PREPARE_ABORT, ConcurrentTransactions, ConcurrentTransactions),
            (S.EMPTY, InvalidTxnState, S.PREPARE_ABORT),
        ],
    )
    def test_version_2_with_the_epoch_that_is_known(
        self, state: TransactionState, commit: object, abort: object
    ) -> None:
        current = in_state(state)
        assert end(current, 3, is_commit=True, version=2) == commit
        assert end(current, 3, is_commit=False, version=2) == abort

    @pytest.mark.parametrize(
        ("state", "commit", "abort"),
        [
            (S.ONGOING, ProducerFenced, ProducerFenced),
            (S.COMPLETE_COMMIT, None, InvalidTxnState),
            (S.COMPLETE_ABORT, InvalidTxnState, None),
            (S.PREPARE_COMMIT, ConcurrentTransactions, ConcurrentTransactions),
            (S.PREPARE_ABORT, ConcurrentTransactions, ConcurrentTransactions),
        ],
    )
    def test_version_2_that_is_repeated_with_the_epoch_before(
        self, state: TransactionState, commit: object, abort: object
    ) -> None:
        current = in_state(state)
        assert end(current, 2, is_commit=True, version=2) == commit
        assert end(current, 2, is_commit=False, version=2) == abort

    def test_version_2_makes_a_new_epoch(self) -> None:
        decided = decide_end(
            OPEN, ProducerAndEpoch(7, 3), is_commit=True, client_version=2, is_pending=False, now_ms=NOW
        )
        assert isinstance(decided, TransactionMetadata)
        assert (decided.producer_epoch, decided.last_producer_epoch, decided.partitions) == (4, 3, OPEN.partitions)
        done = decided.completed(NOW + 5)
        assert (done.state, done.producer_epoch, done.partitions) == (S.COMPLETE_COMMIT, 4, frozenset())

    def test_used_up_epochs_make_a_new_producer_id_when_the_transaction_is_complete(self) -> None:
        last = replace(OPEN, producer_epoch=LAST_EPOCH)
        assert end(last, LAST_EPOCH, is_commit=True, version=2) is Step.NEEDS_PRODUCER_ID
        decided = decide_end(
            last,
            ProducerAndEpoch(7, LAST_EPOCH),
            is_commit=True,
            client_version=2,
            is_pending=False,
            new_producer_id=8,
            now_ms=NOW,
        )
        assert isinstance(decided, TransactionMetadata)
        assert (decided.producer_id, decided.producer_epoch) == (7, LAST_EPOCH + 1)
        done = decided.completed(NOW)
        assert (done.producer_id, done.producer_epoch, done.previous_producer_id) == (8, 0, 7)
        assert end(done, LAST_EPOCH, is_commit=True, version=2) is None
        goes_on = init(done, ProducerAndEpoch(7, LAST_EPOCH))  # the answer to the end was lost
        assert isinstance(goes_on, TransactionMetadata)
        assert (goes_on.producer_id, goes_on.producer_epoch) == (8, 0)

    def test_a_fenced_transaction_raises_the_epoch_once(self) -> None:
        fenced = OPEN.fenced(client_version=2, now_ms=NOW)
        assert (fenced.state, fenced.producer_epoch, fenced.partitions) == (S.PREPARE_ABORT, 4, OPEN.partitions)
        assert end(fenced, 3, is_commit=False, version=1) is ProducerFenced

    def test_while_a_change_is_written_everything_waits(self) -> None:
        with pytest.raises(ConcurrentTransactions):
            decide_end(OPEN, ProducerAndEpoch(7, 3), is_commit=True, client_version=2, is_pending=True, now_ms=NOW)

    @pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.COMPLETE_COMMIT])
    def test_a_repeated_end_is_not_fenced_while_its_completion_is_written(self, state: TransactionState) -> None:
        again = ProducerAndEpoch(7, 2)  # its answer, with epoch 3, was lost
        with pytest.raises(ConcurrentTransactions):
            decide_end(in_state(state), again, is_commit=True, client_version=2, is_pending=True, now_ms=NOW)


def carried_out(current: TransactionMetadata, who: ProducerAndEpoch, what: str, version: int, new_id: int) -> object:
    """What one random request makes of a transactional id."""
    match what:
        case "init":
            return init(current, new_producer_id=new_id)
        case "add":
            return decide_add(current, who, [A], client_version=version, is_pending=False, now_ms=NOW)
        case "commit" | "abort":
            return decide_end(
                current, who, is_commit=what == "commit", client_version=version, is_pending=False, now_ms=NOW
            )
        case "complete" if current.state.is_prepared:
            return current.completed(NOW)
        case "time out" if current.state is S.ONGOING:
            return current.fenced(client_version=version, now_ms=NOW)
    return None


@settings(max_examples=300)
@given(st.data(), st.integers(1, 2))
def test_no_two_transactions_begin_at_the_same_time(data: st.DataObject, version: int) -> None:
    """Wherever the clocks of its coordinators stand: by their beginning, partitions tell transactions apart."""
    current, starts = READY, list[int]()
    for _ in range(data.draw(st.integers(2, 12))):
        now = data.draw(st.integers(NOW - 5, NOW + 5))
        current = current.with_partitions([A], client_version=version, now_ms=now)
        starts.append(current.start_ms)
        assert current.with_partitions([B], client_version=version, now_ms=now + 9).start_ms == starts[-1]
        if data.draw(st.booleans()):
            current = current.prepared(is_commit=True, client_version=version, now_ms=now)
        else:
            current = current.fenced(client_version=version, now_ms=now)
        assert current.start_ms == starts[-1]
        current = current.completed(now)
        if data.draw(st.booleans()):
            emptied = current.with_next_epoch(timeout_ms=1, expected_epoch=None, now_ms=now)
            assert emptied is not None
            current = of_value(current.transactional_id, emptied.value())
    assert starts == sorted(set(starts))


@settings(max_examples=300)
@given(st.data(), st.integers(1, 2))
def test_random_requests_never_lead_to_an_illegal_state(data: st.DataObject, version: int) -> None:
    """And a producer that was fenced never gets back in."""
    current, newest = NEW, ProducerAndEpoch(7, -1)
    fenced: set[ProducerAndEpoch] = set()
    for number in range(data.draw(st.integers(1, 30))):
        who = data.draw(st.sampled_from([newest, *sorted(fenced)]))
        what = data.draw(st.sampled_from(["init", "add", "commit", "abort", "complete", "time out"]))
        try:
            found = carried_out(current, who, what, version, 100 + number)
        except StrandlineError:
            continue
        if not isinstance(found, TransactionMetadata):
            continue
        assert who == newest or what in ("init", "complete", "time out"), f"{who} is fenced, and did {what}"
        assert current.state in LEGAL_BEFORE[found.state]
        current = found
        if (current.producer_id, current.producer_epoch) != newest:
            fenced.add(newest)
            newest = ProducerAndEpoch(current.producer_id, current.producer_epoch)
