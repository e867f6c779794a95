"""A partition that is copied from its leader, in one leader epoch."""

from __future__ import annotations

import enum
from typing import Final, TypeAlias

from strandline.model import NO_EPOCH, BrokerId, LeaderEpoch, Offset
from strandline.replication.partition import Partition
from strandline.wire.fetch_codec import FetchEntry

Key: TypeAlias = tuple[bytes, int]
"""Topic id and number of a partition, as requests and answers have them."""


class FetchStage(enum.Enum):
    """What a followed partition does."""

    SETTLING = enum.auto()
    """Appends are being written, its own or those of the time in which this broker led: its end is not final."""
    FETCHING = enum.auto()
    OUT_OF_RANGE = enum.auto()
    """The leader does not have the offset: it is asked which ones it has."""
    FAILED = enum.auto()
    """It is left alone until the metadata says something new of it."""


class FollowedPartition:
    """Belongs to one fetcher. In the next leader epoch another one takes its place."""

    __slots__ = (
        "attempts",
        "fetch_offset",
        "key",
        "lag",
        "last_fetched_epoch",
        "leader",
        "leader_end",
        "leader_epoch",
        "partition",
        "retry_at",
        "stage",
        "why_failed",
    )

    def __init__(self, partition: Partition) -> None:
        self.partition: Final = partition
        self.key: Final[Key] = (partition.topic_id.bytes, partition.topic_partition.partition)
        self.leader: Final[BrokerId] = partition.leader
        self.leader_epoch: Final[LeaderEpoch] = partition.leader_epoch
        self.stage = FetchStage.SETTLING
        self.fetch_offset: Offset = 0
        self.last_fetched_epoch: LeaderEpoch = NO_EPOCH
        self.lag: int | None = None
        """How many records of the leader's high watermark are missing; None before the first answer."""
        self.leader_end: Offset | None = None
        """While it is out of range: where the leader's log ends, once that is known."""
        self.retry_at: float | None = None
        """When it is asked for again after an error; None if there was none."""
        self.attempts = 0
        """Errors since the last answer without one."""
        self.why_failed = ""

    @property
    def is_asked_for(self) -> bool:
        """True if it belongs into the next request."""
        return self.stage is FetchStage.FETCHING and self.retry_at is None

    def start_at_end(self) -> None:
        """Go on where the own log ends, whatever was known before. The log is quiet."""
        log = self.partition.log
        self.fetch_offset = log.log_end_offset
        latest = log.epochs.latest
        self.last_fetched_epoch = NO_EPOCH if latest is None else latest
        self.stage = FetchStage.FETCHING
        self.leader_end = None

    def entry(self, max_bytes: int) -> FetchEntry:
        """What a request says of it."""
        topic_id, number = self.key
        start = self.partition.log.log_start_offset
        return FetchEntry(
            topic_id, number, self.leader_epoch, self.fetch_offset, self.last_fetched_epoch, start, max_bytes
        )

    def is_answered_by(self, asked: FetchEntry) -> bool:
        """True if an answer to this entry may be used: nothing has changed since it was sent."""
        return (
            self.is_asked_for
            and asked.fetch_offset == self.fetch_offset
            and asked.current_leader_epoch == self.leader_epoch
        )

    def __repr__(self) -> str:
        return (
            f"FollowedPartition({self.partition.topic_partition} of broker {self.leader} in epoch {self.leader_epoch}, "
            f"{self.stage.name} at {self.fetch_offset})"
        )
