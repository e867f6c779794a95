"""Background work on diskless topics: retention, deletion of unused WAL objects, the search for orphans and leftovers.

Each is safe to repeat from any point, so a crash needs no repair. Not here: fsck, which only compares.
"""

from strandline.diskless.upkeep.cleaner import CleaningSummary, FileCleaner, FileCleanerStatus
from strandline.diskless.upkeep.leftovers import LeftoverFinder, LeftoverStatus
from strandline.diskless.upkeep.loop import UpkeepStatus
from strandline.diskless.upkeep.orphans import OrphanFinder, OrphanStatus, OrphanSummary
from strandline.diskless.upkeep.retention import (
    RetentionEnforcer,
    RetentionStatus,
    RetentionSummary,
    TopicRetention,
)

__all__ = [
    "CleaningSummary",
    "FileCleaner",
    "FileCleanerStatus",
    "LeftoverFinder",
    "LeftoverStatus",
    "OrphanFinder",
    "OrphanStatus",
    "OrphanSummary",
    "RetentionEnforcer",
    "RetentionStatus",
    "RetentionSummary",
    "TopicRetention",
    "UpkeepStatus",
]
