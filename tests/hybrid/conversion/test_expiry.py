"""When converted segments expire, and where the log begins then."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from uuid import UUID

import pytest

from strandline.controlplane.values import LATE_MS, DisklessLog
from strandline.hybrid.conversion.expiry import ConvertedExpiry, ConvertedRetention, plan_expiry
from strandline.model import LeaderEpoch, Offset, TopicIdPartition, TopicPartition
from strandline.remote.manager.deleting.plan import DeletionReason
from strandline.remote.values import RemoteLogSegmentId, RemoteLogSegmentMetadata, RemoteLogSegmentState

S = RemoteLogSegmentState
PARTITION = TopicIdPartition(UUID(int=7), TopicPartition("t", 0))
NOW = 1_000_000
FOR_EVER = ConvertedRetention(ms=-1, bytes=-1)


def segment(
    number: int,
    start: int,
    end: int,
    *,
    time: int = NOW,
    size: int = 100,
    state: RemoteLogSegmentState = S.COPY_SEGMENT_FINISHED,
) -> RemoteLogSegmentMetadata:
    return RemoteLogSegmentMetadata(
        segment_id=RemoteLogSegmentId(PARTITION, UUID(int=number)),
        start_offset=start,
        end_offset=end,
        max_timestamp_ms=time,
        broker_id=1,
        event_timestamp_ms=NOW,
        segment_size_in_bytes=size,
        segment_leader_epochs={0: start},
        state=state,
    )


LOG = DisklessLog(
    partition=PARTITION,
    log_start_offset=0,
    high_watermark=100,
    tiered_log_start_offset=0,
    tiered_high_offset=29,
    diskless_start_offset=30,
    byte_size=1000,
)
SEGMENTS = [
    segment(1, 0, 9, time=NOW - 300),
    segment(2, 10, 19, time=NOW - 200),
    segment(3, 20, 29, time=NOW - 100),
]


def plan(
    retention: ConvertedRetention = FOR_EVER,
    log: DisklessLog = LOG,
    segments: Sequence[RemoteLogSegmentMetadata] = SEGMENTS,
    under_way: Set[UUID] = frozenset(),
    others: Set[int] = frozenset(),
) -> ConvertedExpiry:
    """`others`: the numbers of segments with records that are not in the log."""

    def lookup(epoch: LeaderEpoch, offset: Offset) -> RemoteLogSegmentMetadata | None:
        """As the cache of remote log metadata does: the widest one, the newest of equal ones."""
        found = [
            (one.end_offset - one.start_offset, at, one)
            for at, one in enumerate(segments)
            if one.state is S.COPY_SEGMENT_FINISHED and one.start_offset <= offset <= one.end_offset
        ]
        return max(found)[2] if found else None

    steps = plan_expiry(
        log,
        segments,
        retention,
        lookup=lookup,
        now_ms=NOW,
        under_way=under_way,
        is_of_log=lambda one: one.segment_id.id.int not in others,
    )
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: ConvertedExpiry = end.value
            return found


def deleted(found: ConvertedExpiry) -> list[tuple[int, DeletionReason]]:
    return [(deletion.segment.segment_id.id.int, deletion.reason) for deletion in found.deletions]


def test_without_limits_everything_stays() -> None:
    found = plan()
    assert (found.log_start, deleted(found), found.next_due_ms, found.remaining) == (0, [], None, 3)
    assert found.converted_bytes == 300


@pytest.mark.parametrize(
    ("ms", "start", "expired", "due"),
    [
        (301, 0, [], NOW + 1),
        (300, 10, [1], NOW + 100),
        (150, 20, [1, 2], NOW + 50),
        (0, 30, [1, 2, 3], None),
    ],
)
def test_by_time(ms: int, start: int, expired: list[int], due: int | None) -> None:
    found = plan(ConvertedRetention(ms=ms, bytes=-1))
    assert (found.log_start, deleted(found)) == (start, [(number, DeletionReason.TIME) for number in expired])
    assert found.next_due_ms == due
    assert found.remaining == 3 - len(expired)


def test_time_stops_at_the_first_segment_that_stays() -> None:
    late = [segment(1, 0, 9), *SEGMENTS[1:]]
    assert plan(ConvertedRetention(ms=150, bytes=-1), segments=late).deletions == []


@pytest.mark.parametrize(
    ("size", "start", "expired"),
    [(1300, 0, []), (1201, 0, []), (1200, 10, [1]), (1000, 30, [1, 2, 3]), (0, 30, [1, 2, 3])],
)
def test_by_size_of_the_whole_log(size: int, start: int, expired: list[int]) -> None:
    """Its rows have 1000 bytes, which are not expired here."""
    found = plan(ConvertedRetention(ms=-1, bytes=size))
    assert (found.log_start, deleted(found)) == (start, [(number, DeletionReason.SIZE) for number in expired])


def test_below_the_log_start_segments_go_whatever_retention_says() -> None:
    found = plan(log=replace(LOG, log_start_offset=15))
    assert (found.log_start, deleted(found)) == (15, [(1, DeletionReason.LOG_START)])


def test_a_log_that_still_has_a_prefix_is_not_expired_here() -> None:
    log = replace(LOG, log_start_offset=0, diskless_log_start_offset=10)
    found = plan(ConvertedRetention(ms=0, bytes=0), log, SEGMENTS[1:])
    assert (found.log_start, found.deletions) == (0, [])


def test_segments_of_another_history_do_not_count_and_go_when_the_log_start_has_passed_them() -> None:
    segments = [*SEGMENTS, segment(9, 0, 14, time=NOW, size=10_000)]
    found = plan(ConvertedRetention(ms=-1, bytes=1200), segments=segments, others={9})
    assert (found.log_start, deleted(found)) == (10, [(1, DeletionReason.SIZE)])
    found = plan(ConvertedRetention(ms=150, bytes=-1), segments=segments, others={9})
    assert (found.log_start, [number for number, _ in deleted(found)]) == (20, [1, 2, 9])


def test_an_upload_that_nobody_knows_is_deleted_after_a_while() -> None:
    known, young, lost = (segment(number, 30, 39, state=S.COPY_SEGMENT_STARTED) for number in (4, 5, 6))
    known, lost = (replace(one, event_timestamp_ms=NOW - LATE_MS - 1) for one in (known, lost))
    found = plan(segments=[*SEGMENTS, known, young, lost], under_way={UUID(int=4)})
    assert deleted(found) == [(6, DeletionReason.ABANDONED)]
    assert found.remaining == 5


def test_segments_that_are_not_committed_are_left_alone() -> None:
    """Those behind the read boundary are finished but not in the log yet; others are being uploaded."""
    more = [*SEGMENTS, segment(4, 30, 39, time=0), segment(5, 40, 49, time=0, state=S.COPY_SEGMENT_STARTED)]
    found = plan(ConvertedRetention(ms=0, bytes=-1), segments=more)
    assert (found.log_start, [number for number, _ in deleted(found)]) == (30, [1, 2, 3])
    assert found.remaining == 2


def test_interrupted_deletions_go_on() -> None:
    first = replace(SEGMENTS[0], state=S.DELETE_SEGMENT_STARTED)
    found = plan(log=replace(LOG, log_start_offset=10), segments=[first, *SEGMENTS[1:]])
    assert deleted(found) == [(1, DeletionReason.INTERRUPTED)]


def test_of_two_copies_the_one_that_readers_use_stays() -> None:
    twice = [SEGMENTS[0], segment(9, 0, 9), *SEGMENTS[1:]]
    assert deleted(plan(segments=twice)) == [(1, DeletionReason.REDUNDANT)]
    wide = [segment(9, 0, 19), *SEGMENTS[1:]]
    assert deleted(plan(segments=wide)) == [(2, DeletionReason.REDUNDANT)]
    sized = plan(ConvertedRetention(ms=-1, bytes=1200), segments=wide)
    assert sized.log_start == 0, "the copy does not count"


def test_segments_that_somebody_finishes_or_gives_up_are_left_to_him() -> None:
    """Also if their records are deleted already, or their deletion has begun."""
    aborting = segment(5, 40, 49, state=S.DELETE_SEGMENT_STARTED)
    more = [*SEGMENTS, segment(4, 30, 39), aborting]
    log = replace(LOG, log_start_offset=60)
    assert [number for number, _ in deleted(plan(log=log, segments=more))] == [5, 1, 2, 3, 4]
    found = plan(log=log, segments=more, under_way={UUID(int=4), UUID(int=5)})
    assert ([number for number, _ in deleted(found)], found.remaining) == ([1, 2, 3], 2)


@pytest.mark.parametrize(("limit", "due"), [(-1, None), (1250, 1050), (1200, 1100), (900, None)])
def test_the_size_of_the_rows_at_which_the_next_segment_expires(limit: int, due: int | None) -> None:
    retention = ConvertedRetention(ms=-1, bytes=limit)
    found = plan(retention)
    assert found.next_due_byte_size == due
    if due is not None:
        left = [one for one in SEGMENTS if one.start_offset >= found.log_start]
        log = replace(LOG, log_start_offset=found.log_start)
        assert plan(retention, replace(log, byte_size=due - 1), left).log_start == found.log_start
        assert plan(retention, replace(log, byte_size=due), left).log_start == found.log_start + 10
