"""Incremental fetch sessions (KIP-227): a client names each partition once, then only changes.

A request of a large session must not cost as much as all its partitions, most of which have nothing new. So a place
that was found idle (the client has everything, and was told of everything) is not looked at again until something
happens: its partition notifies it, or the client names it in a request. Such a place watches its partition also while
no request of the session waits, until the first news. Places whose partitions do not keep such watchers are always
looked at.

No answer of a client depends on a notification for long: all places are looked at when a wait is over, and by the
first request after `WALK_EVERY_SECONDS`. Sessions of followers have many more places, and their wait is over twice a
second: they rely on notifications (`follower_places`), and all their places are looked at now and then.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final, TypeAlias

from strandline.clock import Chance, Clock
from strandline.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from strandline.model import INT32_MAX
from strandline.reads import Watcher
from strandline.replication import FollowerVisits
from strandline.server.fetch_places import Place as Place
from strandline.server.follower_places import FollowerPlace
from strandline.wire.fetch_codec import NO_SESSION, FetchAnswer, FetchEntry, FetchRequest

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
EVICTABLE_AFTER_SECONDS: Final = 120.0
WALK_EVERY_SECONDS: Final = 0.5
FOLLOWERS_WALK_EVERY_SECONDS: Final = 10.0

Key: TypeAlias = tuple[str | bytes, int]


class FetchSession:
    """The partitions of one client, in the order in which they are served."""

    __slots__ = (
        "_places",
        "_turns",
        "_unconfirmed",
        "active",
        "connection_id",
        "epoch",
        "is_closed",
        "last_used",
        "polls",
        "replica_epoch",
        "replica_id",
        "session_id",
        "uses_ids",
        "visits",
        "walked_at",
    )

    def __init__(
        self,
        session_id: int,
        entries: Iterable[FetchEntry],
        *,
        uses_ids: bool,
        now: float,
        replica_id: int = -1,
        replica_epoch: int = -1,
    ) -> None:
        self.session_id = session_id
        self.uses_ids = uses_ids
        self.replica_id = replica_id
        """The broker whose session it is; negative for a client."""
        self.replica_epoch = replica_epoch
        """The incarnation of that broker."""
        self.visits: FollowerVisits | None = FollowerVisits() if replica_id >= 0 else None
        self.epoch = 1
        self.last_used = now
        self.walked_at = now
        """When all places were looked at."""
        self.polls: set[Watcher] = set()
        """Requests of this session that wait."""
        self.active: dict[Place, None] = {}
        """The places that may have news. All others are idle, and watch their partitions."""
        self.is_closed = False
        self.connection_id = 0
        """Over which its last request came."""
        self._unconfirmed: list[Place] = []
        """What the last answer to a follower told of. It has got that if it asks again over the same connection."""
        self._turns = itertools.count()
        self._places: OrderedDict[Key, Place] = OrderedDict()
        for entry in entries:
            self._put(entry)

    def _put(self, entry: FetchEntry) -> None:
        """The client names a partition, for the first time or again; twice in one request, too: the last counts."""
        key = (entry.topic, entry.partition)
        place = self._places.get(key)
        if place is None:
            visits = self.visits
            place = Place(entry, self) if visits is None else FollowerPlace(entry, self, self.replica_id, visits)
            self._places[key] = place
            place.turn = next(self._turns)
        else:
            place.entry = entry
            if self.visits is not None:
                place.is_unsettled = True  # it may have dropped the last answer, which was to another question
        self.active[place] = None

    def update(self, request: FetchRequest) -> None:
        """Apply the additions, changes and removals of an incremental request."""
        for entry in request.entries:
            self._put(entry)
        for key in request.forgotten:
            gone = self._places.pop(key, None)
            if gone is not None:
                gone.leave()
                self.active.pop(gone, None)
        self.epoch = 1 if self.epoch == INT32_MAX else self.epoch + 1

    def comes_over(self, connection_id: int) -> None:
        """A request has come. Over another connection, it is not known whether the last answer has arrived.

        Clients begin another session then. Followers name too many partitions for that.
        """
        if self.visits is None:
            return
        if connection_id != self.connection_id:
            self.connection_id = connection_id
            for place in self._unconfirmed:
                if self._places.get((place.entry.topic, place.entry.partition)) is place:
                    place.is_unsettled = True
                    self.active[place] = None
        self._unconfirmed = []

    def places(self) -> list[Place]:
        """The partitions to read; those that have waited longest for data come first."""
        return list(self._places.values())

    def active_places(self) -> list[Place]:
        """Those of them that are not known to be idle."""
        return [*self.active] if len(self.active) < 2 else sorted(self.active, key=_turn)

    def close(self) -> None:
        """The session has ended. Requests that wait get what there is now."""
        self.is_closed = True
        for place in self._places.values():
            place.leave()
        self.active.clear()
        for poll in tuple(self.polls):
            poll.notify()

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
                self._sent(place, answer)
            if answer.records is not None:
                self._to_end(key, place)
        return selected

    def _sent(self, place: Place, answer: FetchAnswer) -> None:
        place.sent(answer)
        if self.visits is not None:
            self._unconfirmed.append(place)

    def _to_end(self, key: Key, place: Place) -> None:
        self._places.move_to_end(key)
        place.turn = next(self._turns)

    def sends(self, place: Place, answer: FetchAnswer) -> bool:
        """The answer of this partition, with records, is all that is sent. False if the session has lost it."""
        key = (answer.topic, answer.partition)
        if self._places.get(key) is not place:
            return False
        self._sent(place, answer)
        self._to_end(key, place)
        return True

    def __len__(self) -> int:
        return len(self._places)


class FetchContext:
    """How one Fetch request is to be served: which partitions are read, and which answers are sent."""

    __slots__ = ("_connection_id", "_is_full", "_session", "is_by_news", "places", "session_id")

    def __init__(
        self, places: list[Place], session: FetchSession | None, *, is_full: bool, is_by_news: bool = False
    ) -> None:
        self.places = places
        """What is to be looked at."""
        self._session = session
        self._connection_id = 0 if session is None else session.connection_id
        self._is_full = is_full
        self.is_by_news = is_by_news
        """True if places that are known to be idle are not looked at before they tell of news."""
        self.session_id = session.session_id if session is not None else NO_SESSION

    def look_again(self) -> bool:
        """There may be news: find out what to look at. False if the session has ended meanwhile."""
        session = self._session
        if session is None:
            return True
        if self.is_by_news and not session.is_closed:
            self.places = session.active_places()
        return not session.is_closed

    def look_at_all(self) -> None:
        """The wait is over: look at every place, or for a follower at those with news."""
        session = self._session
        if self.is_by_news and session is not None:
            self.places = session.places() if session.visits is None else session.active_places()

    def has_visited(self) -> None:
        """A request of a follower is through with its first look: it has shown where the follower is."""
        session = self._session
        if session is not None and session.visits is not None:
            session.visits.at = session.last_used

    def watch(self, poll: Watcher) -> None:
        """Notify `poll` of news of places that watch their partitions."""
        if self._session is not None:
            self._session.polls.add(poll)

    def unwatch(self, poll: Watcher) -> None:
        """Do not notify `poll`."""
        if self._session is not None:
            self._session.polls.discard(poll)

    def select(self, answers: Sequence[FetchAnswer]) -> Sequence[FetchAnswer]:
        """The answers worth sending."""
        session = self._session
        if session is None or session.connection_id != self._connection_id:  # the connection of this request is closed
            return answers
        return session.select(answers, is_full=self._is_full)

    def sends(self, place: Place, answer: FetchAnswer) -> bool:
        """Note that this answer, which has records, is all that is sent. False if it must not be."""
        session = self._session
        return session is None or (session.connection_id == self._connection_id and session.sends(place, answer))

    @property
    def is_full(self) -> bool:
        """True if every partition is answered, with news or without."""
        return self._is_full


_turn: Final = attrgetter("turn")


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

    def open(self, request: FetchRequest, *, uses_ids: bool, connection_id: int = 0) -> FetchContext:
        """Find or create the session that the request means.

        Raises FetchSessionIdNotFound, InvalidFetchSessionEpoch or FetchSessionTopicIdError.
        """
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_SESSION:
                self._end(request.session_id)
            session = None
            if request.session_epoch == INITIAL_EPOCH and request.entries:
                session = self._create(request, uses_ids=uses_ids, connection_id=connection_id)
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
        if session.replica_id != max(request.replica_id, -1):
            raise FetchSessionIdNotFound(f"Fetch session {session.session_id} belongs to another reader.")
        session.comes_over(connection_id)
        session.update(request)
        session.last_used = now = self._clock.monotonic()
        self._sessions.move_to_end(session.session_id)
        if not len(session):
            self._end(session.session_id)
            return FetchContext([], None, is_full=True)
        # With more than one byte to wait for, what all partitions have is added up.
        is_by_news = request.min_bytes <= 1 and request.max_wait_ms > 0
        walk_every = WALK_EVERY_SECONDS if session.visits is None else FOLLOWERS_WALK_EVERY_SECONDS
        if is_by_news and now - session.walked_at < walk_every:
            return FetchContext(session.active_places(), session, is_full=False, is_by_news=True)
        session.walked_at = now
        return FetchContext(session.places(), session, is_full=False, is_by_news=is_by_news)

    def _end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def _create(self, request: FetchRequest, *, uses_ids: bool, connection_id: int) -> FetchSession | None:
        now = self._clock.monotonic()
        replica_id = max(request.replica_id, -1)
        if replica_id >= 0:
            self._end_earlier(replica_id, request.replica_epoch)
        if len(self._sessions) >= self._slots and not self._evict(now, for_follower=replica_id >= 0):
            return None
        session = FetchSession(
            self._new_id(),
            request.entries,
            uses_ids=uses_ids,
            now=now,
            replica_id=replica_id,
            replica_epoch=request.replica_epoch,
        )
        session.connection_id = connection_id
        self._sessions[session.session_id] = session
        return session

    def _end_earlier(self, replica_id: int, replica_epoch: int) -> None:
        """A broker that was started again asks in no session that it had before, and does not know their ids."""
        earlier = [
            session.session_id
            for session in self._sessions.values()
            if session.replica_id == replica_id and session.replica_epoch < replica_epoch
        ]
        for session_id in earlier:
            self._end(session_id)

    def _evict(self, now: float, *, for_follower: bool) -> bool:
        """Make room: a follower, which names thousands of partitions, takes it from any client."""
        sessions = self._sessions.values()
        if for_follower:
            oldest = next((session for session in sessions if session.visits is None), None)
        else:
            oldest = next(iter(sessions), None)
        if oldest is None or (not for_follower and now - oldest.last_used < EVICTABLE_AFTER_SECONDS):
            return False
        self._end(oldest.session_id)
        self.evictions += 1
        return True

    def _new_id(self) -> int:
        while (number := self._chance.below(INT32_MAX - 1) + 1) in self._sessions:
            pass
        return number
