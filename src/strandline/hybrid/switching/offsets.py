"""Questions about the offsets of a switched partition: the prefix is asked, then the suffix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from strandline.errors import KafkaStorageError
from strandline.hybrid.classic import ClassicPartition
from strandline.hybrid.diskless.partition import DisklessPartition
from strandline.model import NO_EPOCH, NO_OFFSET, LeaderEpoch, Offset, TimestampMs
from strandline.reads import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    NOTHING,
    FetchIsolation,
    FoundOffset,
)

_OF_THE_START: Final = frozenset({EARLIEST, EARLIEST_LOCAL})
_OF_THE_TIERS: Final = frozenset({LATEST_TIERED, EARLIEST_PENDING_UPLOAD})


class HybridOffsets:
    """ListOffsets and leader epochs over both parts of one log."""

    __slots__ = ("_boundary", "_boundary_epoch", "_check_prefix", "_classic", "_suffix")

    def __init__(
        self,
        classic: ClassicPartition,
        suffix: DisklessPartition,
        boundary: Offset,
        boundary_epoch: LeaderEpoch,
        *,
        check_prefix: Callable[[], None],
    ) -> None:
        """`boundary_epoch` is the leader epoch in which the boundary was set: the suffix has no older records.

        `check_prefix` raises if this broker may not read below the boundary.
        """
        self._classic, self._suffix, self._boundary = classic, suffix, boundary
        self._boundary_epoch = boundary_epoch
        self._check_prefix = check_prefix

    @property
    def _has_prefix(self) -> bool:
        return self._classic.log_start_offset < self._boundary

    async def list_offset(self, timestamp: TimestampMs, *, isolation: FetchIsolation, timeout_ms: int) -> FoundOffset:
        """See `PartitionQueries`. The first record by time is the one with the smallest offset: the prefix has it, or
        the suffix, whatever the timestamps are."""
        if timestamp == LATEST or not self._has_prefix:
            return await self._in_suffix(timestamp, isolation, timeout_ms)
        self._check_prefix()
        if timestamp == LATEST_TIERED:
            converted = await self._in_suffix(timestamp, isolation, timeout_ms)
            if converted.offset >= self._boundary:
                return converted
        before = await self._in_prefix(timestamp, isolation, timeout_ms)
        if timestamp in _OF_THE_START:
            return before if before.offset < self._boundary else await self._in_suffix(timestamp, isolation, timeout_ms)
        if timestamp in _OF_THE_TIERS:
            return before
        if timestamp == MAX_TIMESTAMP:
            after = await self._in_suffix(timestamp, isolation, timeout_ms)
            return after if after.timestamp > before.timestamp else before
        return before if before.offset != NO_OFFSET else await self._in_suffix(timestamp, isolation, timeout_ms)

    async def _in_prefix(self, timestamp: TimestampMs, isolation: FetchIsolation, timeout_ms: int) -> FoundOffset:
        """What the prefix answers. At its end stands the boundary, which is no record of it."""
        found = await self._classic.list_offset(timestamp, isolation=isolation, timeout_ms=timeout_ms)
        if timestamp == MAX_TIMESTAMP:
            remote = await self._classic.newest_remote_record(timeout_ms=timeout_ms)
            found = found if found.timestamp > remote.timestamp else remote
        if timestamp == EARLIEST_PENDING_UPLOAD and found.offset == self._boundary:
            return NOTHING
        limit = self._boundary if timestamp in _OF_THE_START else self._boundary - 1
        if found.offset > limit:
            raise self._breach("prefix", found.offset)
        return found

    async def _in_suffix(self, timestamp: TimestampMs, isolation: FetchIsolation, timeout_ms: int) -> FoundOffset:
        found = await self._suffix.list_offset(timestamp, isolation=isolation, timeout_ms=timeout_ms)
        if timestamp in _OF_THE_TIERS or not NO_OFFSET < found.offset < self._boundary:
            return found
        if timestamp in _OF_THE_START:  # the control plane has not heard yet that the prefix is gone
            return found._replace(offset=self._boundary)
        raise self._breach("suffix", found.offset)

    def _breach(self, part: str, offset: Offset) -> KafkaStorageError:
        return KafkaStorageError(
            f"The {part} of {self._classic.topic_partition} answered with offset {offset}, on the wrong side of the "
            f"boundary {self._boundary}. Nothing is answered rather than a wrong offset."
        )

    # Leader epochs

    def known_end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset]:
        """Epochs before the switch end in the prefix. That of the switch, and later ones, go on in the suffix, which
        never lost a record. (The log of the replica begins an epoch, without records, whenever it has a new leader.)"""
        return self._end_in_prefix(epoch) or self._suffix.known_end_of_epoch(epoch)

    async def end_offset_for_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset]:
        """OffsetForLeaderEpoch."""
        return self._end_in_prefix(epoch) or await self._suffix.end_offset_for_epoch(epoch)

    def _end_in_prefix(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset] | None:
        """None if the epoch does not end in the prefix."""
        epochs = self._classic.replica.log.epochs
        latest = epochs.latest
        if latest is None or epoch == NO_EPOCH or epoch >= self._boundary_epoch:
            return None
        return (latest, self._boundary) if epoch > latest else epochs.end_offset_for(epoch, self._boundary)
