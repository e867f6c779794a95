"""Offsets of a share partition that are in flight, as runs: neighbours that are delivered equally far."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from strandline.coordinators.share_states import DeliveryBatch, DeliveryState
from strandline.model import Offset

_AVAILABLE, _ACQUIRED = DeliveryState.AVAILABLE, DeliveryState.ACQUIRED


class _Before(NamedTuple):
    """What a run was before a change that is not stored yet."""

    state: DeliveryState
    deliveries: int
    member: str


@dataclass(slots=True, eq=False)
class OffsetRun:
    """Offsets from `first` to `last`."""

    first: Offset
    last: Offset
    state: DeliveryState
    count: int
    """How often they were delivered."""
    member: str = ""
    """The member that has acquired them."""
    deadline: float = 0.0
    """Until when, in seconds of the monotonic clock."""
    before: _Before | None = None
    """Set while a change is being stored. Such a run is not split, and changes in no other way."""

    @property
    def is_changing(self) -> bool:
        return self.before is not None

    @property
    def is_available(self) -> bool:
        return self.state is _AVAILABLE and self.before is None

    @property
    def is_settled(self) -> bool:
        return self.state.is_terminal and self.before is None

    def is_held(self) -> bool:
        """Acquired by a member that has not answered yet."""
        return self.state is _ACQUIRED and self.before is None

    def __len__(self) -> int:
        return self.last - self.first + 1

    def batch(self) -> DeliveryBatch:
        return DeliveryBatch(self.first, self.last, self.state, self.count)

    def begin_change(self, state: DeliveryState, count: int) -> None:
        self.before = _Before(self.state, self.count, self.member)
        self.state, self.count, self.member = state, count, ""

    def end_change(self, *, is_stored: bool) -> None:
        assert self.before is not None, "no change has begun"
        if not is_stored:
            self.state, self.count, self.member = self.before
        self.before = None


class OffsetRuns:
    """Runs without gaps between them, in order: from `start` up to, but without, `end`."""

    def __init__(self, start: Offset, batches: Iterable[DeliveryBatch] = ()) -> None:
        """Offsets between and before the batches were never settled, so they are available."""
        self.start = self.end = start
        self._runs: list[OffsetRun] = []
        for first, last, state, count in batches:
            if last < self.end:
                continue
            if first > self.end:
                self.append(OffsetRun(self.end, first - 1, _AVAILABLE, 0))
            self.append(OffsetRun(self.end, last, state, count))
        self.drop_settled()

    def __iter__(self) -> Iterator[OffsetRun]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    def append(self, run: OffsetRun) -> None:
        """Behind all others."""
        assert run.first == self.end, f"a run begins at {run.first}, not at the end {self.end}"
        last = self._runs[-1] if self._runs else None
        if last is not None and _may_join(last, run):
            last.last = run.last
        else:
            self._runs.append(run)
        self.end = run.last + 1

    def within(self, first: Offset, last: Offset) -> list[OffsetRun]:
        """The runs that have any of these offsets."""
        if last < self.start or first >= self.end:
            return []
        begin = max(bisect_right(self._runs, first, key=_first) - 1, 0)
        return self._runs[begin : bisect_right(self._runs, last, key=_first)]

    def cut(self, run: OffsetRun, first: Offset, last: Offset) -> OffsetRun:
        """The part of a run between these offsets, as a run of its own."""
        assert run.before is None, "a run that is changing is not split"
        at = bisect_right(self._runs, run.first, key=_first) - 1
        if run.last > last:
            self._runs.insert(at + 1, OffsetRun(last + 1, run.last, run.state, run.count, run.member, run.deadline))
            run.last = last
        if run.first < first:
            rest = OffsetRun(first, run.last, run.state, run.count, run.member, run.deadline)
            run.last = first - 1
            self._runs.insert(at + 1, rest)
            return rest
        return run

    def drop_settled(self) -> None:
        """Move the start behind what is settled."""
        settled = 0
        for run in self._runs:
            if not run.is_settled:
                break
            settled += 1
        if settled:
            self.start = self._runs[settled - 1].last + 1
            del self._runs[:settled]

    def drop_before(self, offset: Offset) -> None:
        """The log has no records before this offset any more."""
        if offset >= self.end:
            self._runs.clear()
            self.start = self.end = offset
            return
        del self._runs[: bisect_right(self._runs, offset, key=_first) - 1]
        self._runs[0].first = self.start = offset
        self.drop_settled()


def _first(run: OffsetRun) -> Offset:
    return run.first


def _may_join(before: OffsetRun, run: OffsetRun) -> bool:
    return (
        before.state is run.state
        and before.count == run.count
        and before.member == run.member
        and before.deadline == run.deadline
        and before.before is None
    )
