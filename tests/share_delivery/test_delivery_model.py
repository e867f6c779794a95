"""Delivery by runs of offsets, against a model that knows each offset by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from strandline.coordinators.share_states import DeliveryBatch, DeliveryState
from strandline.errors import InvalidRequest, StrandlineError
from strandline.share_delivery.delivery import (
    Acknowledgement,
    AcknowledgeType,
    AcquireLimits,
    DeliveryChange,
    FetchedBatch,
    ShareDelivery,
)
from strandline.share_errors import InvalidRecordState

S = DeliveryState
T = AcknowledgeType
MEMBERS = st.sampled_from(["a", "b"])
# With these limits, records that fail often come one by one or not at all, whatever was delivered with them.
DELIVERIES = st.sampled_from([2, 3])
AFTER = {T.GAP: S.ARCHIVED, T.ACCEPT: S.ACKNOWLEDGED, T.RELEASE: S.AVAILABLE, T.REJECT: S.ARCHIVED}


@dataclass(frozen=True)
class One:
    """One offset."""

    state: DeliveryState
    count: int = 0
    member: str = ""
    deadline: float = 0.0
    before: One | None = None

    @property
    def is_held(self) -> bool:
        return self.state is S.ACQUIRED and self.before is None

    @property
    def is_available(self) -> bool:
        return self.state is S.AVAILABLE and self.before is None


class Model:
    """Too simple to be wrong."""

    def __init__(self, start: int) -> None:
        self.start = self.end = start
        self.offsets: dict[int, One] = {}

    def next_offset(self) -> int:
        return next((offset for offset in sorted(self.offsets) if self.offsets[offset].is_available), self.end)

    def settle(self) -> None:
        while (one := self.offsets.get(self.start)) is not None and one.state.is_terminal and one.before is None:
            del self.offsets[self.start]
            self.start += 1

    def acquire(
        self, member: str, read_from: int, batches: list[FetchedBatch], limits: AcquireLimits, deadline: float
    ) -> dict[int, int]:
        acquired: dict[int, int] = {}
        position = max(read_from, self.start)
        for first, last, is_deliverable in batches:
            if len(acquired) >= limits.max_records or position > self.end:
                break
            for offset in range(position, first):
                self.archive(offset)
            position = max(position, first)
            if not is_deliverable:
                for offset in range(position, last + 1):
                    self.archive(offset)
            elif not self.take(member, range(position, last + 1), limits, deadline, acquired):
                break
            position = max(position, last + 1)
        self.settle()
        return acquired

    def archive(self, offset: int) -> None:
        if offset == self.end:
            self.offsets[offset] = One(S.ARCHIVED)
            self.end += 1
        elif offset in self.offsets and self.offsets[offset].is_available:
            self.offsets[offset] = replace(self.offsets[offset], state=S.ARCHIVED)

    def take(self, member: str, batch: range, limits: AcquireLimits, deadline: float, acquired: dict[int, int]) -> bool:
        """Whether the next batch may be looked at."""
        for offset in batch:
            one = self.offsets.get(offset)
            if one is None or not one.is_available:
                continue
            is_last_chance = limits.max_deliveries == 3 and one.count == 2
            if is_last_chance and acquired:
                return False
            acquired[offset] = one.count + 1
            self.offsets[offset] = One(S.ACQUIRED, one.count + 1, member, deadline)
            if is_last_chance or (limits.is_strict and len(acquired) >= limits.max_records):
                return False
        if self.end not in batch:
            return True
        if self.end - self.start >= limits.max_locks:
            return False
        for offset in range(self.end, batch.stop):
            if limits.is_strict and len(acquired) >= limits.max_records:
                break
            acquired[offset] = 1
            self.offsets[offset] = One(S.ACQUIRED, 1, member, deadline)
            self.end += 1
        return True

    def refusal(
        self, member: str, said: dict[int, AcknowledgeType], *, may_renew: bool
    ) -> type[StrandlineError] | None:
        if max(said) < self.start:
            return None
        if max(said) >= self.end:
            return InvalidRequest if self.offsets else InvalidRecordState
        if T.RENEW in said.values() and not may_renew:
            return InvalidRecordState
        known = [self.offsets[offset] for offset in said if offset in self.offsets]
        return None if all(one.is_held and one.member == member for one in known) else InvalidRecordState


class DeliveryAgainstModel(RuleBasedStateMachine):
    """Any order of reads, answers, losses and ends of locks."""

    changes: Bundle[DeliveryChange] = Bundle("changes")

    @initialize(start=st.integers(0, 5))
    def begin(self, start: int) -> None:
        self.delivery, self.model = ShareDelivery(start), Model(start)
        self.now = 0.0
        self.offsets_of: dict[DeliveryChange, list[int]] = {}

    @rule(
        member=MEMBERS,
        layout=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 6), st.booleans()), min_size=1, max_size=4),
        max_records=st.integers(1, 12),
        batch_size=st.integers(1, 6),
        max_locks=st.integers(1, 20),
        max_deliveries=DELIVERIES,
        is_strict=st.booleans(),
        lock=st.integers(1, 3),
    )
    def read(
        self,
        member: str,
        layout: list[tuple[int, int, bool]],
        max_records: int,
        batch_size: int,
        max_locks: int,
        max_deliveries: int,
        is_strict: bool,
        lock: int,
    ) -> None:
        read_from = position = self.model.next_offset()
        batches = []
        for gap, length, is_deliverable in layout:
            batches.append(FetchedBatch(position + gap, position + gap + length - 1, is_deliverable))
            position += gap + length
        limits = AcquireLimits(
            max_records=max_records,
            batch_size=batch_size,
            max_locks=max_locks,
            max_deliveries=max_deliveries,
            is_strict=is_strict,
        )
        deadline = self.now + lock
        acquired = self.delivery.acquire(member, read_from, batches, limits, deadline=deadline)
        expected = self.model.acquire(member, read_from, batches, limits, deadline)
        assert {o: one.delivery_count for one in acquired for o in range(one.first, one.last + 1)} == expected
        assert [one.first for one in acquired] == sorted(one.first for one in acquired)
        if is_strict:
            assert len(expected) <= max_records

    @rule(
        target=changes,
        member=MEMBERS,
        first=st.integers(-2, 12),
        types=st.lists(st.sampled_from(list(T)), min_size=1, max_size=8),
        one_type=st.booleans(),
        max_deliveries=DELIVERIES,
        may_renew=st.booleans(),
    )
    def acknowledge(
        self,
        member: str,
        first: int,
        types: list[AcknowledgeType],
        one_type: bool,
        max_deliveries: int,
        may_renew: bool,
    ) -> DeliveryChange:
        held = [offset for offset, one in self.model.offsets.items() if one.is_held and one.member == member]
        first = held[first % len(held)] if held and first >= 0 else max(self.model.start + first, 0)
        kinds = types[:1] * len(types) if one_type else types
        said = {first + at: kind for at, kind in enumerate(kinds)}
        request = [Acknowledgement(first, first + len(types) - 1, types[:1] if one_type else types)]
        renewed_until = self.now + 2 if may_renew else None
        refusal = self.model.refusal(member, said, may_renew=may_renew)
        if refusal is not None:
            with pytest.raises(refusal):
                self.delivery.acknowledge(member, request, max_deliveries=max_deliveries, renewed_until=renewed_until)
            return DeliveryChange()
        found = self.delivery.acknowledge(member, request, max_deliveries=max_deliveries, renewed_until=renewed_until)
        changed = []
        for offset, kind in said.items():
            one = self.model.offsets.get(offset)
            if one is None:
                continue
            if kind is T.RENEW:
                self.model.offsets[offset] = replace(one, deadline=self.now + 2)
                continue
            is_given_up = kind is T.RELEASE and one.count >= max_deliveries
            state = S.ARCHIVED if is_given_up else AFTER[kind]
            self.model.offsets[offset] = replace(one, state=state, member="", before=one)
            changed.append(offset)
        self.offsets_of[found] = changed
        assert {o for batch in found.batches() for o in range(batch.first_offset, batch.last_offset + 1)} == set(
            changed
        )
        return found

    @rule(target=changes, member=MEMBERS, max_deliveries=DELIVERIES)
    def leave(self, member: str, max_deliveries: int) -> DeliveryChange:
        found = self.delivery.release(member, max_deliveries=max_deliveries)
        changed = [offset for offset, one in self.model.offsets.items() if one.is_held and one.member == member]
        for offset in changed:
            one = self.model.offsets[offset]
            state = S.ARCHIVED if one.count >= max_deliveries else S.AVAILABLE
            self.model.offsets[offset] = replace(one, state=state, member="", before=one)
        self.offsets_of[found] = changed
        return found

    @rule(change=consumes(changes), is_stored=st.booleans())
    def stored(self, change: DeliveryChange, is_stored: bool) -> None:
        (self.delivery.commit if is_stored else self.delivery.roll_back)(change)
        for offset in self.offsets_of.pop(change, []):
            one = self.model.offsets.get(offset)
            if one is not None:
                assert one.before is not None
                self.model.offsets[offset] = replace(one, before=None) if is_stored else one.before
        if is_stored:
            self.model.settle()

    @rule(by=st.integers(0, 1), max_deliveries=DELIVERIES)
    def time_passes(self, by: int, max_deliveries: int) -> None:
        self.now += by
        found = self.delivery.expire(self.now, max_deliveries=max_deliveries)
        expected: dict[int, tuple[DeliveryState, int]] = {}
        for offset, one in self.model.offsets.items():
            if one.is_held and one.deadline <= self.now:
                state = S.ARCHIVED if one.count >= max_deliveries else S.AVAILABLE
                self.model.offsets[offset] = replace(one, state=state, member="")
                expected[offset] = (state, one.count)
        assert {o: (b.state, b.delivery_count) for b in found for o in range(b[0], b[1] + 1)} == expected
        self.model.settle()

    @rule(by=st.sampled_from([-1, 0, 0, 0, 1, 2, 9]))
    def records_are_deleted(self, by: int) -> None:
        log_start = self.model.start + by
        self.delivery.move_start(log_start)
        if log_start > self.model.start:
            self.model.offsets = {offset: one for offset, one in self.model.offsets.items() if offset >= log_start}
            self.model.start, self.model.end = log_start, max(self.model.end, log_start)
            self.model.settle()

    @rule()
    def another_leader(self) -> None:
        """What is stored is what counts; what was acquired is available again."""
        stored = []
        for offset in sorted(self.model.offsets):
            one = self.model.offsets[offset].before or self.model.offsets[offset]
            if one.state is not S.ACQUIRED:
                stored.append(DeliveryBatch(offset, offset, one.state, one.count))
        again = ShareDelivery(self.model.start, stored)
        last = stored[-1].last_offset if stored else self.model.start - 1
        model = Model(self.model.start)
        by_offset = {batch.first_offset: One(batch.state, batch.delivery_count) for batch in stored}
        model.offsets = {o: by_offset.get(o, One(S.AVAILABLE)) for o in range(self.model.start, last + 1)}
        model.end = last + 1
        model.settle()
        _compare(again, model)

    @invariant()
    def agrees(self) -> None:
        if hasattr(self, "delivery"):
            _compare(self.delivery, self.model)


def _compare(delivery: ShareDelivery, model: Model) -> None:
    found = {
        offset: (run.state, run.count, run.member, run.is_changing, run.deadline if run.is_held() else 0.0)
        for offset, run in delivery.states()
    }
    expected = {
        offset: (one.state, one.count, one.member, one.before is not None, one.deadline if one.is_held else 0.0)
        for offset, one in model.offsets.items()
    }
    assert found == expected
    assert (delivery.start, delivery.end, delivery.next_offset()) == (model.start, model.end, model.next_offset())
    assert delivery.settled_count == sum(one.state.is_terminal for one in model.offsets.values())
    held = [one.deadline for one in model.offsets.values() if one.is_held]
    assert delivery.next_deadline() == (min(held) if held else None)
    for limit in (1, 10):
        has_any = any(one.is_available for one in model.offsets.values())
        assert delivery.can_acquire(limit) == (has_any or model.end - model.start < limit)


TestDelivery = DeliveryAgainstModel.TestCase
TestDelivery.settings = settings(settings(), stateful_step_count=40)
