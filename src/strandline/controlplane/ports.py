"""The ports of the control plane, split by who calls them. `ControlPlane` offers them all.

For every port: one call is one transaction (or several, each of which leaves a legal state, where that is said);
calls may run at the same time, on any broker. Database trouble is raised as the errors of `strandline.sql`; after
StoreUnavailable the call may have happened, and calling again is safe for all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from strandline.controlplane.values import (
    BatchRow,
    CommittedBatch,
    DisklessLog,
    FileToCommit,
    FindBatches,
    FoundBatches,
    OffsetBoundary,
    ProducerBatches,
    RetentionRule,
    Trimmed,
    WalFile,
)
from strandline.model import Offset, TimestampMs, TopicIdPartition


class BatchCommits(Protocol):
    """For the writer."""

    async def commit_files(
        self, files: Sequence[FileToCommit], *, now_ms: TimestampMs
    ) -> Sequence[Sequence[CommittedBatch]]:
        """Give the batches of uploaded files their offsets: all files in their order, in one transaction.

        Offsets are dense, in the order of the files and of the batches in them. A refused batch does not stop the
        others; its bytes stay in the object, unreferenced. A file that was committed before (its key is known) gets
        the answers of that time: a lost answer can be asked for again. All batches of a file whose key the cleaner has
        taken for an orphan are refused (STALE_FILE). A file of which no batch was accepted is marked for deletion in
        the same transaction.
        """


class BatchReads(Protocol):
    """For the reader."""

    async def find_batches(self, requests: Sequence[FindBatches], *, max_rows: int) -> Sequence[FoundBatches]:
        """The rows from each offset on, at most `max_rows` for each. Costs as much as the answer, at any depth."""

    async def logs(self, partitions: Collection[TopicIdPartition]) -> Mapping[TopicIdPartition, DisklessLog]:
        """The logs that exist, in one query."""

    async def first_row_at_time(self, partition: TopicIdPartition, timestamp: TimestampMs) -> BatchRow | None:
        """The first row that holds a record of this time or later. None if there is none, or no such log."""

    async def row_of_max_timestamp(self, partition: TopicIdPartition, *, from_offset: Offset = 0) -> BatchRow | None:
        """The first row, of those that reach `from_offset`, that holds the largest timestamp there is."""

    async def offset_boundary(self, partition: TopicIdPartition, offset: Offset) -> OffsetBoundary:
        """Which tier holds an offset."""


class LogLifecycle(Protocol):
    """For whoever follows the metadata."""

    async def create_logs(self, partitions: Collection[TopicIdPartition]) -> None:
        """Create empty logs, with all offsets 0. Those that exist stay as they are."""

    async def delete_topics(self, topic_ids: Collection[UUID]) -> None:
        """Remove logs, batches and producer state; files that nothing refers to any more are marked for deletion.

        In several bounded transactions: the logs first, so that nothing is committed to them any more.
        """

    async def topic_ids(self) -> frozenset[UUID]:
        """Every topic that has a log here, or rows that a deletion has not reached yet."""


class LogTrimming(Protocol):
    """For DeleteRecords and retention."""

    async def delete_records(self, before: Mapping[TopicIdPartition, Offset]) -> Mapping[TopicIdPartition, Trimmed]:
        """Move the log start up to an offset (-1: the high watermark); never back. Rows wholly below it go.

        All starts move in one transaction; the rows follow in others, page by page.
        """

    async def enforce_retention(
        self, rules: Sequence[RetentionRule], *, now_ms: TimestampMs, max_rows: int
    ) -> Sequence[Trimmed]:
        """Drop the oldest rows that are too old or too many, at most `max_rows` of each log.

        Looks for them without a lock; then they go in short transactions, and the start of the log with them. Of what
        is not too old, at least `retention_bytes` stay. The answers are in the order of the rules.
        """

    async def expire_producers(self, *, before_ms: TimestampMs, limit: int) -> int:
        """Forget producers whose last commit is older; how many went."""


class WalFiles(Protocol):
    """For the file cleaner and fsck."""

    async def files_to_delete(self, *, marked_before_ms: TimestampMs, limit: int) -> Sequence[WalFile]:
        """The files marked longest ago, at `marked_before_ms` or earlier."""

    async def forget_files(self, file_ids: Collection[int]) -> None:
        """Their objects are gone. Only rows that are marked go.

        Their keys are remembered for a day: a commit that comes so late is refused (STALE_FILE).
        """

    async def take_orphans(self, object_keys: Collection[str], *, broker_id: int, now_ms: TimestampMs) -> Sequence[str]:
        """Mark objects that no file row knows for deletion, so that a late commit of them is refused.

        Returns the keys that were taken; known ones are left alone, unless their objects were deleted before.
        """

    async def files_after(self, file_id: int, limit: int) -> Sequence[WalFile]:
        """All files, page by page, in the order of their ids."""

    async def rows_of_file(self, file_id: int) -> Sequence[tuple[TopicIdPartition, BatchRow]]:
        """The rows that refer to a file."""


class ProducerStates(Protocol):
    """For DescribeProducers."""

    async def producers(self, partition: TopicIdPartition) -> Sequence[ProducerBatches]:
        """Every producer the partition remembers."""


class ControlPlane(BatchCommits, BatchReads, LogLifecycle, LogTrimming, WalFiles, ProducerStates, Protocol):
    """The sum of the ports. A component asks for the one it uses."""
