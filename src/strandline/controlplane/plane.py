"""The control plane: its parts, on one database."""

from __future__ import annotations

from strandline.clock import Clock
from strandline.controlplane.commits import SqlBatchCommits
from strandline.controlplane.conversion.claims import SqlSplitClaims
from strandline.controlplane.conversion.given_up import SqlGivenUpSegments
from strandline.controlplane.conversion.merging import SqlMergeableSplits
from strandline.controlplane.conversion.runs import SqlGivenUpRuns
from strandline.controlplane.conversion.uploads import SqlSegmentUploads
from strandline.controlplane.conversion.wishes import SqlTieringWishes
from strandline.controlplane.database import Database
from strandline.controlplane.files import SqlWalFiles
from strandline.controlplane.lifecycle import SqlLogLifecycle
from strandline.controlplane.producers import SqlProducerStates
from strandline.controlplane.reads import SqlBatchReads
from strandline.controlplane.store_records import SqlStoreRecords
from strandline.controlplane.switches import SqlMigrations
from strandline.controlplane.trimming import SqlLogTrimming
from strandline.sql import SqlStore


class SqlControlPlane:
    """Every part on one SqlStore. Passes tests/contracts/test_control_plane*.py on both databases.

    Each part owns its statements and implements the ports of its callers, which take these ports and not the whole.
    Keeps nothing in memory: any number of instances, in any number of processes, may share a database.
    """

    def __init__(self, store: SqlStore, *, clock: Clock | None = None, time: Clock | None = None) -> None:
        """The clocks are those of `Database`."""
        db = Database(store, clock=clock, time=time)
        self.store = store
        # Batches and their logs
        self.commits = SqlBatchCommits(db)
        self.reads = SqlBatchReads(db)
        self.lifecycle = SqlLogLifecycle(db)
        self.trimming = SqlLogTrimming(db)
        self.files = SqlWalFiles(db)
        self.producers = SqlProducerStates(db)
        self.migrations = SqlMigrations(db)
        self.stores = SqlStoreRecords(db)
        # Conversion
        self.claims = SqlSplitClaims(db)
        self.merging = SqlMergeableSplits(db)
        self.uploads = SqlSegmentUploads(db)
        self.given_up = SqlGivenUpSegments(db)
        self.runs = SqlGivenUpRuns(db)
        self.wishes = SqlTieringWishes(db)
