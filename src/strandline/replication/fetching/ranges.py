"""Followers whose next offset their leader does not have: it is asked where its logs end, and then where they start."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from strandline.model import Offset, TimestampMs
from strandline.reads import EARLIEST, LATEST
from strandline.replication.fetching.followed import FollowedPartition, Key


class OffsetQuestion(NamedTuple):
    """A ListOffsets request: where the leader's logs end (LATEST) or start (EARLIEST)."""

    timestamp: TimestampMs
    followed: Sequence[FollowedPartition]


class OffsetAnswer(NamedTuple):
    """One partition of the answer."""

    topic: str
    partition: int
    error_code: int
    offset: Offset


class RangeMove(enum.Enum):
    """What a follower does that was out of range."""

    GO_ON = enum.auto()
    """The leader has the end of the log by now."""
    CUT = enum.auto()
    """The leader's log ends below: that is possible only after an unclean election."""
    START_AGAIN = enum.auto()
    """The leader's log starts above: nothing of the own one is in it."""
    ASK_AGAIN = enum.auto()
    """The leader has not said it; the offset is the error code, or -1 without one."""


class Moved(NamedTuple):
    """What one of them does, and at which offset."""

    followed: FollowedPartition
    move: RangeMove
    offset: Offset


class OutOfRangeFollowers:
    """Those of one fetcher that are to be asked about."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[Key, FollowedPartition] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, followed: FollowedPartition) -> None:
        """Ask about this one."""
        followed.leader_end = None
        self._waiting[followed.key] = followed

    def leave(self, key: Key) -> None:
        """It is not followed any more."""
        self._waiting.pop(key, None)

    def question(self) -> OffsetQuestion:
        """What to ask next."""
        ends = [one for one in self._waiting.values() if one.leader_end is None]
        return OffsetQuestion(LATEST, ends) if ends else OffsetQuestion(EARLIEST, [*self._waiting.values()])

    def answered(self, question: OffsetQuestion, answers: Sequence[OffsetAnswer]) -> Iterator[Moved]:
        """What those do that are decided by the answer. They are not waited for any more."""
        rows = {(row.topic, row.partition): row for row in answers}
        for followed in question.followed:
            if self._waiting.get(followed.key) is not followed:
                continue
            moved = _decided(followed, question.timestamp, rows.get(followed.partition.topic_partition))
            if moved is not None:
                del self._waiting[followed.key]
                yield moved


def _decided(followed: FollowedPartition, timestamp: TimestampMs, row: OffsetAnswer | None) -> Moved | None:
    """None if the leader has to be asked where its log starts."""
    if row is None or row.error_code or row.offset < 0:
        return Moved(followed, RangeMove.ASK_AGAIN, -1 if row is None else row.error_code)
    end = followed.partition.log.log_end_offset
    if timestamp == LATEST:
        followed.leader_end = row.offset
        return Moved(followed, RangeMove.CUT, row.offset) if row.offset < end else None
    if row.offset > end:
        return Moved(followed, RangeMove.START_AGAIN, row.offset)
    return Moved(followed, RangeMove.GO_ON, end)
