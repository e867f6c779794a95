"""The batch coordinator: offsets and metadata of diskless batches, in a SQL database.

Here: commit, find, list offsets, retention, files and their deletion, producer state, boundaries between tiers, as a
sum of small ports (`ports`). Not here: bytes of records, object storage, which broker serves which client.
"""

from strandline.controlplane.database import COMMIT_CHANNEL, TRIM_CHANNEL
from strandline.controlplane.errors import trouble_for_clients
from strandline.controlplane.plane import SqlControlPlane
from strandline.controlplane.ports import (
    BatchCommits,
    BatchReads,
    ControlPlane,
    LogLifecycle,
    LogTrimming,
    ProducerStates,
    WalFiles,
)
from strandline.controlplane.values import (
    BatchRow,
    BatchToCommit,
    CommittedBatch,
    DisklessLog,
    FileToCommit,
    FindBatches,
    FoundBatches,
    MigrationState,
    OffsetBoundary,
    ProducerBatches,
    Refusal,
    RetentionRule,
    Trimmed,
    WalFile,
)

__all__ = [
    "COMMIT_CHANNEL",
    "TRIM_CHANNEL",
    "BatchCommits",
    "BatchReads",
    "BatchRow",
    "BatchToCommit",
    "CommittedBatch",
    "ControlPlane",
    "DisklessLog",
    "FileToCommit",
    "FindBatches",
    "FoundBatches",
    "LogLifecycle",
    "LogTrimming",
    "MigrationState",
    "OffsetBoundary",
    "ProducerBatches",
    "ProducerStates",
    "Refusal",
    "RetentionRule",
    "SqlControlPlane",
    "Trimmed",
    "WalFile",
    "WalFiles",
    "trouble_for_clients",
]
