"""Which brokers have been heard of lately. Kept in the active controller's memory only, as in Kafka."""

from __future__ import annotations

from strandline.clock import Clock
from strandline.metadata.image import MetadataImage


class Sessions:
    """Times of contact. A new controller gives every broker a whole session before it calls one silent."""

    def __init__(self, clock: Clock, timeout: float) -> None:
        self._clock, self._timeout = clock, timeout
        self._deadlines: dict[int, float] = {}
        self._contacts: dict[int, int] = {}  # node id -> broker epoch it spoke with
        self._offsets: dict[int, int] = {}  # node id -> metadata offset it has reached
        self._shutdown_offsets: dict[int, int] = {}

    def begin(self, image: MetadataImage) -> None:
        """Forget everything and give the brokers of the image a session each."""
        self._contacts.clear()
        self._offsets.clear()
        self._shutdown_offsets.clear()
        deadline = self._clock.monotonic() + self._timeout
        self._deadlines = {node_id: deadline for node_id, broker in image.brokers.items() if not broker.fenced}

    def touch(self, node_id: int, broker_epoch: int, metadata_offset: int = -1) -> None:
        """The broker is alive now."""
        self._deadlines[node_id] = self._clock.monotonic() + self._timeout
        self._contacts[node_id] = broker_epoch
        self._offsets[node_id] = metadata_offset

    def is_valid(self, node_id: int, broker_epoch: int) -> bool:
        """True if this controller has heard of this incarnation within the timeout."""
        is_known = self._contacts.get(node_id) == broker_epoch
        return is_known and self._deadlines.get(node_id, 0.0) > self._clock.monotonic()

    def silent(self) -> list[int]:
        """The brokers whose session is over."""
        now = self._clock.monotonic()
        return sorted(node_id for node_id, deadline in self._deadlines.items() if deadline <= now)

    def forget(self, node_id: int) -> None:
        """The broker is fenced or gone; there is nothing to watch."""
        self._deadlines.pop(node_id, None)
        self._contacts.pop(node_id, None)
        self._offsets.pop(node_id, None)
        self._shutdown_offsets.pop(node_id, None)

    def extend(self, seconds: float) -> None:
        """The controller itself did not run for so long: silence in that time proves nothing."""
        for node_id in self._deadlines:
            self._deadlines[node_id] += seconds

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
