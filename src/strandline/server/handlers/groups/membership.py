"""JoinGroup 0-9, SyncGroup 0-5, Heartbeat 0-4, LeaveGroup 0-5: the classic group protocol.

The rules are in `coordinators.groups`; here are the versions:

- JoinGroup 0 has no rebalance timeout: the session timeout stands for it. From 4 on a dynamic member is given an id
  first (KIP-394), from 9 on the answer can forbid a leader to assign (KIP-814).
- SyncGroup 5 must name protocol type and name.
- LeaveGroup speaks of one member up to 2, of several from 3 on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strandline.coordinators.groups import (
    GroupCoordinator,
    JoinRequest,
    JoinResponse,
    LeavingMember,
    MemberProtocol,
    SyncRequest,
)
from strandline.errors import InconsistentGroupProtocol, StrandlineError
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.wire.api import ApiKey
from strandline.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from strandline.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from strandline.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from strandline.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_JOIN_HAS_REBALANCE_TIMEOUT: Final = 1
_JOIN_REQUIRES_MEMBER_ID: Final = 4
_JOIN_NULL_PROTOCOL: Final = 7
_JOIN_SKIPS_ASSIGNMENT: Final = 9
_SYNC_NAMES_PROTOCOL: Final = 5
_LEAVE_OF_SEVERAL: Final = 3


class GroupsHandler:
    """What members of classic groups ask."""

    def __init__(self, coordinator: GroupCoordinator) -> None:
        self._coordinator = coordinator

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {
            ApiKey.JOIN_GROUP: self.join_group,
            ApiKey.SYNC_GROUP: self.sync_group,
            ApiKey.HEARTBEAT: self.heartbeat,
            ApiKey.LEAVE_GROUP: self.leave_group,
        }

    async def join_group(self, request: JoinGroupRequest, context: RequestContext) -> JoinGroupResponse:
        """Answers when the rebalance is over."""
        version = context.api_version
        has_timeout = version >= _JOIN_HAS_REBALANCE_TIMEOUT
        joined = await self._coordinator.join(
            JoinRequest(
                group_id=request.group_id,
                member_id=request.member_id,
                group_instance_id=request.group_instance_id,
                client_id=context.client_id or "",
                client_host=client_host(context),
                session_timeout_ms=request.session_timeout_ms,
                rebalance_timeout_ms=request.rebalance_timeout_ms if has_timeout else request.session_timeout_ms,
                protocol_type=request.protocol_type,
                protocols=tuple(MemberProtocol(name=p.name, metadata=bytes(p.metadata)) for p in request.protocols),
                requires_member_id=version >= _JOIN_REQUIRES_MEMBER_ID,
                can_skip_assignment=version >= _JOIN_SKIPS_ASSIGNMENT,
                reason=request.reason,
            )
        )
        return _join_response(joined, version)

    async def sync_group(self, request: SyncGroupRequest, context: RequestContext) -> SyncGroupResponse:
        """Answers when the leader's assignment is stored."""
        if context.api_version >= _SYNC_NAMES_PROTOCOL and (
            request.protocol_type is None or request.protocol_name is None
        ):
            code, _ = outcome(InconsistentGroupProtocol("SyncGroup has to name the protocol type and the protocol."))
            return SyncGroupResponse(error_code=code)
        synced = await self._coordinator.sync(
            SyncRequest(
                group_id=request.group_id,
                member_id=request.member_id,
                generation_id=request.generation_id,
                group_instance_id=request.group_instance_id,
                protocol_type=request.protocol_type,
                protocol_name=request.protocol_name,
                assignments={one.member_id: bytes(one.assignment) for one in request.assignments},
            )
        )
        code, _ = outcome(synced.error)
        return SyncGroupResponse(
            error_code=code,
            protocol_type=synced.protocol_type,
            protocol_name=synced.protocol_name,
            assignment=synced.assignment,
        )

    async def heartbeat(self, request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
        try:
            self._coordinator.heartbeat(
                request.group_id, request.member_id, request.generation_id, request.group_instance_id
            )
        except StrandlineError as error:
            code, _ = outcome(error)
            return HeartbeatResponse(error_code=code)
        return HeartbeatResponse()

    async def leave_group(self, request: LeaveGroupRequest, context: RequestContext) -> LeaveGroupResponse:
        is_single = context.api_version < _LEAVE_OF_SEVERAL
        if is_single:
            leaving = [LeavingMember(member_id=request.member_id)]
        else:
            leaving = [
                LeavingMember(member_id=m.member_id, group_instance_id=m.group_instance_id, reason=m.reason)
                for m in request.members
            ]
        try:
            results = self._coordinator.leave(request.group_id, leaving)
        except StrandlineError as error:
            code, _ = outcome(error)
            return LeaveGroupResponse(error_code=code)
        if is_single:
            code, _ = outcome(results[0])
            return LeaveGroupResponse(error_code=code)
        return LeaveGroupResponse(
            members=[
                MemberResponse(
                    member_id=one.member_id, group_instance_id=one.group_instance_id, error_code=outcome(result)[0]
                )
                for one, result in zip(leaving, results, strict=True)
            ]
        )


def client_host(context: RequestContext) -> str:
    """The client's address as Kafka writes it into group records: Java puts a slash before it."""
    return f"/{context.client_host}"


def _join_response(joined: JoinResponse, version: int) -> JoinGroupResponse:
    code, _ = outcome(joined.error)
    protocol_name = joined.protocol_name
    if protocol_name is None and version < _JOIN_NULL_PROTOCOL:
        protocol_name = ""
    return JoinGroupResponse(
        error_code=code,
        generation_id=joined.generation_id,
        protocol_type=joined.protocol_type,
        protocol_name=protocol_name,
        leader=joined.leader,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id, group_instance_id=member.group_instance_id, metadata=member.metadata
            )
            for member in joined.members
        ],
    )
