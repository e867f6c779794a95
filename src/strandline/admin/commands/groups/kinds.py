"""What a group is: its kind, its state and its members, by the API that describes its kind.

A coordinator describes a group only by the API of its kind, and says GROUP_ID_NOT_FOUND to the others. So they are
tried one after the other, as far as the broker announced them. The classic one is the last: it exists everywhere, and
some versions of it call a group that does not exist dead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from strandline.client import Pair, check
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from strandline.wire.messages.consumer_protocol_assignment import read_consumer_protocol_assignment
from strandline.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from strandline.wire.messages.share_group_describe import ShareGroupDescribeRequest
from strandline.wire.messages.streams_group_describe import Assignment as TaskAssignment
from strandline.wire.messages.streams_group_describe import StreamsGroupDescribeRequest, Topology
from strandline.wire.primitives import MalformedRequest

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
SHARE: Final = "share"
STREAMS: Final = "streams"
_DEAD: Final = "Dead"
_EMPTY: Final = "Empty"

_CONSUMER_PROTOCOL: Final = "consumer"
# An assignment begins with its version. Later versions only append fields, so the oldest one reads all of them.
_OLDEST_VERSION: Final = 0
_VERSION_BYTES: Final = 2
# Answers to a group of another kind: that of Kafka, and that of a coordinator that does not have this kind enabled.
_ANOTHER_KIND: Final = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    """A member of a group. `epoch` is None in groups of the classic protocol, whose members have none."""

    member: str
    instance: str | None = None
    client: str
    host: str
    epoch: int | None = None
    assignment: tuple[Pair, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """A group as its coordinator describes it."""

    group: str
    kind: str
    state: str
    assignor: str
    epoch: int | None = None
    members: tuple[MemberView, ...]

    @property
    def is_inactive(self) -> bool:
        """Whether the group has no members, so that its offsets may be changed."""
        return not self.members and self.state in (_EMPTY, _DEAD)


def describe(coordinator: Client, group: str) -> GroupView | None:
    """The group, or None if there is none. Raises CommandFailed."""
    for api_key, request, view in _BY_KIND:
        if coordinator.offers(api_key):
            found = coordinator.request(api_key, request([group])).groups[0]
            if found.error_code not in _ANOTHER_KIND:
                check(found.error_code, found.error_message, f"Group {group} cannot be described")
                return view(found)
    found = coordinator.request(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=[group])).groups[0]
    if found.error_code == ErrorCode.GROUP_ID_NOT_FOUND or found.group_state == _DEAD:
        return None
    check(found.error_code, found.error_message, f"Group {group} cannot be described")
    return _classic(found)


def assigned_partitions(protocol_type: str, assignment: bytes) -> tuple[Pair, ...]:
    """The (topic, partition) pairs of a consumer's assignment; none if the bytes are of another protocol or broken."""
    if protocol_type != _CONSUMER_PROTOCOL or not assignment:
        return ()
    try:
        message, _ = read_consumer_protocol_assignment(memoryview(assignment), _VERSION_BYTES, _OLDEST_VERSION)
    except MalformedRequest:
        return ()
    return tuple(sorted((row.topic, partition) for row in message.assigned_partitions for partition in row.partitions))


def task_partitions(topology: Topology | None, assignment: TaskAssignment) -> tuple[Pair, ...]:
    """The partitions that the active tasks of a streams member read: task N reads partition N of its sources."""
    parts = (topology.subtopologies or ()) if topology is not None else ()
    sources = {
        part.subtopology_id: [*part.source_topics, *(topic.name for topic in part.repartition_source_topics)]
        for part in parts
    }
    return tuple(
        sorted(
            (topic, partition)
            for tasks in assignment.active_tasks
            for topic in sources.get(tasks.subtopology_id, ())
            for partition in tasks.partitions
        )
    )


def _classic(found: DescribedGroup) -> GroupView:
    members = tuple(
        MemberView(
            member=row.member_id,
            instance=row.group_instance_id,
            client=row.client_id,
            host=row.client_host,
            assignment=assigned_partitions(found.protocol_type, row.member_assignment),
        )
        for row in found.members
    )
    return GroupView(
        group=found.group_id, kind=CLASSIC, state=found.group_state, assignor=found.protocol_data, members=members
    )


def _consumer(found: Any) -> GroupView:
    return _with_epochs(CONSUMER, found, found.assignor_name, [_topic_pairs(row.assignment) for row in found.members])


def _share(found: Any) -> GroupView:
    return _with_epochs(SHARE, found, found.assignor_name, [_topic_pairs(row.assignment) for row in found.members])


def _streams(found: Any) -> GroupView:
    tasks = [task_partitions(found.topology, row.assignment) for row in found.members]
    return _with_epochs(STREAMS, found, "", tasks)


def _with_epochs(kind: str, found: Any, assignor: str, assignments: Sequence[tuple[Pair, ...]]) -> GroupView:
    members = tuple(
        MemberView(
            member=row.member_id,
            instance=None if kind == SHARE else row.instance_id,
            client=row.client_id,
            host=row.client_host,
            epoch=row.member_epoch,
            assignment=assignment,
        )
        for row, assignment in zip(found.members, assignments, strict=True)
    )
    return GroupView(
        group=found.group_id,
        kind=kind,
        state=found.group_state,
        assignor=assignor,
        epoch=found.group_epoch,
        members=members,
    )


def _topic_pairs(assignment: Any) -> tuple[Pair, ...]:
    return tuple(sorted((row.topic_name, number) for row in assignment.topic_partitions for number in row.partitions))


# Of each kind but the classic one: the API, the request for some groups, and how its answer is read.
_BY_KIND: Final[tuple[tuple[ApiKey, Callable[[list[str]], Any], Callable[[Any], GroupView]], ...]] = (
    (ApiKey.CONSUMER_GROUP_DESCRIBE, lambda groups: ConsumerGroupDescribeRequest(group_ids=groups), _consumer),
    (ApiKey.SHARE_GROUP_DESCRIBE, lambda groups: ShareGroupDescribeRequest(group_ids=groups), _share),
    (ApiKey.STREAMS_GROUP_DESCRIBE, lambda groups: StreamsGroupDescribeRequest(group_ids=groups), _streams),
)
