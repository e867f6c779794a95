"""The ports of the control plane, split by their callers: each takes the ports it uses, and never the whole.

For every port: one call is one transaction, unless its docstring says that it is several, each of which leaves a legal
state. Calls may run concurrently, on any broker. Database errors are raised as errors of `strandline.sql`; after
StoreUnavailable the call may have taken effect, and it is always safe to repeat it. Every moment that is stored, and
every moment that it is compared with, is the database's time: the clocks of brokers may differ.

Those of conversion are in `conversion.ports`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from strandline.controlplane.values import (
    BatchRow,
    BoundaryClaim,
    BoundarySet,
    CommittedBatch,
    DisklessLog,
    FileToCommit,
    FindBatches,
    FoundAborted,
    FoundBatches,
    NewBoundary,
    PrefixProgress,
    ProducerBatches,
    Refusal,
    RetentionRule,
    TopicMigration,
    Trimmed,
    WalFile,
)
from strandline.model import LeaderEpoch, Offset, ProducerId, TimestampMs, TopicIdPartition

# Batches


class BatchCommits(Protocol):
    """For the writer."""

    async def commit_files(self, files: Sequence[FileToCommit]) -> Sequence[Sequence[CommittedBatch]]:
        """Give the batches of uploaded files their offsets: all files in their order, in one transaction.

        Offsets are dense, in the order of the files and of the batches in them. Leader epochs never go back along a
        log: a batch of an older epoch than the log has seen is kept with the log's. A refused batch does not stop the
        others; its bytes stay in the object, unreferenced. A file that was committed before (its key is known) gets
        the answers of that commit, so that a caller whose answer was lost can repeat the call. All batches of a file
        that was marked as an orphan are refused (STALE_FILE). A file of which no batch was accepted is marked for
        deletion in the same transaction.

        A batch of a transaction opens it if it is not open. A control batch ends it: later ones of an older epoch of
        its producer are refused (INVALID_PRODUCER_EPOCH), and markers of an older coordinator (COORDINATOR_FENCED); an
        abort is remembered as a range. Whether a transaction is open, and where the first one begins, depends on
        nothing but the batches up to the high watermark: the two offsets belong together.
        """


class DisklessLogs(Protocol):
    """For all callers that need the offsets of logs."""

    async def logs(self, partitions: Collection[TopicIdPartition]) -> Mapping[TopicIdPartition, DisklessLog]:
        """The logs that exist, in one query. Also those whose B0 is unset."""


class BatchSearch(DisklessLogs, Protocol):
    """For plans of reads."""

    async def find_batches(self, requests: Sequence[FindBatches], *, max_rows: int) -> Sequence[FoundBatches]:
        """The rows from each offset on, at most `max_rows` for each. Costs as much as the answer, at any offset.

        The first row holds the offset. An offset of the log below the read boundary is refused (IN_PREFIX).
        """


class BatchReads(BatchSearch, Protocol):
    """For the reader, and for other code that reads rows."""

    async def aborted_transactions(
        self, partition: TopicIdPartition, *, from_offset: Offset, limit: int
    ) -> FoundAborted:
        """The first `limit` aborted transactions with markers at `from_offset` or later."""

    async def known_files(self, object_keys: Collection[str]) -> Mapping[str, bool]:
        """Those of the files that the control plane knows, and whether batches refer to them.

        A file whose object was deleted is known for another day.
        """


class BatchLookups(BatchSearch, Protocol):
    """For ListOffsets. Both lookups are of the records from the read boundary on."""

    async def first_row_at_time(self, partition: TopicIdPartition, timestamp: TimestampMs) -> BatchRow | None:
        """The first row that holds a record of this time or later. None if there is none, or no such log."""

    async def row_of_max_timestamp(self, partition: TopicIdPartition, *, from_offset: Offset = 0) -> BatchRow | None:
        """The first row with the largest timestamp, of the rows that end at `from_offset` or later."""


# Logs


class LogCreation(Protocol):
    """For the component that follows the cluster metadata."""

    async def create_logs(self, partitions: Collection[TopicIdPartition]) -> None:
        """Create empty logs, with all offsets 0. Those that exist stay as they are.

        Leaves out partitions that the switch of their topic concerns, which begin at their B0; for a day also after it
        was aborted, because a broker may not know that yet.
        """

    async def diskless_topic_ids(self) -> frozenset[UUID]:
        """Every topic of which a partition is diskless, with B0. Not those that are only to be switched."""


class TopicDeletion(Protocol):
    """For the controller, which removes what deleted topics leave."""

    async def topic_ids(self) -> frozenset[UUID]:
        """Every topic that has a log or a wish, or whose switch was requested, or that its deletion left rows of."""

    async def delete_topics(self, topic_ids: Collection[UUID]) -> None:
        """Remove logs, batches and producer state; files that nothing refers to any more are marked for deletion.

        In several bounded transactions. The first ends their switches: no B0 is set from then on. The second closes
        the logs: later commits to them are refused.
        """


class RecordDeletion(Protocol):
    """For DeleteRecords, and for the expiry of converted segments."""

    async def delete_records(self, before: Mapping[TopicIdPartition, Offset]) -> Mapping[TopicIdPartition, Trimmed]:
        """Move the log start up to an offset (-1: the high watermark), never back, and delete the rows below it.

        All log starts move in one transaction; rows are deleted in further ones, page by page. A start below B0 is the
        start of the whole log: what lies below it in the prefix is for the leader to delete.
        """


class LogTrimming(Protocol):
    """For retention."""

    async def enforce_retention(self, rules: Sequence[RetentionRule], *, max_rows: int) -> Sequence[Trimmed]:
        """Delete the oldest rows that exceed the retention time or size, at most `max_rows` of each log.

        Finds them without a lock, then deletes them in short transactions that also move the log start. At least
        `retention_bytes` of what has not expired stay. The answers are in the order of the rules. Nothing is deleted
        from a log that begins below its read boundary: its oldest records are in the prefix, and the leader's to judge.
        """


# Producers


class ProducerStates(Protocol):
    """For DescribeProducers, and for batches that a transaction coordinator has refused."""

    async def producers(self, partition: TopicIdPartition, only: ProducerId | None = None) -> Sequence[ProducerBatches]:
        """Every producer the partition remembers, or only one, if it does."""


class ProducerExpiry(Protocol):
    """For retention."""

    async def expire_producers(self, *, silent_ms: int, limit: int) -> int:
        """Forget producers whose last commit is longer ago, and that have no transaction open; returns how many."""


# Files


class DatabaseTime(Protocol):
    """For callers that compare the moments in rows with the present time."""

    async def now_ms(self) -> TimestampMs:
        """The time by which the moments in the rows are to be judged."""


class FileDeletion(Protocol):
    """For the file cleaner."""

    async def files_to_delete(self, *, marked_for_ms: int, limit: int) -> Sequence[WalFile]:
        """Files that have been marked for at least this long, in the order of their marking."""

    async def forget_files(self, file_ids: Collection[int]) -> None:
        """Remove the rows of files whose objects were deleted, and their claims; rows that are not marked stay.

        Their keys are kept for a day, in which a late commit is refused (STALE_FILE); not those of split files that
        were recorded, whose rows tell.
        """


class OrphanSearch(DatabaseTime, Protocol):
    """For the search for objects without a row."""

    async def take_orphans(self, object_keys: Collection[str], *, broker_id: int) -> Sequence[str]:
        """Mark objects without a file row for deletion, so that a late commit or record of them is refused.

        Returns the keys that were marked. Those with a row are left alone, unless their objects were deleted before.
        """


class WalFileList(Protocol):
    """For the question whether there are any files."""

    async def files_after(self, file_id: int, limit: int) -> Sequence[WalFile]:
        """All files, page by page, in the order of their ids."""


class FileInspection(OrphanSearch, WalFileList, Protocol):
    """For fsck."""

    async def rows_of_file(self, file_id: int) -> Sequence[tuple[TopicIdPartition, BatchRow]]:
        """The rows that refer to a file."""

    async def wrong_transactions(self) -> Mapping[TopicIdPartition, str]:
        """Logs whose rows about transactions contradict each other, and a sentence for each. There should be none."""


# Switches of topics from classic to diskless. `migration_requests` begins and aborts them, as the controller's work.


class RequestedMigrations(Protocol):
    """For all callers that need to know what is being switched."""

    async def topic_migrations(self) -> Sequence[TopicMigration]:
        """The switches that were requested and are not finished, in the order of their requests."""


class Boundaries(RequestedMigrations, Protocol):
    """For the leaders of topics that are switched."""

    async def claim_boundaries(self, claims: Sequence[BoundaryClaim]) -> Mapping[TopicIdPartition, DisklessLog]:
        """Fence earlier leaders of these partitions: from now on only these leaders, or later ones, set B0.

        Waits for an earlier leader's transaction that is under way. Returns the logs as they are afterwards; those
        with B0, with a later epoch, or without a request of that position are unchanged, and left out if there is none.
        """

    async def initialize_diskless_migration(self, boundaries: Sequence[NewBoundary]) -> Sequence[BoundarySet]:
        """Set B0 of some partitions, and take over the producers of their prefixes: the answers in the same order.

        From then on the partitions take commits, with offsets from B0 on. While B0 is unset the topic must have a
        switch at the position that the leader names (MIGRATION_NOT_FOUND), and what an earlier leader left is
        overwritten. Once it is set, the same boundary of the same or a later leader succeeds and changes nothing; any
        other is refused (BOUNDARY_IS_SET), and so are other producers while nothing is committed behind it. An epoch
        below the stored one is always refused (STALE_LEADER_EPOCH). A refused partition does not stop the others. Wakes
        MIGRATION_CHANNEL.
        """

    async def reset_diskless_log_start_offset(
        self, partition: TopicIdPartition, leader_epoch: LeaderEpoch
    ) -> BoundarySet:
        """Make B0 unset again, and the switch of the topic unfinished. Only while no batch was ever committed
        (BOUNDARY_IS_SET), and not by a leader that was replaced (STALE_LEADER_EPOCH). Succeeds if it is unset already.
        """


class PrefixReports(Protocol):
    """For the leaders of topics that were switched."""

    async def record_prefix(self, progress: Sequence[PrefixProgress]) -> None:
        """Store how far the prefixes are tiered, where their logs begin, and their states. Ends finished switches.

        Nothing goes back, whatever a leader reports, and nothing goes beyond B0. Reports of leaders that were replaced,
        and of partitions without B0, are ignored.
        """


class MigrationViews(RequestedMigrations, Protocol):
    """For status."""

    async def migration_states(self, topic_ids: Collection[UUID]) -> Mapping[UUID, Sequence[DisklessLog]]:
        """All logs of some topics, in the order of their partitions. Topics without logs are left out."""


class MigrationEnding(MigrationViews, Protocol):
    """For operators, who see the status and may end a switch by force."""

    async def complete_migration(self, topic_id: UUID) -> Refusal | None:
        """End the switch of a topic although its prefix is not wholly tiered: MIGRATING becomes HYBRID.

        Refused if there is none (MIGRATION_NOT_FOUND), or a partition has no B0 (BOUNDARY_IS_UNSET).
        """
