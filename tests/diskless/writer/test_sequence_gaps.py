"""What came behind a lost batch of an idempotent producer is not committed."""

from __future__ import annotations

from strandline.diskless.writer.sequence_gaps import SequenceGaps
from tests.diskless.writer.writing import P0, P1, batch


def test_later_batches_of_the_producer_are_stopped_up_to_what_had_come_when_it_was_told() -> None:
    gaps = SequenceGaps()
    gaps.lost(batch(producer=1, sequence=0), number=3, newest=5)
    assert gaps.stops(batch(producer=1, sequence=10), number=4)
    assert gaps.stops(batch(producer=1, sequence=20), number=5)
    assert not gaps.stops(batch(producer=1, sequence=30), number=6)


def test_objects_before_the_lost_one_are_not_concerned() -> None:
    gaps = SequenceGaps()
    gaps.lost(batch(producer=1, sequence=10), number=3, newest=5)
    assert not gaps.stops(batch(producer=1, sequence=0), number=2)


def test_the_lost_batch_itself_and_what_follows_it_pass_when_it_was_sent_again() -> None:
    gaps = SequenceGaps()
    gaps.lost(batch(producer=1, sequence=0), number=1, newest=4)
    assert gaps.stops(batch(producer=1, sequence=1), number=2)
    assert not gaps.stops(batch(producer=1, sequence=0), number=3)
    assert not gaps.stops(batch(producer=1, sequence=1), number=4)


def test_other_partitions_producers_and_epochs_go_on() -> None:
    gaps = SequenceGaps()
    gaps.lost(batch(P0, producer=1, epoch=0, sequence=0), number=1, newest=9)
    assert not gaps.stops(batch(P1, producer=1, epoch=0, sequence=5), number=2)
    assert not gaps.stops(batch(P0, producer=2, epoch=0, sequence=5), number=2)
    assert not gaps.stops(batch(P0, producer=1, epoch=1, sequence=0), number=2)


def test_batches_without_a_producer_leave_no_gap() -> None:
    gaps = SequenceGaps()
    gaps.lost(batch(), number=1, newest=9)
    assert not gaps
    assert not gaps.stops(batch(), number=2)


def test_the_first_loss_counts_whichever_is_noticed_first() -> None:
    gaps = SequenceGaps()
    gaps.lost(batch(producer=1, sequence=20), number=5, newest=6)
    gaps.lost(batch(producer=1, sequence=0), number=3, newest=7)
    gaps.lost(batch(producer=1, sequence=30), number=6, newest=8)
    assert gaps.stops(batch(producer=1, sequence=10), number=4)
    assert gaps.stops(batch(producer=1, sequence=40), number=8)
    assert not gaps.stops(batch(producer=1, sequence=0), number=8)


def test_gaps_are_forgotten_when_their_objects_have_passed() -> None:
    gaps = SequenceGaps()
    gaps.lost(batch(producer=1, sequence=0), number=1, newest=2)
    gaps.lost(batch(producer=2, sequence=0), number=1, newest=3)
    gaps.passed(2)
    assert gaps
    gaps.passed(3)
    assert not gaps
