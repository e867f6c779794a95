"""The RemoteLogManager of KIP-405: copies closed segments, expires remote ones, deletes those of deleted topics.

`copying` and `deleting` are the work on one partition, `jobs` decides when it is done and how much of it at once.
`history` says which remote segments belong to a log, `prefix` how far they cover it, `starting` what a new leader finds
out, `states` writes metadata; `status`, `report` and `why_local` tell operators how it goes. Not here: the storage, the
metadata manager, reading.
"""

from strandline.remote.manager.copying.segment import segment_files
from strandline.remote.manager.deleting.plan import Deletion, DeletionReason, redundant_segments
from strandline.remote.manager.history import LogHistory, Lookup
from strandline.remote.manager.limits import ManagerLimits
from strandline.remote.manager.manager import RemoteLogManager
from strandline.remote.manager.partition import LeaderPartition
from strandline.remote.manager.prefix import PrefixCoverage, PrefixStatus
from strandline.remote.manager.status import (
    ManagerStatus,
    PartitionTierStatus,
    SegmentRow,
    SegmentTier,
    TopicTierStatus,
)

__all__ = [
    "Deletion",
    "DeletionReason",
    "LeaderPartition",
    "LogHistory",
    "Lookup",
    "ManagerLimits",
    "ManagerStatus",
    "PartitionTierStatus",
    "PrefixCoverage",
    "PrefixStatus",
    "RemoteLogManager",
    "SegmentRow",
    "SegmentTier",
    "TopicTierStatus",
    "redundant_segments",
    "segment_files",
]
