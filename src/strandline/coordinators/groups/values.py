"""Requests to the group coordinator and its answers, without wire types and versions."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from strandline.coordinators.groups.states import GroupState, GroupType
from strandline.errors import StrandlineError
from strandline.model import NO_EPOCH, NO_OFFSET, ZERO_UUID, ProducerAndEpoch

NO_GENERATION = -1
NO_MEMBER_ID = ""
DEFAULT_RETENTION = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberProtocol:
    """One assignor a member supports, with the member's metadata for it."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """`requires_member_id`: the client understands MEMBER_ID_REQUIRED (KIP-394).
    `can_skip_assignment`: the client understands a leader that must not assign (KIP-814)."""

    group_id: str
    member_id: str = NO_MEMBER_ID
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[MemberProtocol, ...]
    requires_member_id: bool = True
    can_skip_assignment: bool = True
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedMember:
    """A member as the leader sees it."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinResponse:
    """`members` is filled for the leader only."""

    error: StrandlineError | None = None
    member_id: str = NO_MEMBER_ID
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRequest:
    """`assignments` by member id, from the leader only."""

    group_id: str
    member_id: str
    generation_id: int
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncResponse:
    error: StrandlineError | None = None
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavingMember:
    """By member id, or by group instance id with an empty member id (an administrator removes it)."""

    member_id: str = NO_MEMBER_ID
    group_instance_id: str | None = None
    reason: str | None = None


class PartitionCommit(NamedTuple):
    """An offset to commit."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = NO_EPOCH
    metadata: str = ""
    topic_id: uuid.UUID = ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """`reports_unknown_group`: the client understands GROUP_ID_NOT_FOUND here (version 9 and later)."""

    group_id: str
    member_id: str = NO_MEMBER_ID
    generation_id: int = NO_GENERATION
    group_instance_id: str | None = None
    retention_time_ms: int = DEFAULT_RETENTION
    reports_unknown_group: bool = False
    producer: ProducerAndEpoch | None = None
    """Whose transaction the offsets are part of: they count when it is committed."""
    offsets: tuple[PartitionCommit, ...] = ()


class CommittedOffset(NamedTuple):
    """The answer for one partition; offset -1 if nothing is stored."""

    topic: str
    partition: int
    offset: int = NO_OFFSET
    leader_epoch: int = NO_EPOCH
    metadata: str = ""
    topic_id: uuid.UUID = ZERO_UUID
    error: StrandlineError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedGroup:
    group_id: str
    protocol_type: str
    state: GroupState
    group_type: GroupType


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedMember:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedGroup:
    """A group that does not exist is described as Dead, with the error that says so."""

    group_id: str
    state: GroupState = GroupState.DEAD
    protocol_type: str = ""
    protocol_name: str = ""
    members: tuple[DescribedMember, ...] = ()
    error: StrandlineError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsStatus:
    """What a group coordinator holds, for the status page and metrics."""

    shards: int
    loading: int
    failed: int
    offsets: int
    groups: Mapping[GroupState, int]
    timers: int
