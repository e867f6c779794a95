"""The batch coordinator: offsets and metadata of diskless batches, in a SQL database.

Here: commit, find, list offsets, retention, files and their deletion, producer state, boundaries between tiers, as a
sum of small ports (`ports`). Not here: bytes of records, object storage, which broker serves which client.
"""

from strandline.controlplane.database import COMMIT_CHANNEL, MIGRATION_CHANNEL, TRIM_CHANNEL
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
    BatchRow,
    BatchToCommit,
    BoundarySet,
    CommittedBatch,
    DisklessLog,
    FileToCommit,
    FindBatches,
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
    "TRIM_CHANNEL",
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
    "FoundBatches",
    "LogLifecycle",
    "LogTrimming",
    "MigrationState",
    "Migrations",
    "NewBoundary",
    "OffsetBoundary",
    "PrefixProgress",
    "ProducerBatches",
    "ProducerStates",
    "Refusal",
    "RetentionRule",
    "SqlControlPlane",
    "TopicMigration",
    "Trimmed",
    "WalFile",
    "WalFiles",
    "abort_migration",
    "migrating_topics",
    "request_migration",
    "trouble_for_clients",
]
