"""Incremental fetch sessions (KIP-227): a client names each partition once, then only changes."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias
from weakref import ref

from strandline.clock import Chance, Clock
from strandline.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from strandline.hybrid.partition import ServedPartition
from strandline.model import INT32_MAX, NO_EPOCH
from strandline.wire.fetch_codec import NO_SESSION, FetchAnswer, FetchEntry, FetchRequest

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
EVICTABLE_AFTER_SECONDS: Final = 120.0

Key: TypeAlias = tuple[str | bytes, int]


class Place:
    """What a session remembers of one partition: the client's request for it, and the last answer."""

    __slots__ = ("_partition", "entry", "is_unsettled", "sent_high_watermark", "sent_log_start")

    def __init__(self, entry: FetchEntry) -> None:
        self.entry = entry
        self._partition: ref[ServedPartition] | None = None
        self.sent_high_watermark = -1
        self.sent_log_start = -1
        self.is_unsettled = True  # new, or the last answer was an error: it is answered in any case

    def has_news(self, answer: FetchAnswer) -> bool:
        return (
            self.is_unsettled
            or answer.records is not None
            or answer.error_code != 0
            or answer.high_watermark != self.sent_high_watermark
            or answer.log_start_offset != self.sent_log_start
            or answer.diverging_epoch is not None
        )

    def found(self, partition: ServedPartition) -> None:
        """Remember the partition of the entry, weakly: a session may outlive it, and must not keep its files open."""
        known = self._partition
        if known is None or known() is not partition:
            self._partition = ref(partition)

    def idle_partition(self) -> ServedPartition | None:
        """The partition, if a read would find no record and nothing else that is new to the client, as for most
        partitions of a large session. Asking costs a tenth of a read."""
        if self._partition is None or self.is_unsettled:
            return None
        partition, entry = self._partition(), self.entry
        if (
            partition is not None
            and entry.fetch_offset == self.sent_high_watermark
            and partition.stands_at(self.sent_high_watermark, self.sent_log_start)
            and (entry.current_leader_epoch == NO_EPOCH or entry.current_leader_epoch == partition.leader_epoch)
            and (entry.last_fetched_epoch == NO_EPOCH or entry.last_fetched_epoch == partition.leader_epoch)
        ):
            return partition
        return None

    def sent(self, answer: FetchAnswer) -> None:
        self.sent_high_watermark = answer.high_watermark
        self.sent_log_start = answer.log_start_offset
        self.is_unsettled = answer.error_code != 0


class FetchSession:
    """The partitions of one client, in the order in which they are served."""

    __slots__ = ("_places", "epoch", "last_used", "session_id", "uses_ids")

    def __init__(self, session_id: int, entries: Iterable[FetchEntry], *, uses_ids: bool, now: float) -> None:
        self.session_id = session_id
        self.uses_ids = uses_ids
        self.epoch = 1
        self.last_used = now
        self._places: OrderedDict[Key, Place] = OrderedDict()
        for entry in entries:
            self._places[entry.topic, entry.partition] = Place(entry)

    def update(self, request: FetchRequest) -> None:
        """Apply the additions, changes and removals of an incremental request."""
        for entry in request.entries:
            key = (entry.topic, entry.partition)
            place = self._places.get(key)
            if place is None:
                self._places[key] = Place(entry)
            else:
                place.entry = entry
        for key in request.forgotten:
            self._places.pop(key, None)
        self.epoch = 1 if self.epoch == INT32_MAX else self.epoch + 1

    def places(self) -> list[Place]:
        """The partitions to read; those that have waited longest for data come first."""
        return list(self._places.values())

    def select(self, answers: Sequence[FetchAnswer], *, is_full: bool) -> list[FetchAnswer]:
        """The answers worth sending. Partitions with data go to the end of the line (fairness)."""
        selected: list[FetchAnswer] = []
        for answer in answers:
            key = (answer.topic, answer.partition)
            place = self._places.get(key)
            if place is None:
                continue
            if is_full or place.has_news(answer):
                selected.append(answer)
                place.sent(answer)
            if answer.records is not None:
                self._places.move_to_end(key)
        return selected

    def sends(self, place: Place, answer: FetchAnswer) -> bool:
        """The answer of this partition, with records, is all that is sent. False if the session has lost it."""
        key = (answer.topic, answer.partition)
        if self._places.get(key) is not place:
            return False
        place.sent(answer)
        self._places.move_to_end(key)
        return True

    def __len__(self) -> int:
        return len(self._places)


class FetchContext:
    """How one Fetch request is to be served: which partitions are read, and which answers are sent."""

    __slots__ = ("_is_full", "_session", "places", "session_id")

    def __init__(self, places: list[Place], session: FetchSession | None, *, is_full: bool) -> None:
        self.places = places
        self._session = session
        self._is_full = is_full
        self.session_id = session.session_id if session is not None else NO_SESSION

    def select(self, answers: Sequence[FetchAnswer]) -> Sequence[FetchAnswer]:
        """The answers worth sending."""
        return answers if self._session is None else self._session.select(answers, is_full=self._is_full)

    def sends(self, place: Place, answer: FetchAnswer) -> bool:
        """Note that this answer, which has records, is all that is sent. False if it must not be."""
        return self._session is None or self._session.sends(place, answer)

    @property
    def is_full(self) -> bool:
        """True if every partition is answered, with news or without."""
        return self._is_full


class FetchSessions:
    """The cache of at most `slots` sessions; a new one replaces the longest unused one if that has been idle."""

    def __init__(self, slots: int, clock: Clock, chance: Chance) -> None:
        self._slots = slots
        self._clock = clock
        self._chance = chance
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self.evictions = 0
        """Sessions that had to make room for others."""

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        """How many partitions all sessions name together."""
        return sum(len(session) for session in self._sessions.values())

    def open(self, request: FetchRequest, *, uses_ids: bool) -> FetchContext:
        """Find or create the session that the request means.

        Raises FetchSessionIdNotFound, InvalidFetchSessionEpoch or FetchSessionTopicIdError.
        """
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_SESSION:
                self._sessions.pop(request.session_id, None)
            session = None
            if request.session_epoch == INITIAL_EPOCH and request.entries:
                session = self._create(request, uses_ids=uses_ids)
            places = [Place(entry) for entry in request.entries] if session is None else session.places()
            return FetchContext(places, session, is_full=True)
        session = self._sessions.get(request.session_id)
        if session is None:
            raise FetchSessionIdNotFound(f"There is no fetch session {request.session_id}.")
        if request.session_epoch != session.epoch:
            raise InvalidFetchSessionEpoch(
                f"Fetch session {session.session_id} expects epoch {session.epoch}, not {request.session_epoch}."
            )
        if session.uses_ids != uses_ids:
            raise FetchSessionTopicIdError(
                f"Fetch session {session.session_id} began with the other kind of topic key."
            )
        session.update(request)
        session.last_used = self._clock.monotonic()
        self._sessions.move_to_end(session.session_id)
        if not len(session):
            del self._sessions[session.session_id]
            return FetchContext([], None, is_full=True)
        return FetchContext(session.places(), session, is_full=False)

    def _create(self, request: FetchRequest, *, uses_ids: bool) -> FetchSession | None:
        now = self._clock.monotonic()
        if len(self._sessions) >= self._slots and not self._evict(now):
            return None
        session = FetchSession(self._new_id(), request.entries, uses_ids=uses_ids, now=now)
        self._sessions[session.session_id] = session
        return session

    def _evict(self, now: float) -> bool:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now - oldest.last_used < EVICTABLE_AFTER_SECONDS:
            return False
        del self._sessions[oldest.session_id]
        self.evictions += 1
        return True

    def _new_id(self) -> int:
        candidates = (self._chance.below(INT32_MAX - 1) + 1 for _ in itertools.count())
        return next(number for number in candidates if number not in self._sessions)
