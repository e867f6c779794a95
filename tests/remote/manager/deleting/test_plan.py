"""What retention lets go, and what it must never let go. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from strandline.remote.manager.deleting import plan
from strandline.remote.manager.deleting.plan import DeletionReason, ExpiryPlan, ExpiryQuestion, planning
from strandline.remote.topic_based.cache import RemoteLogMetadataCache
from strandline.remote.turns import AT_ONCE
from strandline.remote.values import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
)
from tests.guards.counting import CountedInstructions
from tests.remote.manager.world import BROKER, FINISHED, TIERED

STARTED = RemoteLogSegmentState.COPY_SEGMENT_STARTED
DELETING = RemoteLogSegmentState.DELETE_SEGMENT_STARTED
NOW = 1_000_000


def plan_expiry(question: ExpiryQuestion) -> ExpiryPlan:
    """All steps at once."""
    steps = planning(question)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            plan: ExpiryPlan = end.value
            return plan


def segment(
    number: int,
    start: int,
    end: int,
    epochs: Mapping[int, int] | None = None,
    *,
    state: RemoteLogSegmentState = FINISHED,
    size: int = 100,
    timestamp: int = NOW,
    broker: int = BROKER,
    event_ms: int = NOW,
) -> RemoteLogSegmentMetadata:
    return RemoteLogSegmentMetadata(
        segment_id=RemoteLogSegmentId(TIERED, UUID(int=number)),
        start_offset=start,
        end_offset=end,
        max_timestamp_ms=timestamp,
        broker_id=broker,
        event_timestamp_ms=event_ms,
        segment_size_in_bytes=size,
        segment_leader_epochs={0: start} if epochs is None else epochs,
        state=state,
    )


def ask(segments: Sequence[RemoteLogSegmentMetadata], **changes: object) -> ExpiryQuestion:
    """About segments whose metadata was written in this order."""
    cache = RemoteLogMetadataCache(TIERED)
    for one in segments:
        cache.apply(replace(one, state=STARTED))
        for state in {FINISHED: (FINISHED,), DELETING: (FINISHED, DELETING)}.get(one.state, ()):
            cache.apply(
                RemoteLogSegmentMetadataUpdate(
                    segment_id=one.segment_id,
                    event_timestamp_ms=one.event_timestamp_ms,
                    state=state,
                    broker_id=one.broker_id,
                )
            )
    question = ExpiryQuestion(
        segments=cache.list_remote_log_segments(),
        from_oldest=cache.list_remote_log_segments(),
        lookup=cache.remote_log_segment_metadata,
        epochs=((0, 0),),
        log_start=0,
        high_watermark=1000,
        log_end=1000,
        local_only_bytes=0,
        retention_ms=-1,
        retention_bytes=-1,
        now_ms=NOW,
        broker_id=BROKER,
        being_copied=None,
        abandoned_before_ms=0,
    )
    return replace(question, **changes)  # type: ignore[arg-type]


def gone(plan: ExpiryPlan) -> list[tuple[int, DeletionReason]]:
    return [(deletion.segment.segment_id.id.int, deletion.reason) for deletion in plan.deletions]


THREE = (segment(1, 0, 9), segment(2, 10, 19), segment(3, 20, 29))


def test_without_limits_everything_stays() -> None:
    plan = plan_expiry(ask(THREE))
    assert gone(plan) == []
    assert plan.log_start == 0
    assert plan.next_due_ms is None


def test_old_segments_go_up_to_the_first_that_is_young_enough() -> None:
    aged = [replace(THREE[i], max_timestamp_ms=NOW - 1000 + 400 * i) for i in range(3)]
    plan = plan_expiry(ask(aged, retention_ms=600))
    assert gone(plan) == [(1, DeletionReason.TIME), (2, DeletionReason.TIME)]
    assert plan.log_start == 20
    assert plan.next_due_ms == NOW - 200 + 600


def test_a_young_segment_keeps_older_ones_behind_it() -> None:
    aged = [THREE[0], replace(THREE[1], max_timestamp_ms=1)]
    assert gone(plan_expiry(ask(aged, retention_ms=600))) == []


def test_size_counts_both_tiers_and_whole_segments_only() -> None:
    assert gone(plan_expiry(ask(THREE, retention_bytes=300))) == []
    assert gone(plan_expiry(ask(THREE, retention_bytes=299))) == []
    assert gone(plan_expiry(ask(THREE, retention_bytes=200))) == [(1, DeletionReason.SIZE)]
    assert gone(plan_expiry(ask(THREE, retention_bytes=200, local_only_bytes=99))) == [(1, DeletionReason.SIZE)]
    plan = plan_expiry(ask(THREE, retention_bytes=200, local_only_bytes=100))
    assert [number for number, _ in gone(plan)] == [1, 2]
    assert plan.log_start == 20


def test_size_counts_what_follows_the_log_elsewhere() -> None:
    assert gone(plan_expiry(ask(THREE, retention_bytes=300, suffix_bytes=99))) == []
    assert gone(plan_expiry(ask(THREE, retention_bytes=300, suffix_bytes=100))) == [(1, DeletionReason.SIZE)]
    plan = plan_expiry(ask(THREE, retention_bytes=300, local_only_bytes=100, suffix_bytes=10**9))
    assert plan.log_start == 30, "the suffix itself is not expired here"


def test_what_went_by_time_counts_against_the_size() -> None:
    aged = [replace(THREE[0], max_timestamp_ms=1), *THREE[1:]]
    assert gone(plan_expiry(ask(aged, retention_ms=600, retention_bytes=200))) == [(1, DeletionReason.TIME)]


def test_failed_and_unfinished_copies_do_not_count_in_size_based_retention() -> None:
    failed = [segment(10 + i, 20, 29, state=state, size=10_000) for i, state in enumerate((STARTED, DELETING))]
    plan = plan_expiry(ask([*THREE, *failed], retention_bytes=300))
    assert gone(plan) == [(11, DeletionReason.INTERRUPTED), (10, DeletionReason.ABANDONED)]
    assert plan.log_start == 0


def test_a_copy_that_is_under_way_does_not_count_and_stays() -> None:
    under_way = segment(10, 30, 39, state=STARTED, size=10_000)
    plan = plan_expiry(ask([*THREE, under_way], retention_bytes=300, being_copied=UUID(int=10)))
    assert gone(plan) == []


def test_duplicates_count_once() -> None:
    twice = [*THREE, segment(10, 0, 9, size=100)]
    plan = plan_expiry(ask(twice, retention_bytes=300))
    assert gone(plan) == [(1, DeletionReason.REDUNDANT)]
    assert plan.log_start == 0


def test_segments_of_another_history_do_not_count() -> None:
    other = segment(10, 10, 29, {5: 10}, size=10_000)
    assert gone(plan_expiry(ask([*THREE, other], retention_bytes=300))) == []


def test_segments_below_the_log_start_go_and_a_segment_that_holds_it_stays() -> None:
    plan = plan_expiry(ask(THREE, log_start=15, epochs=((0, 15),)))
    assert gone(plan) == [(1, DeletionReason.LOG_START)]
    assert plan.log_start == 15


def test_nothing_goes_that_reaches_the_high_watermark() -> None:
    aged = [replace(one, max_timestamp_ms=1) for one in THREE]
    plan = plan_expiry(ask(aged, retention_ms=1, high_watermark=15))
    assert gone(plan) == [(1, DeletionReason.TIME)]
    assert plan.log_start == 10


def test_copies_of_this_broker_that_it_does_not_know_of_are_left_by_a_crash() -> None:
    assert gone(plan_expiry(ask([segment(1, 0, 9, state=STARTED)]))) == [(1, DeletionReason.ABANDONED)]


def test_copies_of_another_broker_may_still_go_on() -> None:
    others = [segment(1, 0, 9, state=STARTED, broker=2, event_ms=NOW - 1000)]
    assert gone(plan_expiry(ask(others, abandoned_before_ms=NOW - 2000))) == []
    assert gone(plan_expiry(ask(others, abandoned_before_ms=NOW - 500))) == [(1, DeletionReason.ABANDONED)]


def test_of_two_equal_segments_the_one_that_readers_are_sent_to_stays() -> None:
    question = ask([segment(1, 0, 9), segment(2, 0, 9)])
    served = question.lookup(0, 5)
    assert served is not None
    (deletion,) = plan_expiry(question).deletions
    assert deletion.reason is DeletionReason.REDUNDANT
    assert deletion.segment.segment_id != served.segment_id


def test_a_segment_that_another_covers_goes_if_no_reader_is_sent_to_it() -> None:
    plan = plan_expiry(ask([segment(1, 0, 9), segment(2, 10, 19), segment(3, 0, 29)]))
    assert gone(plan) == [(1, DeletionReason.REDUNDANT), (2, DeletionReason.REDUNDANT)]


def test_segments_that_only_overlap_stay() -> None:
    assert gone(plan_expiry(ask([segment(1, 0, 15), segment(2, 10, 29)]))) == []


def test_a_segment_of_another_history_covers_nothing() -> None:
    unclean = segment(2, 0, 29, {0: 0, 1: 5})
    assert gone(plan_expiry(ask([segment(1, 0, 9), unclean], epochs=((0, 0), (2, 20))))) == []


def test_after_an_unclean_election_what_is_older_than_the_log_goes() -> None:
    lost = [segment(1, 0, 9, {0: 0}), segment(2, 10, 19, {0: 10, 1: 12})]
    kept = segment(3, 0, 9, {2: 0})
    plan = plan_expiry(ask([*lost, kept], epochs=((2, 0),)))
    assert gone(plan) == [(1, DeletionReason.UNREFERENCED), (2, DeletionReason.UNREFERENCED)]
    assert plan.log_start == 0


def test_converted_segments_behind_the_log_are_not_unreferenced() -> None:
    """The log of a topic that became diskless is empty, and has only the epoch of its newest leader."""
    converted = segment(1, 50, 99, {0: 50})
    assert gone(plan_expiry(ask([converted], epochs=((3, 50),), log_start=60, log_end=50))) == []


def test_a_segment_with_an_epoch_of_the_log_is_not_unreferenced() -> None:
    assert gone(plan_expiry(ask([segment(1, 0, 19, {0: 0, 2: 10})], epochs=((2, 0),)))) == []


def test_while_the_epochs_of_the_log_are_incomplete_nothing_counts_as_unreferenced() -> None:
    segments = [segment(1, 0, 9, {0: 0}), segment(2, 10, 19, {1: 10})]
    assert gone(plan_expiry(ask(segments, epochs=((2, 20),), log_start=0))) == []
    assert len(gone(plan_expiry(ask(segments, epochs=((2, 20),), log_start=20)))) == 2


@pytest.mark.parametrize("retention_ms", [-1, NOW + 1])
def test_time_without_end_expires_nothing(retention_ms: int) -> None:
    aged = [replace(one, max_timestamp_ms=0) for one in THREE]
    assert gone(plan_expiry(ask(aged, retention_ms=retention_ms))) == []


def test_retention_goes_over_epochs_and_passes_by_what_does_not_belong() -> None:
    segments = [
        segment(1, 0, 9, {0: 0}, timestamp=1),
        segment(2, 5, 14, {0: 5, 1: 8}, timestamp=1),  # another history: the log has epoch 2 from 10 on
        segment(3, 10, 19, {2: 10}, timestamp=1),
        segment(4, 20, 29, {2: 20}),
    ]
    plan = plan_expiry(ask(segments, epochs=((0, 0), (2, 10)), retention_ms=600))
    assert gone(plan) == [(1, DeletionReason.TIME), (3, DeletionReason.TIME)]
    assert plan.log_start == 20


def aged_segments(number: int) -> list[RemoteLogSegmentMetadata]:
    return [segment(at, 10 * at, 10 * at + 9, timestamp=1) for at in range(number)]


def ask_about_many(segments: Sequence[RemoteLogSegmentMetadata], **changes: object) -> ExpiryQuestion:
    return ask(segments, log_end=1_000_000, high_watermark=1_000_000, **changes)


@pytest.mark.parametrize("limits", [{"retention_ms": 1}, {"retention_bytes": 0}, {"log_start": 900_000}])
def test_a_plan_for_many_segments_is_made_in_small_steps(limits: dict[str, int]) -> None:
    def longest_turn(number: int) -> int:
        question = ask_about_many(aged_segments(number), **limits)
        steps = planning(question)
        with CountedInstructions() as counted:
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    made: ExpiryPlan = end.value
                    break
                counted.end_turn()
        assert len(made.deletions) == number
        return counted.longest_turn

    assert longest_turn(20 * AT_ONCE) <= longest_turn(5 * AT_ONCE) * 1.05


def test_retention_looks_no_further_than_the_first_segment_that_stays() -> None:
    segments = [*aged_segments(3), *(segment(at, 10 * at, 10 * at + 9) for at in range(3, 100))]
    walk = iter(segments)
    made = plan_expiry(ask_about_many(segments, retention_ms=600, from_oldest=walk))
    assert len(made.deletions) == 3
    assert next(walk) == segments[4]


def test_a_plan_has_no_more_deletions_than_it_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MOST_DELETIONS", 4)
    abandoned = segment(50, 500, 509, state=STARTED)
    made = plan_expiry(ask_about_many([*aged_segments(10), abandoned], retention_ms=1))
    assert [number for number, _ in gone(made)] == [0, 1, 2, 50]
    assert (made.log_start, made.is_complete, made.has_kept) == (30, False, True)
    others = plan_expiry(ask_about_many([*aged_segments(10)][:3], retention_ms=1))
    assert (others.log_start, others.is_complete, others.has_kept) == (30, True, False)


def test_what_lies_below_the_log_start_goes_behind_a_segment_that_stays() -> None:
    other = segment(2, 5, 14, {0: 5, 1: 12})
    below = segment(3, 12, 14, {0: 12})
    made = plan_expiry(ask([segment(1, 0, 29), other, below], log_start=20))
    assert gone(made) == [(3, DeletionReason.LOG_START)]
