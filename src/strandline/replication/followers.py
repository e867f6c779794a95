"""What a leader knows of the other replicas of a partition. There is one of these for each of them, and none elsewhere.

The rules are Kafka's: a follower was caught up at the latest time at which the offset that it fetched next reached the
end that the leader had at that time. A follower with a fetch session names only partitions with news in its requests.
While its place in the session rests, it counts as fetching again with every request, at the same offset.
"""

from __future__ import annotations

from typing import Final

from strandline.model import NO_OFFSET, BrokerId, Offset

NEVER: Final = float("-inf")
UNKNOWN_EPOCH: Final = -2
"""The broker epoch of a follower that has not fetched yet."""


class FollowerVisits:
    """The requests of one fetch session of a follower. The clock is that of `Clock.monotonic`."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at = NEVER
        """When the last request was through with its first look."""


class Follower:
    """One of the other replicas, as its fetches show it. Belongs to the event loop."""

    __slots__ = (
        "_caught_up_at",
        "_fetched_at",
        "_leader_end",
        "broker",
        "broker_epoch",
        "end",
        "log_start",
        "rests_in",
    )

    def __init__(self, broker: BrokerId) -> None:
        self.broker: Final = broker
        self.broker_epoch = UNKNOWN_EPOCH
        """The epoch with which it has fetched last. A leader must not promise anything for another incarnation."""
        self.end: Offset = NO_OFFSET
        """It has every record below."""
        self.log_start: Offset = NO_OFFSET
        self._caught_up_at = NEVER
        self._fetched_at = NEVER
        self._leader_end: Offset = NO_OFFSET
        """Where the leader's log ended at its last fetch."""
        self.rests_in: FollowerVisits | None = None

    def starts_anew(self, now: float, leader_end: Offset, *, is_in_sync: bool, was_led_here: bool) -> None:
        """Another leader epoch begins. Those in sync get the whole time to show that they are.

        What is known of a follower stays known if this broker led in the epoch before: it has cut off nothing since.
        """
        self.wakes()
        if not was_led_here:
            self.end = self.log_start = NO_OFFSET
            self.broker_epoch = UNKNOWN_EPOCH
            leader_end = NO_OFFSET
        self._leader_end = leader_end
        self._fetched_at = self._caught_up_at = now if is_in_sync else NEVER

    def fetched(self, offset: Offset, log_start: Offset, leader_end: Offset, broker_epoch: int, now: float) -> None:
        """It fetches from `offset` on, and the leader's log ends at `leader_end`."""
        self.wakes()
        if offset >= leader_end:
            self._caught_up_at = now
        elif offset >= self._leader_end and self._fetched_at > self._caught_up_at:
            self._caught_up_at = self._fetched_at
        self.end, self.log_start, self.broker_epoch = offset, log_start, broker_epoch
        if leader_end > self._leader_end:
            self._leader_end = leader_end
        self._fetched_at = now

    def rests(self, visits: FollowerVisits) -> None:
        """It has everything, and fetches it again with each request of that session until it `wakes`."""
        self.rests_in = visits

    def wakes(self) -> None:
        """The log has grown, or the session does not fetch it any more."""
        visits, self.rests_in = self.rests_in, None
        if visits is not None and visits.at > self._fetched_at:
            self._fetched_at = self._caught_up_at = visits.at

    @property
    def caught_up_at(self) -> float:
        """When it was seen with the whole log."""
        visits = self.rests_in
        return self._caught_up_at if visits is None else max(visits.at, self._caught_up_at)
