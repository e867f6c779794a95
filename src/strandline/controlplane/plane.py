"""The control plane: all ports in one class."""

from __future__ import annotations

from strandline.controlplane.commits import SqlBatchCommits
from strandline.controlplane.conversion.claims import SqlSplitClaims
from strandline.controlplane.conversion.given_up import SqlGivenUpSegments
from strandline.controlplane.conversion.runs import SqlGivenUpRuns
from strandline.controlplane.conversion.uploads import SqlSegmentUploads
from strandline.controlplane.conversion.wishes import SqlTieringWishes
from strandline.controlplane.files import SqlWalFiles
from strandline.controlplane.lifecycle import SqlLogLifecycle
from strandline.controlplane.migrations import SqlMigrations
from strandline.controlplane.producers import SqlProducerStates
from strandline.controlplane.reads import SqlBatchReads
from strandline.controlplane.store_records import SqlStoreRecords
from strandline.controlplane.trimming import SqlLogTrimming


class SqlControlPlane(
    SqlBatchCommits,
    SqlBatchReads,
    SqlLogLifecycle,
    SqlLogTrimming,
    SqlWalFiles,
    SqlProducerStates,
    SqlMigrations,
    SqlSplitClaims,
    SqlSegmentUploads,
    SqlGivenUpSegments,
    SqlGivenUpRuns,
    SqlTieringWishes,
    SqlStoreRecords,
):
    """Every port on one SqlStore: a ControlPlane. Passes tests/contracts/test_control_plane*.py on both databases.

    Keeps nothing in memory: any number of instances, in any number of processes, may share a database.
    """
