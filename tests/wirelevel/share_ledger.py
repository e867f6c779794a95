"""What members of a share group may be given, and what they did with it: checked with every delivery.

The rules: a record whose acceptance or rejection was answered is not delivered again; any other record is, until it was
delivered as often as the limit says; the count of a delivery is beyond the one that was stored before, and never beyond
the limit; everything before the start offset is settled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.waiting import wait_until
from tests.wirelevel.share_member import ACCEPT, REJECT, RELEASE, Answer, Delivered, Failed, RawShareMember

Place = tuple[int, int]


@dataclass(slots=True)
class ShareLedger:
    """One group and one topic, whose records have values that name their places."""

    limit: int = 5
    ends: dict[int, int] = field(default_factory=dict)
    """How many records each partition has."""
    delivered: dict[Place, list[int]] = field(default_factory=dict)
    said: set[Place] = field(default_factory=set)
    """Accepted or rejected by a member, whatever was answered."""
    settled: set[Place] = field(default_factory=set)
    """The same, and the broker has taken it."""
    stored: dict[Place, int] = field(default_factory=dict)
    """Delivery counts that were stored, because a release was answered."""

    def values(self, partition: int, count: int) -> list[bytes]:
        """The values of the next records of a partition."""
        first = self.ends.get(partition, 0)
        self.ends[partition] = first + count
        return [value_at(partition, offset) for offset in range(first, first + count)]

    def note_delivery(self, one: Delivered) -> None:
        place = (one.partition, one.offset)
        assert one.value == value_at(*place)
        assert place not in self.settled, f"{place} was settled, and comes again with count {one.delivery_count}"
        assert self.stored.get(place, 0) < one.delivery_count <= self.limit, (
            place,
            one.delivery_count,
            self.stored.get(place),
        )
        self.delivered.setdefault(place, []).append(one.delivery_count)

    def note_answers(self, said: Sequence[Answer]) -> None:
        """These answers are sent."""
        self.said |= {(partition, offset) for partition, offset, kind in said if kind in (ACCEPT, REJECT)}

    def note_taken(self, taken: Sequence[Answer]) -> None:
        """These answers were taken."""
        for partition, offset, kind in taken:
            place = (partition, offset)
            if kind in (ACCEPT, REJECT):
                self.settled.add(place)
            elif kind == RELEASE:
                self.stored[place] = max(self.stored.get(place, 0), self.delivered[place][-1])

    def may_be_settled(self, place: Place) -> bool:
        return place in self.said or self.limit in self.delivered.get(place, ())

    def check_start(self, partition: int, start: int) -> None:
        """The start offset is not beyond a record that is not settled."""
        for offset in range(max(start, 0)):
            assert self.may_be_settled((partition, offset)), (
                f"{partition}-{offset} is lost: the group begins at {start}"
            )

    @property
    def open_places(self) -> list[Place]:
        """The records that must still be delivered."""
        return [
            (partition, offset)
            for partition, end in self.ends.items()
            for offset in range(end)
            if not self.may_be_settled((partition, offset))
        ]


def value_at(partition: int, offset: int) -> bytes:
    return b"%d-%d" % (partition, offset)


def verdict(one: Delivered) -> int | None:
    """What members do with a record: most are accepted, some only after a while, some never. None: no answer."""
    if one.offset % 13 == 7:
        return REJECT
    if one.offset % 29 == 3 or (one.offset % 5 == 2 and one.delivery_count < 3):
        return RELEASE
    if one.offset % 23 == 4 and one.delivery_count == 1:
        return None
    return ACCEPT


@dataclass(slots=True)
class ShareWorker:
    """A member that works: it fetches, judges and answers, and notes all of it."""

    member: RawShareMember
    ledger: ShareLedger
    judge: Callable[[Delivered], int | None] = verdict
    _turn: int = 0
    _unsaid: list[Answer] = field(default_factory=list)

    def step(self) -> None:
        """Heartbeat, fetch, and answer what came: at once, or with the next fetch."""
        try:
            self.member.heartbeat()
        except Failed:
            return
        if not self.member.assigned:
            return
        said, self._unsaid = self._unsaid, []
        self.ledger.note_answers(said)
        found, taken = self.member.fetch(said)
        self.ledger.note_taken(taken)
        for one in found:
            self.ledger.note_delivery(one)
        answers = [(one.partition, one.offset, kind) for one in found if (kind := self.judge(one)) is not None]
        self._turn += 1
        if self._turn % 2:
            self._unsaid = answers
        else:
            self.ledger.note_answers(answers)
            self.ledger.note_taken(self.member.acknowledge(answers))

    def check_starts(self) -> bool:
        """Whether the coordinator says where the group is; then that is right."""
        try:
            offsets = self.member.offsets()
        except Failed:
            return False
        for partition, (start, _) in offsets.items():
            self.ledger.check_start(partition, start)
        return True


def work_until(workers: Sequence[ShareWorker], condition: Callable[[], bool], *, within: float, what: str) -> None:
    """Let the members work in turn until something is the case."""

    def once() -> bool:
        for worker in workers:
            worker.step()
        return condition()

    wait_until(once, within=within, step=0.0, what=what)


def work_to_the_end(workers: Sequence[ShareWorker], *, within: float) -> None:
    """Until every record is settled, here and for the coordinator. Then nothing is lost, and nothing comes again."""
    ledger = workers[0].ledger

    def is_done() -> bool:
        if ledger.open_places or not workers[0].check_starts():
            return False
        offsets = workers[0].member.offsets()
        return {at: lag for at, (_, lag) in offsets.items()} == dict.fromkeys(ledger.ends, 0)

    work_until(workers, is_done, within=within, what="all records to be settled")
    assert set(ledger.delivered) == {(at, offset) for at, end in ledger.ends.items() for offset in range(end)}
