"""What a leader remembers of a follower's requests (KIP-227), as the follower sees it: only changes are sent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from strandline.model import INT32_MAX
from strandline.replication.fetching.followed import FollowedPartition, Key
from strandline.wire.fetch_codec import NO_SESSION, FetchEntry

FIRST_EPOCH: Final = 0


class FollowerSession:
    """One session with one leader. A request costs by what has changed, not by the partitions of the session."""

    __slots__ = ("_changed", "_epoch", "_forgotten", "_id", "_known", "is_refused")

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self.is_refused = False
        """True if the leader has no room for sessions: every request names all partitions."""
        self._known: dict[Key, FetchEntry] = {}
        """What the leader knows, or will when it has read the request under way."""
        self._changed: dict[Key, FollowedPartition] = {}
        self._forgotten: dict[Key, None] = {}
        """Partitions among the known ones that the leader is to forget."""

    @property
    def is_new(self) -> bool:
        """True if the next request has to name every partition."""
        return self._epoch == FIRST_EPOCH

    @property
    def has_news(self) -> bool:
        """True if a request would tell the leader something."""
        return bool(self._changed)

    def changed(self, followed: FollowedPartition) -> None:
        """The leader has to be asked something else for this partition, or for the first time."""
        self._changed[followed.key] = followed

    def left(self, key: Key) -> None:
        """The leader need not send this partition."""
        self._changed.pop(key, None)
        if key in self._known:
            self._forgotten[key] = None

    def asked(self, key: Key) -> FetchEntry | None:
        """What the leader was asked for this partition last."""
        return self._known.get(key)

    def begin(self, followed: Iterable[FollowedPartition], max_bytes: int) -> list[FetchEntry]:
        """All partitions that are asked for: the session begins again with them."""
        self._known = {one.key: one.entry(max_bytes) for one in followed if one.is_asked_for}
        self._changed.clear()
        self._forgotten.clear()
        return list(self._known.values())

    def update(self, max_bytes: int) -> tuple[list[FetchEntry], list[Key]] | None:
        """(what is new or different, what is to be forgotten) since the last request; None if none is left to ask for.

        In the latter case nothing has been told, and what has to be told is kept.
        """
        known, forgotten = self._known, self._forgotten
        entries: list[FetchEntry] = []
        changed, self._changed = self._changed, {}
        for key, followed in changed.items():
            if not followed.is_asked_for:
                continue
            entry = followed.entry(max_bytes)
            forgotten.pop(key, None)
            if known.get(key) != entry:
                known[key] = entry
                entries.append(entry)
        if len(known) == len(forgotten):
            return None
        gone = list(forgotten)
        for key in gone:
            del known[key]
        forgotten.clear()
        return entries, gone

    def next_ids(self) -> tuple[int, int]:
        """(id, epoch) of the next request."""
        ids = self._id, self._epoch
        if self._epoch != FIRST_EPOCH:
            self._epoch = 1 if self._epoch == INT32_MAX else self._epoch + 1
        return ids

    def answered(self, session_id: int) -> None:
        """The leader has answered. Without a session id it remembers nothing."""
        self.is_refused = session_id == NO_SESSION
        if self.is_refused:
            self.forgotten_by_leader()
        elif self._epoch == FIRST_EPOCH:
            self._id, self._epoch = session_id, 1

    def restart(self) -> None:
        """Nothing is known of what the leader knows: the next request closes the session and begins another one."""
        self._epoch = FIRST_EPOCH

    def forgotten_by_leader(self) -> None:
        """The leader has no session for this follower."""
        self._id, self._epoch = NO_SESSION, FIRST_EPOCH
