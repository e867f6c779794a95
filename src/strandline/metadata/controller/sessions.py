"""Sessions of brokers, extended by heartbeats. Kept in the active controller's memory only, as in Kafka."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from strandline.metadata.controller.listening import ListeningTime
from strandline.metadata.image import MetadataImage


class Contact(NamedTuple):
    """What a broker's heartbeats have told: the metadata it has read, and how many seconds ago. None: never."""

    metadata_offset: int = -1
    seconds_ago: float | None = None
    caught_up_seconds_ago: float | None = None


class Sessions:
    """Deadlines of sessions, by the time in which the controller itself could receive heartbeats.

    A new controller gives every broker a whole session before it fences one.
    """

    def __init__(self, listening: ListeningTime, timeout: float) -> None:
        self._listening, self.timeout = listening, timeout
        self._began = 0.0
        self._deadlines: dict[int, float] = {}
        self._contacts: dict[int, int] = {}  # node id -> broker epoch of its last heartbeat
        self._offsets: dict[int, int] = {}  # node id -> metadata offset it has reached
        self._times: dict[int, float] = {}  # node id -> its last heartbeat
        self._caught_up: dict[int, float] = {}  # node id -> its last heartbeat with the newest metadata
        self._shutdown_offsets: dict[int, int] = {}

    def begin(self, image: MetadataImage) -> None:
        """Start with a new session for each unfenced broker of the image."""
        for told in (self._contacts, self._offsets, self._times, self._caught_up, self._shutdown_offsets):
            told.clear()
        self._began = self._listening.now()
        deadline = self._began + self.timeout
        self._deadlines = {node_id: deadline for node_id, broker in image.brokers.items() if not broker.fenced}

    def touch(self, node_id: int, broker_epoch: int, metadata_offset: int = -1, newest_offset: int = 0) -> None:
        """A heartbeat of the broker arrived, when the metadata reached as far as `newest_offset`."""
        now = self._times[node_id] = self._listening.now()
        self._deadlines[node_id] = now + self.timeout
        self._contacts[node_id] = broker_epoch
        self._offsets[node_id] = metadata_offset
        if metadata_offset >= newest_offset:
            self._caught_up[node_id] = now

    def hurry(self, node_id: int, seconds: float) -> None:
        """End the session of a broker that was not heard of after so many seconds, if it is not heard of until then."""
        soon = self._listening.now() + seconds
        if self._deadlines.get(node_id, 0.0) > soon and node_id not in self._times:
            self._deadlines[node_id] = soon

    @property
    def are_young(self) -> bool:
        """True if they began less than half a session ago: that a broker was not heard of yet says nothing."""
        return self._listening.now() - self._began < self.timeout / 2

    def is_heard_since(self, node_id: int, moment: float) -> bool:
        """True if a heartbeat of the broker came after this moment of the time of listening."""
        heard = self._times.get(node_id)
        return heard is not None and heard > moment

    def contact(self, node_id: int) -> Contact:
        """What is known from the broker's heartbeats."""
        now, heard, caught_up = self._listening.now(), self._times.get(node_id), self._caught_up.get(node_id)
        return Contact(
            metadata_offset=self._offsets.get(node_id, -1),
            seconds_ago=None if heard is None else now - heard,
            caught_up_seconds_ago=None if caught_up is None else now - caught_up,
        )

    def is_valid(self, node_id: int, broker_epoch: int) -> bool:
        """True if the session of this incarnation has not expired."""
        is_known = self._contacts.get(node_id) == broker_epoch
        return is_known and self._deadlines.get(node_id, 0.0) > self._listening.now()

    def silent(self) -> list[int]:
        """The brokers whose session has expired."""
        now = self._listening.now()
        return sorted(node_id for node_id, deadline in self._deadlines.items() if deadline <= now)

    def others(self, node_id: int) -> set[int]:
        """Every broker with a session, expired or not, apart from this one."""
        return self._deadlines.keys() - {node_id}

    def is_heard(self, node_ids: Iterable[int]) -> bool:
        """True if a heartbeat of one of these brokers came in the last half of a session."""
        since = self._listening.now() - self.timeout / 2
        return any(self._times.get(node_id, since) > since for node_id in node_ids)

    def expire(self, node_ids: Iterable[int]) -> None:
        """End the sessions of these brokers now, as if their time were over."""
        now = self._listening.now()
        self._deadlines.update((node_id, now) for node_id in node_ids if node_id in self._deadlines)

    def forget(self, node_id: int) -> None:
        """End the session of a broker that is fenced or gone."""
        self._deadlines.pop(node_id, None)
        for told in (self._contacts, self._offsets, self._times, self._caught_up, self._shutdown_offsets):
            told.pop(node_id, None)

    def begin_shutdown(self, node_id: int, offset: int) -> None:
        """The controlled shutdown of the broker is recorded at this offset."""
        self._shutdown_offsets.setdefault(node_id, offset)

    def is_shutdown_seen(self, node_id: int, image: MetadataImage) -> bool:
        """True if every other active broker has reached the record of this broker's controlled shutdown.

        The controller's own broker has: it wrote the record.
        """
        target = self._shutdown_offsets.get(node_id, -1)
        knowing = (node_id, image.controller_id)
        others = (other for other, broker in image.brokers.items() if broker.is_active and other not in knowing)
        return all(self._offsets.get(other, -1) >= target for other in others)
