"""The rules of delivery to one share group: which offsets a member acquires, and what its answers make of them.

Pure: no clock, no I/O. A change that has to be stored is a `DeliveryChange`; until it is committed or rolled back, its
offsets change in no other way, and the start does not move beyond them.

Offsets without a record that consumers may read (compacted, markers of transactions, aborted records) are archived when
a read shows that they are. Offsets that only decoding would show to be gaps are acquired with the others; the client
acknowledges them as gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import groupby
from typing import Final, NamedTuple

from strandline.coordinators.share_states import DeliveryBatch, DeliveryState
from strandline.errors import InvalidRequest
from strandline.model import Offset
from strandline.share_delivery.runs import OffsetRun, OffsetRuns
from strandline.share_errors import InvalidRecordState

_S = DeliveryState
_LEAST_THROTTLED: Final = 2


class AcknowledgeType(IntEnum):
    """What a member says about a record. Kafka's numbers."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


_STATE_AFTER: Final = {
    AcknowledgeType.GAP: _S.ARCHIVED,
    AcknowledgeType.ACCEPT: _S.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: _S.AVAILABLE,
    AcknowledgeType.REJECT: _S.ARCHIVED,
}


class Acknowledgement(NamedTuple):
    """Offsets from `first` to `last`, with one type for all or one for each."""

    first: Offset
    last: Offset
    types: Sequence[AcknowledgeType]

    def pieces(self) -> Iterator[tuple[Offset, Offset, AcknowledgeType]]:
        """Neighbours of one type."""
        if len(self.types) == 1:
            yield self.first, self.last, self.types[0]
            return
        position = self.first
        for kind, equal in groupby(self.types):
            count = sum(1 for _ in equal)
            yield position, position + count - 1, kind
            position += count


class FetchedBatch(NamedTuple):
    """A record batch that was read; one that is not deliverable is a marker, or of an aborted transaction."""

    first: Offset
    last: Offset
    is_deliverable: bool = True


class AcquiredBatch(NamedTuple):
    """Offsets that a member has acquired, and how often they were delivered, this time included."""

    first: Offset
    last: Offset
    delivery_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AcquireLimits:
    """How much a member gets."""

    max_records: int
    """Reached with whole batches, unless `is_strict`."""
    batch_size: int
    """Acquired offsets are cut between record batches into parts of at least this many."""
    max_locks: int
    """New offsets are acquired while the end is less than this far from the start."""
    max_deliveries: int
    is_strict: bool = False


@dataclass(slots=True, eq=False)
class DeliveryChange:
    """Runs that change together when that is stored."""

    runs: list[OffsetRun] = field(default_factory=list)

    def batches(self) -> Iterator[DeliveryBatch]:
        return (run.batch() for run in self.runs)


class ShareDelivery:
    """The offsets of one share partition, from the first that is not settled on."""

    def __init__(self, start: Offset, batches: Iterable[DeliveryBatch] = ()) -> None:
        self._runs = OffsetRuns(start, batches)

    @property
    def start(self) -> Offset:
        """Everything before it is settled."""
        return self._runs.start

    @property
    def end(self) -> Offset:
        """The first offset that was never acquired, nor anything behind it."""
        return self._runs.end

    @property
    def settled_count(self) -> int:
        """How many offsets from the start on are settled, or are being settled."""
        return sum(len(run) for run in self._runs if run.state.is_terminal)

    def next_offset(self) -> Offset:
        """Where the next member has to read: the first available offset, or the end."""
        return next((run.first for run in self._runs if run.is_available), self._runs.end)

    def can_acquire(self, max_locks: int) -> bool:
        """Whether a read may bring anything to acquire."""
        return self.end - self.start < max_locks or self.next_offset() < self.end

    def next_deadline(self) -> float | None:
        """When the first lock ends."""
        return min((run.deadline for run in self._runs if run.is_held()), default=None)

    def states(self) -> Iterator[tuple[Offset, OffsetRun]]:
        """Every offset in flight with its run, for tests and reports."""
        return ((offset, run) for run in self._runs for offset in range(run.first, run.last + 1))

    # Acquiring

    def acquire(
        self,
        member: str,
        read_from: Offset,
        batches: Sequence[FetchedBatch],
        limits: AcquireLimits,
        *,
        deadline: float,
    ) -> list[AcquiredBatch]:
        """Give a member what is available of these batches, which a read from `read_from` on has found."""
        acquired: list[AcquiredBatch] = []
        left = limits.max_records
        position = max(read_from, self._runs.start)
        for first, last, is_deliverable in batches:
            if left <= 0 or position > self._runs.end:
                break
            if first > position:
                self._archive(position, first - 1)
                position = first
            if last < position:
                continue
            if not is_deliverable:
                self._archive(position, last)
            else:
                taken, may_go_on = self._take(member, position, last, left, limits, deadline, acquired)
                left -= taken
                if not may_go_on:
                    break
            position = last + 1
        self._runs.drop_settled()
        return acquired

    def _archive(self, first: Offset, last: Offset) -> None:
        """There is nothing to deliver at these offsets."""
        for run in self._runs.within(first, last):
            if run.is_available:
                self._runs.cut(run, max(first, run.first), min(last, run.last)).state = _S.ARCHIVED
        end = self._runs.end
        if first <= end <= last:
            self._runs.append(OffsetRun(end, last, _S.ARCHIVED, 0))

    def _take(
        self,
        member: str,
        first: Offset,
        last: Offset,
        left: int,
        limits: AcquireLimits,
        deadline: float,
        acquired: list[AcquiredBatch],
    ) -> tuple[int, bool]:
        """Acquire what is available of one record batch. How many offsets, and whether others may follow."""
        taken = 0
        for run in self._runs.within(first, last):
            if not run.is_available:
                continue
            run = self._runs.cut(run, max(first, run.first), min(last, run.last))
            most = len(run) if not limits.is_strict else min(left - taken, len(run))
            throttled = _throttled(run, limits.max_deliveries)
            if throttled is not None:
                if taken or acquired:
                    return taken, False  # records that often fail come without others
                most = min(most, throttled)
            run = self._runs.cut(run, run.first, run.first + most - 1)
            run.state, run.count, run.member, run.deadline = _S.ACQUIRED, run.count + 1, member, deadline
            taken += most
            _add(acquired, AcquiredBatch(run.first, run.last, run.count), limits.batch_size)
            if throttled is not None or (limits.is_strict and taken >= left):
                return taken, False
        runs = self._runs
        if not first <= runs.end <= last:
            return taken, True
        if runs.end - runs.start >= limits.max_locks:
            return taken, False
        if limits.is_strict:
            last = min(last, runs.end + left - taken - 1)
        begin = runs.end
        runs.append(OffsetRun(begin, last, _S.ACQUIRED, 1, member, deadline))
        _add(acquired, AcquiredBatch(begin, last, 1), limits.batch_size)
        return taken + last - begin + 1, True

    # Answers of members

    def acknowledge(
        self,
        member: str,
        acknowledgements: Sequence[Acknowledgement],
        *,
        max_deliveries: int,
        renewed_until: float | None,
    ) -> DeliveryChange:
        """What a member says about records that it has acquired: as a whole, or not at all.

        `renewed_until` is when renewed locks end; None: they cannot be renewed. Offsets before the start are settled,
        so nothing that is said about them counts. Raises InvalidRecordState, InvalidRequest.
        """
        self._check(member, acknowledgements, may_renew=renewed_until is not None)
        changed = DeliveryChange()
        for acknowledgement in acknowledgements:
            for first, last, kind in acknowledgement.pieces():
                for run in self._runs.within(first, last):
                    run = self._runs.cut(run, max(first, run.first), min(last, run.last))
                    if kind is AcknowledgeType.RENEW:
                        assert renewed_until is not None, "checked before"
                        run.deadline = renewed_until
                    else:
                        run.begin_change(_after(_STATE_AFTER[kind], run.count, max_deliveries), run.count)
                        changed.runs.append(run)
        return changed

    def _check(self, member: str, acknowledgements: Sequence[Acknowledgement], *, may_renew: bool) -> None:
        previous = -1
        for first, last, types in acknowledgements:
            if last < self.start:
                continue
            if last >= self.end:
                if not self._runs:
                    raise InvalidRecordState(f"Records {first} to {last} are not acquired by anybody.")
                raise InvalidRequest(f"Records {first} to {last} reach beyond {self.end - 1}, the last acquired one.")
            if first <= previous:
                raise InvalidRecordState(f"Record {first} is acknowledged twice in one request.")
            previous = last
            if AcknowledgeType.RENEW in types and not may_renew:
                raise InvalidRecordState("Locks of this group cannot be renewed: share.renew.acknowledge.enable=false.")
            for run in self._runs.within(max(first, self.start), last):
                if not run.is_held() or run.member != member:
                    raise InvalidRecordState(
                        f"Records {max(run.first, first)} to {min(run.last, last)} are not acquired by member {member}."
                    )

    def release(self, member: str, *, max_deliveries: int) -> DeliveryChange:
        """The member is gone: what it has acquired was delivered once more, and failed. It may be what ended it."""
        changed = DeliveryChange([run for run in self._runs if run.is_held() and run.member == member])
        for run in changed.runs:
            run.begin_change(_after(_S.AVAILABLE, run.count, max_deliveries), run.count)
        return changed

    def commit(self, transition: DeliveryChange) -> None:
        """The change is stored."""
        for run in transition.runs:
            run.end_change(is_stored=True)
        self._runs.drop_settled()

    def roll_back(self, transition: DeliveryChange) -> None:
        """The change is not stored: members have what they had. Locks that have ended meanwhile are found later."""
        for run in transition.runs:
            run.end_change(is_stored=False)

    # Time and the log

    def expire(self, now: float, *, max_deliveries: int) -> list[DeliveryBatch]:
        """Locks that have ended: their records are available again, or given up. What has changed."""
        changed: list[DeliveryBatch] = []
        for run in self._runs:
            if run.is_held() and run.deadline <= now:
                run.state, run.member = _after(_S.AVAILABLE, run.count, max_deliveries), ""
                changed.append(run.batch())
        self._runs.drop_settled()
        return changed

    def move_start(self, log_start: Offset) -> None:
        """The log does not reach back further than this."""
        if log_start > self.start:
            self._runs.drop_before(log_start)


def _after(state: DeliveryState, count: int, max_deliveries: int) -> DeliveryState:
    """A record that was delivered often enough is not made available again."""
    return _S.ARCHIVED if state is _S.AVAILABLE and count >= max_deliveries else state


def _throttled(run: OffsetRun, max_deliveries: int) -> int | None:
    """How many of these records are delivered at a time if they have failed often; None: any number.

    One record that cannot be processed makes those that are delivered with it fail. From half of the deliveries on,
    half as many come at a time, and for the last delivery each record comes alone.
    """
    if run.count < max(_LEAST_THROTTLED, -(-max_deliveries // 2)):
        return None
    return 1 if run.count >= max_deliveries - 1 else max(len(run) // 2, 1)


def _add(acquired: list[AcquiredBatch], batch: AcquiredBatch, batch_size: int) -> None:
    last = acquired[-1] if acquired else None
    if (
        last is not None
        and last.last + 1 == batch.first
        and last.delivery_count == batch.delivery_count
        and last.last - last.first + 1 < batch_size
    ):
        acquired[-1] = last._replace(last=batch.last)
    else:
        acquired.append(batch)
