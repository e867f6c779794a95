"""The share coordinator: what becomes of the records that share groups read (KIP-932), kept in `__share_group_state`.

Why it exists: the leader of a partition delivers its records to the members of share groups, and has to know after an
election what was settled before it. `ShareGroupStates` is how it asks; `ShareCoordinator` answers for the share
partitions whose coordinator this broker is. What does not go here: members and assignments of share groups
(`coordinators.groups`), and the delivery itself (`strandline.share_delivery`).
"""

from strandline.coordinators.share_states.coordinator import PrunedLog, ShareCoordinator, share_state_topic
from strandline.coordinators.share_states.offered import check_share_groups, has_share_groups
from strandline.coordinators.share_states.values import (
    NO_COUNT,
    DeliveryBatch,
    DeliveryState,
    ShareGroupStates,
    SharePartitionKey,
    ShareState,
    ShareStateSummary,
    ShareStateUpdate,
    combined,
)

__all__ = [
    "NO_COUNT",
    "DeliveryBatch",
    "DeliveryState",
    "PrunedLog",
    "ShareCoordinator",
    "ShareGroupStates",
    "SharePartitionKey",
    "ShareState",
    "ShareStateSummary",
    "ShareStateUpdate",
    "check_share_groups",
    "combined",
    "has_share_groups",
    "share_state_topic",
]
