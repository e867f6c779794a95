"""The batch coordinator: offsets and metadata of diskless batches, in a SQL database.

Here: commit, find, list offsets, retention, files and their deletion, producer state, boundaries between tiers, as a
sum of small ports (`ports`). Not here: bytes of records, object storage, which broker serves which client.
"""

from strandline.controlplane.conversion.ports import SegmentUploads, SplitClaims, TieringWishes
from strandline.controlplane.conversion.values import (
    LogSplits,
    LogTieringProgress,
    PendingSplit,
    SegmentCommit,
    SegmentUpload,
    TieringRule,
    TopicTiering,
    UploadAnswer,
)
from strandline.controlplane.database import COMMIT_CHANNEL, MIGRATION_CHANNEL, TIERING_CHANNEL, TRIM_CHANNEL
from strandline.controlplane.errors import trouble_for_clients
from strandline.controlplane.migration_requests import abort_migration, migrating_topics, request_migration
from strandline.controlplane.plane import SqlControlPlane
from strandline.controlplane.ports import (
    BatchCommits,
    BatchReads,
    ControlPlane,
    LogLifecycle,
    LogTrimming,
    Migrations,
    ProducerStates,
    WalFiles,
)
from strandline.controlplane.values import (
    AbortedRange,
    BatchRow,
    BatchToCommit,
    BoundarySet,
    CommittedBatch,
    DisklessLog,
    FileToCommit,
    FindBatches,
    FoundAborted,
    FoundBatches,
    MigrationState,
    NewBoundary,
    OffsetBoundary,
    PrefixProgress,
    ProducerBatches,
    Refusal,
    RetentionRule,
    TopicMigration,
    Trimmed,
    WalFile,
)

__all__ = [
    "COMMIT_CHANNEL",
    "MIGRATION_CHANNEL",
    "TIERING_CHANNEL",
    "TRIM_CHANNEL",
    "AbortedRange",
    "BatchCommits",
    "BatchReads",
    "BatchRow",
    "BatchToCommit",
    "BoundarySet",
    "CommittedBatch",
    "ControlPlane",
    "DisklessLog",
    "FileToCommit",
    "FindBatches",
    "FoundAborted",
    "FoundBatches",
    "LogLifecycle",
    "LogSplits",
    "LogTieringProgress",
    "LogTrimming",
    "MigrationState",
    "Migrations",
    "NewBoundary",
    "OffsetBoundary",
    "PendingSplit",
    "PrefixProgress",
    "ProducerBatches",
    "ProducerStates",
    "Refusal",
    "RetentionRule",
    "SegmentCommit",
    "SegmentUpload",
    "SegmentUploads",
    "SplitClaims",
    "SqlControlPlane",
    "TieringRule",
    "TieringWishes",
    "TopicMigration",
    "TopicTiering",
    "Trimmed",
    "UploadAnswer",
    "WalFile",
    "WalFiles",
    "abort_migration",
    "migrating_topics",
    "request_migration",
    "trouble_for_clients",
]
