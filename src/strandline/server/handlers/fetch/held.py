"""What a Fetch has read and not sent yet, because it waits for other reads or for more records.

A place is read once. What was found at once is held while pending reads of other places are under way, so that it need
not be read again when they are there. What pending reads have brought is held until the request is answered, or until
its partition has news: no read begins when the time of a request is over.

Before held records are given, the place is looked up again. They may be given only for the same request of the client,
by the same `ServedPartition` (that of a topic which was deleted and created again is another one), in the leader epoch
in which they were read, and not from below the log start. So no range of a file has got other bytes meanwhile: a log is
cut by a follower (which leads in a later epoch, if it ever leads again), at the boundary of a switch (which makes
another `ServedPartition`), or as a whole, together with its log start.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import NamedTuple

from strandline.errors import KafkaStorageError, StrandlineError
from strandline.hybrid.partition import ServedPartition
from strandline.model import LeaderEpoch
from strandline.reads import FetchIsolation, ReadResult
from strandline.records.slices import MemorySlices
from strandline.server.fetch_sessions import Place
from strandline.server.handlers.fetch.answers import answer_with, refusal
from strandline.server.handlers.fetch.findings import Findings
from strandline.server.memory import SHARE_OF_REST, AnswerMemory, ReadGrant
from strandline.wire.fetch_codec import FetchAnswer, FetchEntry


class Holding(enum.Enum):
    """How long an answer is held."""

    WHILE_READING = enum.auto()
    """It was found at once, and costs little: until the pending reads of the request are there."""
    UNTIL_NEWS = enum.auto()
    """Its tier has counted it, and may have charged a quota: until its partition has moved."""
    UNTIL_A_LOOK = enum.auto()
    """The store or the database is away, which may pass: until the next look."""


class ReadBasis(NamedTuple):
    """For what a read holds."""

    entry: FetchEntry
    partition: ServedPartition
    leader_epoch: LeaderEpoch

    @classmethod
    def of(cls, place: Place, partition: ServedPartition) -> ReadBasis:
        """For a read that begins now."""
        return cls(place.entry, partition, partition.newest.leader_epoch)

    def holds(self, place: Place, partition: ServedPartition) -> bool:
        """Whether the place is still what it was."""
        return (
            partition is self.partition
            and partition.newest.leader_epoch == self.leader_epoch
            and place.entry is self.entry
        )


class HeldAnswer(NamedTuple):
    """The answer for one place."""

    basis: ReadBasis
    answer: FetchAnswer
    holding: Holding

    @property
    def length(self) -> int:
        """How many bytes of records there are."""
        records = self.answer.records
        return 0 if records is None else records.length

    @property
    def memory(self) -> int:
        """How many of them are in memory."""
        return self.length if type(self.answer.records) is MemorySlices else 0

    def may_be_given(self, place: Place, partition: ServedPartition, isolation: FetchIsolation) -> bool:
        """Whether the place need not be read again. `partition` is the one that serves it now."""
        if not self.basis.holds(place, partition):
            return False
        if self.holding is not Holding.WHILE_READING:
            return True
        if self.answer.records is None:  # there may be records now; followers read beyond the high watermark
            return isolation is not FetchIsolation.LOG_END and self.stands_at(partition)
        return partition.newest.log_start_offset <= self.basis.entry.fetch_offset

    def stands_at(self, partition: ServedPartition) -> bool:
        """Whether the partition has not moved since."""
        return partition.newest.stands_at(self.answer.high_watermark, self.answer.log_start_offset)


class HeldReads:
    """The answers that one request holds, and the memory that it has taken for them and for reads under way."""

    __slots__ = ("_memory", "answers", "grant", "troubles")

    def __init__(self, memory: AnswerMemory) -> None:
        self._memory = memory
        self.grant = ReadGrant(memory)
        """The memory that the request has taken."""
        self.answers: dict[Place, HeldAnswer] = {}
        """For reading only."""
        self.troubles: dict[Place, FetchAnswer] = {}
        """Why pending reads have failed that are tried again."""

    @property
    def has_trouble(self) -> bool:
        """Whether a read has failed for a reason that may pass."""
        return any(held.holding is Holding.UNTIL_A_LOOK for held in self.answers.values())

    # Memory

    def take_room(self, wanted: int, *, beside: int) -> int:
        """Take memory for pending reads of up to `wanted` bytes; returns how much they may read, 0 if there is no room.

        `beside` is how much the look before has found in memory. They get as much as if that was counted already.
        """
        self._count()
        uncounted = beside - self.grant.size
        return self.grant.take(max(min(wanted, self._memory.allowance - uncounted // SHARE_OF_REST), 1))

    def _count(self) -> None:
        """No read is under way: what is held is all that the request needs memory for."""
        self.grant.resize(sum(held.memory for held in self.answers.values()))

    # Holding

    def hold_while_reading(self, findings: Findings, found: Mapping[Place, ServedPartition]) -> None:
        """Pending reads are under way: hold what was found at once. Errors are found again."""
        memory = 0
        for place, answer in findings.answers.items():
            if place not in self.answers and answer.error_code == 0 and answer.diverging_epoch is None:
                held = HeldAnswer(ReadBasis.of(place, found[place]), answer, Holding.WHILE_READING)
                self.answers[place] = held
                memory += held.memory
        self.grant.resize(self.grant.size + memory)

    def keep(self, place: Place, basis: ReadBasis, result: ReadResult | StrandlineError) -> FetchAnswer:
        """Hold what a tier has counted; returns the answer."""
        if isinstance(result, ReadResult):
            answer, holding = answer_with(basis.entry, result), Holding.UNTIL_NEWS
        else:
            answer = refusal(basis.entry, result)
            holding = Holding.UNTIL_A_LOOK if isinstance(result, KafkaStorageError) else Holding.UNTIL_NEWS
        self.answers[place] = HeldAnswer(basis, answer, holding)
        return answer

    def drop_outdated(self, find: Callable[[FetchEntry], ServedPartition], isolation: FetchIsolation) -> int:
        """Drop what may not be given any more; returns how many bytes of records are left.

        `find` gives the partition that an entry means now, or raises StrandlineError.
        """
        for place, held in [*self.answers.items()]:
            try:
                may_be_given = held.may_be_given(place, find(place.entry), isolation)
            except StrandlineError:  # found again by the look that follows
                may_be_given = False
            if not may_be_given:
                del self.answers[place]
        return sum(held.length for held in self.answers.values())

    def drop_with_news(self) -> None:
        """A look begins after a wait: what has not moved since it was read need not be read again."""
        self.troubles = {
            place: held.answer for place, held in self.answers.items() if held.holding is Holding.UNTIL_A_LOOK
        }
        for place, held in [*self.answers.items()]:
            if place in self.troubles or held.length == 0 or not held.stands_at(held.basis.partition):
                del self.answers[place]
        self._count()

    def drop_cheap(self) -> None:
        """A wait begins: a request that waits keeps no files open, and no memory for what can be read at once."""
        for place, held in [*self.answers.items()]:
            if held.holding is Holding.WHILE_READING:
                del self.answers[place]
        self._count()

    def drop_answers(self) -> None:
        """The request has ended while reads are under way, whose memory counts until they are there."""
        self.answers.clear()

    def give_back(self) -> None:
        """The request has ended, and so have its reads."""
        if self.answers:
            self.answers.clear()
        if self.grant.size:
            self.grant.give_back()
