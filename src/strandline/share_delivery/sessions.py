"""Share sessions: which partitions each member of a share group fetches, so that its requests name only changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from strandline.errors import InvalidRequest
from strandline.model import INT32_MAX
from strandline.share_errors import InvalidShareSessionEpoch, ShareSessionLimitReached, ShareSessionNotFound

FIRST_EPOCH: Final = 0
"""A request that begins a session."""
LAST_EPOCH: Final = -1
"""A request that ends it."""

SharePlace: TypeAlias = tuple[UUID, int]
"""A topic by its id, and the number of a partition."""


class SessionKey(NamedTuple):
    """The member that a session belongs to."""

    group_id: str
    member_id: str


@dataclass(slots=True)
class ShareSession:
    """What one member fetches from this broker."""

    key: SessionKey
    connection_id: int
    places: dict[SharePlace, bool] = field(default_factory=dict)
    """The partitions in the order of the member; True: the next answer names it, whatever there is."""
    epoch: int = 1
    """Of the next request."""


class ShareSessions:
    """The sessions of this broker. Lives on the event loop.

    `on_end` is called when a session has ended without a request of its member: its connection is gone. A member that
    begins another session goes on with what it has acquired, as in Kafka: its locks end by themselves.
    """

    def __init__(self, limit: Callable[[], int], on_end: Callable[[ShareSession], None]) -> None:
        self._limit, self._on_end = limit, on_end
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._of_connection: dict[int, set[SessionKey]] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def has_group(self, group_id: str) -> bool:
        """Whether a member of the group has a session."""
        return any(key.group_id == group_id for key in self._sessions)

    def peek(self, key: SessionKey) -> ShareSession | None:
        """The session of a member, if it has one."""
        return self._sessions.get(key)

    def open(
        self,
        key: SessionKey,
        epoch: int,
        *,
        added: Iterable[SharePlace],
        forgotten: Iterable[SharePlace],
        has_acknowledgements: bool,
        connection_id: int,
    ) -> ShareSession:
        """The session of a ShareFetch, with what the request adds and takes away.

        Raises ShareSessionNotFound, InvalidShareSessionEpoch, ShareSessionLimitReached, InvalidRequest.
        """
        if epoch == LAST_EPOCH:
            return self._get(key)
        if epoch == FIRST_EPOCH:
            if has_acknowledgements:
                raise InvalidRequest("The request that begins a share session cannot acknowledge records.")
            others = len(self._sessions) - (key in self._sessions)
            if others >= self._limit():
                self._drop(key)
                raise ShareSessionLimitReached(
                    f"This broker has {others} share sessions, as many as group.share.max.share.sessions allows."
                )
            self.end(key)
            session = ShareSession(key, connection_id, dict.fromkeys(added, True))
            self._sessions[key] = session
            self._of_connection.setdefault(connection_id, set()).add(key)
            return session
        session = self.advance(key, epoch)
        for place in added:
            session.places.setdefault(place, True)
        for place in forgotten:
            session.places.pop(place, None)
        return session

    def advance(self, key: SessionKey, epoch: int) -> ShareSession:
        """The session of a request that does not begin one. Raises ShareSessionNotFound, InvalidShareSessionEpoch."""
        if epoch == FIRST_EPOCH:
            raise InvalidShareSessionEpoch("A share session begins with ShareFetch.")
        session = self._get(key)
        if epoch != LAST_EPOCH:
            if epoch != session.epoch:
                raise InvalidShareSessionEpoch(
                    f"The next request of this share session has epoch {session.epoch}, not {epoch}."
                )
            session.epoch = 1 if epoch >= INT32_MAX else epoch + 1
        return session

    def end(self, key: SessionKey) -> None:
        """The member has ended its session. Harmless if there is none."""
        session = self._sessions.pop(key, None)
        if session is not None:
            keys = self._of_connection.get(session.connection_id, set())
            keys.discard(key)
            if not keys:
                self._of_connection.pop(session.connection_id, None)

    def clear(self) -> None:
        """End all sessions without calling `on_end`."""
        self._sessions.clear()
        self._of_connection.clear()

    def connection_closed(self, connection_id: int) -> None:
        """Members whose connection is gone are gone."""
        for key in tuple(self._of_connection.get(connection_id, ())):
            self._drop(key)

    def _drop(self, key: SessionKey) -> None:
        session = self._sessions.get(key)
        if session is not None:
            self.end(key)
            self._on_end(session)

    def _get(self, key: SessionKey) -> ShareSession:
        session = self._sessions.get(key)
        if session is None:
            raise ShareSessionNotFound(f"Member {key.member_id} of group {key.group_id} has no share session here.")
        return session
