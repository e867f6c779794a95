"""Moving the start of a log."""

from __future__ import annotations

from strandline.errors import OffsetOutOfRange
from strandline.log.applied_config import AppliedConfig
from strandline.log.epochs import LeaderEpochs
from strandline.log.offsets import PartitionOffsets
from strandline.log.partition_directory import PartitionDirectory
from strandline.log.segments import Segments
from strandline.model import NO_OFFSET


class LogStart:
    """The log start offset, the leader epochs from there on, and the log start that a crash would bring back.

    Until a new log start is checkpointed, a crash brings the old one back. A tiered log then needs its old epochs too,
    since its remote segments are found by epoch; they stay in the epoch file until the checkpoint is written.
    """

    __slots__ = ("_applied", "_directory", "_epochs", "_offsets", "_segments", "checkpointed")

    def __init__(
        self,
        directory: PartitionDirectory,
        applied: AppliedConfig,
        offsets: PartitionOffsets,
        segments: Segments,
        epochs: LeaderEpochs,
    ) -> None:
        self._directory = directory
        self._applied = applied
        self._offsets = offsets
        self._segments = segments
        self._epochs = epochs
        self.checkpointed = NO_OFFSET
        """The log start in the checkpoint, which is where a tiered log starts after a crash."""

    def increment(self, offset: int) -> bool:
        """Hide everything below `offset`; retention deletes the segments wholly below it. True if the start moved.

        Raises OffsetOutOfRange above the high watermark.
        """
        self._directory.check_online()
        offsets = self._offsets
        if offset > offsets.high_watermark:
            raise OffsetOutOfRange(
                f"The log start of {self._directory.topic_partition} cannot move to {offset}: the high watermark is "
                f"{offsets.high_watermark}."
            )
        if offset <= offsets.start:
            return False
        self.move_to(offset, is_tiered=self._applied.is_remote)
        return True

    def delete_records(self, offset: int) -> int:
        """DeleteRecords: -1 stands for the high watermark. Returns the log start offset. Raises OffsetOutOfRange."""
        target = self._offsets.high_watermark if offset == -1 else offset
        if target < 0:
            raise OffsetOutOfRange(
                f"Records of {self._directory.topic_partition} cannot be deleted up to the offset {offset}."
            )
        self.increment(target)
        return self._offsets.start

    async def store(self) -> None:
        """Return when no crash brings an older log start back. Raises KafkaStorageError.

        To be awaited before anything below the log start is deleted where a restart would look for it.
        """
        wanted = self._offsets.start
        if self.checkpointed < wanted:
            await self._directory.env.store_log_starts(lambda: self.checkpointed >= wanted)

    def move_to(self, offset: int, *, is_tiered: bool) -> None:
        """Start at `offset`, without the epochs below. `is_tiered`: the log may be tiered after a crash."""
        first_local = None if self._applied.is_remote else self._segments.first.base_offset
        self._offsets.move_start(offset, first_local=first_local)
        known = self.checkpointed
        old = self._segments.first.base_offset if known == NO_OFFSET else known
        self._epochs.truncate_from_start(offset, kept_from=old if is_tiered else None)

    def load(self, checkpoint: int | None) -> None:
        """Take the start of a log that is being loaded: its first segment, or above it.

        A tiered log starts at the checkpoint. If that is lost, it starts with its first epoch, since the epochs are
        kept from the log start on. It never starts with the first local segment: that would delete its remote ones.
        """
        first = self._segments.first.base_offset
        is_remote = self._applied.is_remote
        if not is_remote:
            start = max(checkpoint or 0, first)
        elif checkpoint is not None:
            start = checkpoint
        else:
            known = self._epochs.first_start
            start = first if known is None else min(known, first)
        self._offsets.load_start(start, first_local=first)
        if checkpoint is not None:
            self.checkpointed = checkpoint
        elif is_remote:
            self._directory.env.directory.has_new_log_starts = True
