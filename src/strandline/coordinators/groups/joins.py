"""JoinGroup on classic groups: new and returning members, dynamic and static."""

from __future__ import annotations

import logging

from strandline.clock import Ids
from strandline.config import GroupSettings
from strandline.coordinators.groups.classic_group import ClassicGroup
from strandline.coordinators.groups.group import Group
from strandline.coordinators.groups.member import ClassicMember, JoinReply
from strandline.coordinators.groups.rebalance import NEW_MEMBER_TIMEOUT_MS, Rebalancer
from strandline.coordinators.groups.states import GroupState
from strandline.coordinators.groups.values import JoinRequest, JoinResponse, MemberProtocol, SyncResponse
from strandline.coordinators.runtime import WriteResult, client_error
from strandline.errors import (
    CoordinatorNotAvailable,
    FencedInstanceId,
    GroupMaxSizeReached,
    InconsistentGroupProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    StrandlineError,
    UnknownMemberId,
)

logger = logging.getLogger(__name__)


class Joins:
    """Adds members to groups."""

    def __init__(self, groups: dict[str, Group], rebalancer: Rebalancer, ids: Ids, settings: GroupSettings) -> None:
        self._groups, self._rebalancer, self._ids, self._settings = groups, rebalancer, ids, settings

    def join(self, request: JoinRequest, reply: JoinReply) -> None:
        """Answer through `reply`, at once or when the rebalance is over."""
        group = self._groups.get(request.group_id)
        if group is None:
            self._join_new_group(request, reply)
        elif isinstance(group, ClassicGroup):
            self._join(group, request, reply)
        else:
            reply(JoinResponse(error=InconsistentGroupProtocol(f"Group {request.group_id} is not a classic group.")))

    def _join_new_group(self, request: JoinRequest, reply: JoinReply) -> None:
        if request.member_id:
            error = UnknownMemberId(f"There is no group {request.group_id}, so it has no member {request.member_id}.")
            reply(JoinResponse(error=error, member_id=request.member_id))
            return
        group = ClassicGroup(request.group_id, self._rebalancer.now_ms())
        self._groups[request.group_id] = group
        self._join(group, request, reply)
        if group.members or group.pending:
            self._rebalancer.store_new(group, lambda written: self._new_group_stored(group, written))
        else:
            del self._groups[request.group_id]  # the join was refused: leave no trace of it

    def _new_group_stored(self, group: ClassicGroup, written: WriteResult) -> None:
        if written.error is None or self._groups.get(group.group_id) is not group:
            return
        error = client_error(written.error)
        for member in list(group.members.values()):
            member.answer_join(JoinResponse(error=error))
            member.answer_sync(SyncResponse(error=error))
        self._rebalancer.stop_timers(group)
        group.move_to(GroupState.DEAD, self._rebalancer.now_ms())
        del self._groups[group.group_id]

    def _join(self, group: ClassicGroup, request: JoinRequest, reply: JoinReply) -> None:
        member_id = request.member_id
        if not self._has_room_for(group, member_id):
            self._rebalancer.take_out(group, member_id)
            limit = self._settings.group_max_size
            reply(
                JoinResponse(error=GroupMaxSizeReached(f"Group {group.group_id} has {limit} members: group.max.size."))
            )
            self._rebalancer.maybe_complete_join(group)
        elif (refusal := self._refusal(group, request)) is not None:
            reply(JoinResponse(error=refusal, member_id=member_id))
        elif not member_id:
            self._join_unknown(group, request, reply)
        elif member_id in group.pending:
            self._join_pending(group, request, reply)
        else:
            self._join_known(group, request, reply)

    @staticmethod
    def _refusal(group: ClassicGroup, request: JoinRequest) -> StrandlineError | None:
        if group.state is GroupState.DEAD:
            return CoordinatorNotAvailable(f"Group {group.group_id} is being removed.")
        if not group.supports(request.protocol_type, request.protocols):
            return InconsistentGroupProtocol(
                f"Group {group.group_id} uses protocol type {group.protocol_type!r}; the protocols that all members "
                f"support are {sorted(group.common_protocols())}."
            )
        return None

    def _has_room_for(self, group: ClassicGroup, member_id: str) -> bool:
        limit = self._settings.group_max_size
        member = group.members.get(member_id)
        if group.state is GroupState.PREPARING_REBALANCE:
            # Waiting joins are counted, not members: after the limit was lowered, the last to rejoin are refused.
            # There are at most as many of them, which is enough to know in a group that is not full.
            has_room = len(group.members) < limit or group.awaiting_join < limit
            return has_room or (member is not None and member.is_awaiting_join)
        if group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            return member is not None or len(group.members) < limit
        return True

    # Without a member id ----------------------------------------------------------------------------------------

    def _join_unknown(self, group: ClassicGroup, request: JoinRequest, reply: JoinReply) -> None:
        prefix = request.client_id if request.group_instance_id is None else request.group_instance_id
        new_id = f"{prefix}-{self._ids.uuid()}"
        if request.group_instance_id is not None:
            known_id = group.instances.get(request.group_instance_id)
            if known_id is None:
                self._add(group, request, new_id, reply)
            else:
                self._replace_static(group, group.members[known_id], request, new_id, reply)
        elif request.requires_member_id:
            self._rebalancer.start_pending(group, new_id, request.session_timeout_ms)
            reply(
                JoinResponse(
                    error=MemberIdRequired("Join again with the member id of this response."), member_id=new_id
                )
            )
        else:
            self._add(group, request, new_id, reply)

    def _join_pending(self, group: ClassicGroup, request: JoinRequest, reply: JoinReply) -> None:
        if request.group_instance_id is not None:
            error = StrandlineError(
                f"Member {request.member_id} was given its id as a dynamic member, not a static one."
            )
            reply(JoinResponse(error=error, member_id=request.member_id))
            return
        self._add(group, request, request.member_id, reply)

    def _add(self, group: ClassicGroup, request: JoinRequest, member_id: str, reply: JoinReply) -> None:
        member = ClassicMember(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=request.protocols,
            is_new=True,
            join_reply=reply,
        )
        if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
            group.has_new_member = True
        group.add(member)
        self._rebalancer.start_session(group, member, NEW_MEMBER_TIMEOUT_MS)
        self._rebalancer.prepare_or_complete(group, _because(request, f"member {member_id} joins"))

    def _replace_static(
        self, group: ClassicGroup, member: ClassicMember, request: JoinRequest, new_id: str, reply: JoinReply
    ) -> None:
        """A static member came back without its id. It gets a new id, and a client with the old one is fenced."""
        old_id, old_leader = member.member_id, group.leader
        fenced = FencedInstanceId(f"group.instance.id {member.group_instance_id} has joined with another member id.")
        member.answer_join(JoinResponse(error=fenced, member_id=old_id))
        member.answer_sync(SyncResponse(error=fenced))
        before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        group.rename_static(member, new_id)
        member.is_new = False
        self._update(group, member, request, reply)
        self._rebalancer.start_session(group, member)
        reason = _because(request, f"static member {member.group_instance_id} comes back as {new_id}")
        if group.state is GroupState.STABLE and group.select_protocol() == group.protocol_name:
            generation = group.generation

            def stored(written: WriteResult) -> None:
                # If a rebalance has begun meanwhile, it answers the member.
                if group.state is GroupState.STABLE and group.generation == generation and member.is_awaiting_join:
                    if written.error is None:
                        self._answer_replaced(group, member, request, old_leader)
                    else:
                        self._undo_replacement(group, member, old_id, before, written.error)

            self._rebalancer.store(group, {m.member_id: m.assignment for m in group.members.values()}, stored)
        elif group.can_rebalance:
            self._rebalancer.prepare(group, reason)
        else:
            self._rebalancer.maybe_complete_join(group)

    def _answer_replaced(
        self, group: ClassicGroup, member: ClassicMember, request: JoinRequest, old_leader: str | None
    ) -> None:
        """No rebalance: the member goes on with its assignment."""
        self._rebalancer.start_session(group, member)  # it may have ended while the member waited for the log
        is_leader = group.leader == member.member_id
        member.answer_join(
            JoinResponse(
                member_id=member.member_id,
                generation_id=group.generation,
                protocol_type=group.protocol_type,
                protocol_name=group.protocol_name,
                # An older client that finds itself the leader would assign anew: it is shown the id it had before.
                leader=(group.leader if request.can_skip_assignment else old_leader) or "",
                skip_assignment=is_leader and request.can_skip_assignment,
                members=group.joined_members() if is_leader and request.can_skip_assignment else (),
            )
        )

    def _undo_replacement(
        self,
        group: ClassicGroup,
        member: ClassicMember,
        old_id: str,
        before: tuple[tuple[MemberProtocol, ...], int, int],
        error: StrandlineError,
    ) -> None:
        logger.warning("group %s: member %s keeps its id %s: %s", group.group_id, member.member_id, old_id, error)
        response = JoinResponse(
            error=client_error(error),
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
        )
        reply, member.join_reply = member.join_reply, None
        group.rename_static(member, old_id)
        protocols, member.rebalance_timeout_ms, member.session_timeout_ms = before
        group.set_protocols(member, protocols)
        self._rebalancer.start_session(group, member)
        if reply is not None:
            reply(response)

    # With a member id -------------------------------------------------------------------------------------------

    def _join_known(self, group: ClassicGroup, request: JoinRequest, reply: JoinReply) -> None:
        try:
            member = group.check_member(request.member_id, request.group_instance_id)
        except StrandlineError as error:
            reply(JoinResponse(error=error, member_id=request.member_id))
            return
        is_unchanged = member.protocols == request.protocols
        is_leader_of_stable = group.state is GroupState.STABLE and group.leader == member.member_id
        if group.state is GroupState.PREPARING_REBALANCE or not is_unchanged or is_leader_of_stable:
            # The leader of a stable group may ask for a new assignment, for instance when topics changed.
            self._update(group, member, request, reply)
            self._rebalancer.prepare_or_complete(group, _because(request, f"member {member.member_id} rejoins"))
        else:
            # The last answer was lost, or a follower asks again: nothing has changed.
            reply(self._rebalancer.join_response(group, member))

    @staticmethod
    def _update(group: ClassicGroup, member: ClassicMember, request: JoinRequest, reply: JoinReply) -> None:
        superseded = RebalanceInProgress("The member has sent another JoinGroup since.")
        member.answer_join(JoinResponse(error=superseded, member_id=member.member_id))
        group.set_protocols(member, request.protocols)
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.session_timeout_ms = request.session_timeout_ms
        member.join_reply = reply


def _because(request: JoinRequest, what: str) -> str:
    return f"{what} (the client says: {request.reason or 'not provided'})"
