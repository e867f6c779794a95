"""The RemoteLogManager of KIP-405: copies finished segments, expires remote ones, deletes those of deleted topics.

What is to be done is decided by pure modules (`lineage`, `copy_plan`, `expiry_plan`, `why_local`); `copying`,
`expiring`, `deleting` and `partition_deletion` carry it out; `jobs` says when, and how much at once. Not here: the
storage, the description of what is there, reading.
"""

from strandline.remote.manager.limits import ManagerLimits
from strandline.remote.manager.manager import RemoteLogManager
from strandline.remote.manager.partition import LeaderPartition
from strandline.remote.manager.status import (
    ManagerStatus,
    PartitionTierStatus,
    SegmentRow,
    SegmentTier,
    TopicTierStatus,
)

__all__ = [
    "LeaderPartition",
    "ManagerLimits",
    "ManagerStatus",
    "PartitionTierStatus",
    "RemoteLogManager",
    "SegmentRow",
    "SegmentTier",
    "TopicTierStatus",
]
