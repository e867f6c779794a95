"""Idempotent and transactional producers: Kafka's rules, one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.config.topic import TopicConfig
from strandline.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from strandline.log import AppendOrigin
from strandline.model import INT32_MAX
from strandline.reads import ActiveProducer, FetchIsolation
from tests.log.harness import NOW, LogHarness, batch, marker

PRODUCER = 1001


def send(harness: LogHarness, sequence: int, count: int = 1, *, epoch: int = 0, producer: int = PRODUCER) -> int:
    """Append and return the first offset."""
    return harness.append(batch(count, producer_id=producer, producer_epoch=epoch, sequence=sequence)).first_offset


def send_txn(harness: LogHarness, sequence: int, *, producer: int = PRODUCER, epoch: int = 0) -> int:
    records = batch(1, producer_id=producer, producer_epoch=epoch, sequence=sequence, is_transactional=True)
    return harness.append(records).first_offset


class TestSequences:
    def test_batches_in_sequence_are_accepted(self, harness: LogHarness) -> None:
        assert [send(harness, 0, 2), send(harness, 2, 3), send(harness, 5)] == [0, 2, 5]

    def test_a_gap_is_refused_and_changes_nothing(self, harness: LogHarness) -> None:
        send(harness, 0, 2)
        with pytest.raises(OutOfOrderSequence):
            send(harness, 3)
        assert harness.log.log_end_offset == 2
        assert send(harness, 2) == 2

    def test_each_of_the_last_five_batches_is_recognised(self, harness: LogHarness) -> None:
        for sequence in range(8):
            send(harness, sequence)
        for sequence in range(3, 8):
            info = harness.append(batch(1, producer_id=PRODUCER, sequence=sequence))
            assert info.is_duplicate
            assert (info.first_offset, info.last_offset) == (sequence, sequence)
            assert info.log_append_time_ms == NOW
        with pytest.raises(OutOfOrderSequence):
            send(harness, 2)
        assert harness.log.log_end_offset == 8

    def test_a_batch_with_another_length_is_no_duplicate(self, harness: LogHarness) -> None:
        send(harness, 0, 3)
        with pytest.raises(OutOfOrderSequence):
            send(harness, 0, 2)

    def test_an_unknown_producer_may_start_anywhere(self, harness: LogHarness) -> None:
        assert send(harness, 77) == 0
        assert send(harness, 78) == 1

    def test_sequences_wrap_from_the_largest_number_to_zero(self, harness: LogHarness) -> None:
        send(harness, INT32_MAX - 1, 2)
        assert send(harness, 0) == 2
        assert send(harness, 1) == 3

    def test_a_batch_may_wrap_inside(self, harness: LogHarness) -> None:
        send(harness, INT32_MAX, 3)
        duplicate = harness.append(batch(3, producer_id=PRODUCER, sequence=INT32_MAX))
        assert duplicate.is_duplicate
        assert send(harness, 2) == 3

    def test_producers_do_not_disturb_each_other(self, harness: LogHarness) -> None:
        send(harness, 0, producer=1)
        send(harness, 0, producer=2)
        assert send(harness, 1, producer=1) == 2

    def test_a_duplicate_of_a_batch_that_is_being_written_gets_its_offsets(self, harness: LogHarness) -> None:
        log = harness.log
        pending = log.begin_append(batch(2, producer_id=PRODUCER, sequence=0), leader_epoch=0)
        again = log.begin_append(batch(2, producer_id=PRODUCER, sequence=0), leader_epoch=0)
        assert again.is_duplicate
        assert again.info.last_offset == 1
        assert log.log_end_offset == 0
        pending.write()
        log.finish_append(pending)
        log.finish_append(again)
        assert log.log_end_offset == 2


class TestEpochs:
    def test_an_old_epoch_is_refused(self, harness: LogHarness) -> None:
        send(harness, 0, epoch=3)
        with pytest.raises(InvalidProducerEpoch):
            send(harness, 1, epoch=2)

    def test_a_new_epoch_starts_at_zero(self, harness: LogHarness) -> None:
        send(harness, 0, epoch=3)
        with pytest.raises(OutOfOrderSequence):
            send(harness, 1, epoch=4)
        assert send(harness, 0, epoch=4) == 1

    def test_a_new_epoch_forgets_the_batches_of_the_old_one(self, harness: LogHarness) -> None:
        send(harness, 0, epoch=3)
        assert send(harness, 0, epoch=4) == 1
        assert harness.append(batch(1, producer_id=PRODUCER, producer_epoch=4, sequence=0)).first_offset == 1

    def test_coordinators_need_no_sequence_but_an_epoch(self, harness: LogHarness) -> None:
        origin = AppendOrigin.COORDINATOR
        harness.append(batch(1, producer_id=PRODUCER, producer_epoch=2, sequence=7), origin=origin)
        harness.append(batch(1, producer_id=PRODUCER, producer_epoch=2, sequence=3), origin=origin)
        with pytest.raises(InvalidProducerEpoch):
            harness.append(batch(1, producer_id=PRODUCER, producer_epoch=1, sequence=0), origin=origin)

    def test_a_follower_takes_what_the_leader_has(self, harness: LogHarness) -> None:
        log = harness.log
        log.append_as_follower(
            batch(1, base_offset=0, producer_id=PRODUCER, producer_epoch=5, sequence=9), leader_epoch=0
        )
        log.append_as_follower(
            batch(1, base_offset=1, producer_id=PRODUCER, producer_epoch=4, sequence=0), leader_epoch=0
        )
        assert log.log_end_offset == 2


class TestTransactions:
    def test_a_transaction_holds_the_last_stable_offset_back(self, harness: LogHarness) -> None:
        harness.append(batch(3))
        send_txn(harness, 0)
        harness.append(batch(2))
        assert (harness.log.last_stable_offset, harness.log.high_watermark) == (3, 6)
        harness.end_transaction(PRODUCER, commits=True)
        assert harness.log.last_stable_offset == 7

    def test_the_last_stable_offset_is_not_below_the_log_start(self, harness: LogHarness) -> None:
        harness.append(batch(3, producer_id=1, sequence=0, is_transactional=True))
        harness.append(batch(3))
        harness.log.delete_records(5)
        assert harness.log.last_stable_offset == 5

    def test_a_marker_counts_when_it_is_replicated(self, harness: LogHarness) -> None:
        send_txn(harness, 0)
        harness.log.append(marker(PRODUCER, commits=True), leader_epoch=0, origin=AppendOrigin.COORDINATOR)
        assert harness.log.last_stable_offset == 0
        harness.log.update_high_watermark(1)
        assert harness.log.last_stable_offset == 0
        harness.log.update_high_watermark(2)
        assert harness.log.last_stable_offset == 2

    def test_the_oldest_open_transaction_decides(self, harness: LogHarness) -> None:
        send_txn(harness, 0, producer=1)
        send_txn(harness, 0, producer=2)
        harness.end_transaction(1, commits=False)
        assert harness.log.last_stable_offset == 1
        [aborted] = list(harness.log.segments.active.txn_index)
        assert (aborted.first_offset, aborted.last_offset, aborted.last_stable_offset) == (0, 2, 1)
        harness.end_transaction(2, commits=True)
        assert harness.log.last_stable_offset == 4

    def test_aborted_transactions_are_told_to_committed_readers_only(self, harness: LogHarness) -> None:
        send_txn(harness, 0)
        harness.end_transaction(PRODUCER, commits=False)
        harness.append(batch(2))
        committed = harness.log.read(0, 1 << 20, isolation=FetchIsolation.TXN_COMMITTED)
        assert committed.aborted_transactions == [(PRODUCER, 0)]
        assert harness.log.read(2, 1 << 20, isolation=FetchIsolation.TXN_COMMITTED).aborted_transactions == []
        assert harness.log.read(0, 1 << 20).aborted_transactions is None

    def test_a_batch_outside_the_open_transaction_is_refused(self, harness: LogHarness) -> None:
        send_txn(harness, 0)
        with pytest.raises(InvalidTxnState):
            send(harness, 1)
        assert send_txn(harness, 1) == 1

    def test_a_marker_without_a_transaction_is_appended(self, harness: LogHarness) -> None:
        harness.end_transaction(PRODUCER, commits=True, epoch=4)
        assert harness.log.last_stable_offset == 1
        assert harness.log.active_producers() == [ActiveProducer(PRODUCER, 4, -1, NOW, 0, -1)]

    def test_after_a_marker_of_a_new_epoch_the_sequence_starts_again(self, harness: LogHarness) -> None:
        send_txn(harness, 0)
        harness.end_transaction(PRODUCER, commits=True, epoch=1)
        with pytest.raises(InvalidProducerEpoch):
            send_txn(harness, 1, epoch=0)
        with pytest.raises(OutOfOrderSequence):
            send_txn(harness, 1, epoch=1)
        assert send_txn(harness, 0, epoch=1) == 2

    def test_markers_of_old_epochs_are_refused(self, harness: LogHarness) -> None:
        send_txn(harness, 0, epoch=3)
        with pytest.raises(InvalidProducerEpoch):
            harness.end_transaction(PRODUCER, commits=True, epoch=2)
        # Under the newer protocol the same epoch means an earlier transaction.
        with pytest.raises(InvalidProducerEpoch):
            harness.log.append(
                marker(PRODUCER, commits=True, epoch=3),
                leader_epoch=0,
                origin=AppendOrigin.COORDINATOR,
                transaction_version=2,
            )
        harness.end_transaction(PRODUCER, commits=True, epoch=3)

    def test_a_replaced_coordinator_is_refused(self, harness: LogHarness) -> None:
        origin = AppendOrigin.COORDINATOR
        harness.append(marker(PRODUCER, commits=True, coordinator_epoch=5), origin=origin)
        with pytest.raises(TransactionCoordinatorFenced):
            harness.append(marker(PRODUCER, commits=True, coordinator_epoch=4), origin=origin)

    def test_the_open_transaction_is_described(self, harness: LogHarness) -> None:
        harness.append(batch(2))
        send_txn(harness, 0)
        [producer] = harness.log.active_producers()
        assert producer == ActiveProducer(PRODUCER, 0, 0, NOW, -1, 2)


class TestAfterRestart:
    def test_only_the_newest_batch_is_recognised(self, harness: LogHarness) -> None:
        for sequence in range(4):
            send(harness, sequence)
        harness.reopen()
        assert harness.append(batch(1, producer_id=PRODUCER, sequence=3)).is_duplicate
        with pytest.raises(OutOfOrderSequence):
            send(harness, 2)
        assert send(harness, 4) == 4

    @pytest.mark.parametrize("is_clean", [True, False])
    def test_an_open_transaction_is_still_open(self, harness: LogHarness, is_clean: bool) -> None:
        harness.append(batch(2))
        send_txn(harness, 0)
        log = harness.reopen() if is_clean else harness.crash()
        log.update_high_watermark(log.log_end_offset)
        assert log.last_stable_offset == 2
        harness.end_transaction(PRODUCER, commits=False)
        assert harness.log.last_stable_offset == 4

    @pytest.mark.parametrize("is_clean", [True, False])
    def test_aborted_transactions_are_still_known(self, harness: LogHarness, is_clean: bool) -> None:
        send_txn(harness, 0)
        harness.end_transaction(PRODUCER, commits=False)
        log = harness.reopen() if is_clean else harness.crash()
        log.update_high_watermark(log.log_end_offset)
        result = log.read(0, 1 << 20, isolation=FetchIsolation.TXN_COMMITTED)
        assert result.aborted_transactions == [(PRODUCER, 0)]

    def test_a_silent_producer_is_forgotten(self, harness: LogHarness) -> None:
        send(harness, 0)
        harness.clock.move(86_400)
        harness.reopen()
        assert harness.log.active_producers() == []
        assert send(harness, 55) == 1


class TestExpiry:
    def test_silent_producers_go_but_not_with_an_open_transaction(self, harness: LogHarness) -> None:
        send(harness, 0, producer=1)
        send_txn(harness, 0, producer=2)
        assert harness.log.producers.remove_expired(NOW + 86_399_999) == 0
        assert harness.log.producers.remove_expired(NOW + 86_400_000) == 1
        assert [p.producer_id for p in harness.log.active_producers()] == [2]

    def test_producers_that_are_gone_already_do_not_count(self, harness: LogHarness) -> None:
        send(harness, 0, producer=1)
        producers, now = harness.log.producers, NOW + 86_400_000
        known = list(producers.entries.values())
        assert producers.remove_expired(now, known) == 1
        assert producers.remove_expired(now, known) == 0


class TestTruncation:
    def test_the_state_goes_back_with_the_log(self, tmp_path: Path) -> None:
        harness = LogHarness(tmp_path, TopicConfig(internal_segment_bytes=200))
        harness.create()
        for sequence in range(10):
            send(harness, sequence)
        assert len(harness.log.segments) > 2
        harness.log.truncate_to(4)
        assert harness.log.producers.entries[PRODUCER].last_sequence == 3
        assert send(harness, 4) == 4

    def test_a_producer_whose_batch_reaches_over_the_log_start_is_known(self, harness: LogHarness) -> None:
        harness.append(batch(4, producer_id=1, sequence=0))
        harness.append(batch(producer_id=2, sequence=0))
        harness.log.delete_records(1)
        harness.log.truncate_to(4)
        assert harness.log.producers.entries[1].last_sequence == 3

    def test_a_cut_transaction_is_forgotten(self, harness: LogHarness) -> None:
        harness.append(batch(3))
        send_txn(harness, 0)
        harness.end_transaction(PRODUCER, commits=False)
        harness.log.truncate_to(3)
        assert harness.log.last_stable_offset == 3
        assert harness.log.active_producers() == []
        assert harness.log.segments.active.txn_index.is_empty

    def test_cutting_a_marker_opens_its_transaction_again(self, harness: LogHarness) -> None:
        send_txn(harness, 0)
        harness.end_transaction(PRODUCER, commits=True)
        harness.log.truncate_to(1)
        assert harness.log.last_stable_offset == 0
        assert harness.log.producers.entries[PRODUCER].txn_first_offset == 0
