"""Groups: members, generations, assignments, committed offsets.

Why it exists: one broker, the leader of a group's partition of `__consumer_offsets`, decides for the group. A
`GroupShard` holds the groups of one partition. What goes here: the rules of the group protocols (classic; in `consumer`
that of KIP-848, in `share` that of KIP-932, in `modern` what these two have in common), the records of that topic,
expiration. What does not: ownership, loading and writing of partitions (`coordinators.runtime`), wire formats and
versions (`server.handlers`), files (`log`).

Everything is decided synchronously on the event loop. Answers that have to wait go through callbacks, writes through
a `RecordSink`, time through `Timers`; so the rules are tested without a broker and on a clock that tests move.
"""

from strandline.coordinators.groups.consumer.values import DescribedConsumer, DescribedConsumerGroup, HeartbeatRequest
from strandline.coordinators.groups.coordinator import GroupCoordinator, offsets_topic
from strandline.coordinators.groups.group import Group
from strandline.coordinators.groups.modern.partitions import Partitions
from strandline.coordinators.groups.modern.values import DescribedModernGroup, HeartbeatResponse
from strandline.coordinators.groups.offsets import OffsetStore
from strandline.coordinators.groups.states import GroupState, GroupType
from strandline.coordinators.groups.values import (
    CommitRequest,
    CommittedOffset,
    DescribedGroup,
    DescribedMember,
    GroupsStatus,
    JoinedMember,
    JoinRequest,
    JoinResponse,
    LeavingMember,
    ListedGroup,
    MemberProtocol,
    PartitionCommit,
    SyncRequest,
    SyncResponse,
)

__all__ = [
    "CommitRequest",
    "CommittedOffset",
    "DescribedConsumer",
    "DescribedConsumerGroup",
    "DescribedGroup",
    "DescribedMember",
    "DescribedModernGroup",
    "Group",
    "GroupCoordinator",
    "GroupState",
    "GroupType",
    "GroupsStatus",
    "HeartbeatRequest",
    "HeartbeatResponse",
    "JoinRequest",
    "JoinResponse",
    "JoinedMember",
    "LeavingMember",
    "ListedGroup",
    "MemberProtocol",
    "OffsetStore",
    "PartitionCommit",
    "Partitions",
    "SyncRequest",
    "SyncResponse",
    "offsets_topic",
]
