"""The classic group protocol: SyncGroup, Heartbeat and LeaveGroup, and the life of a group in its shard."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.clock import Clock, Ids
from strandline.config import GroupSettings
from strandline.coordinators.groups.classic_group import ClassicGroup
from strandline.coordinators.groups.group import Group
from strandline.coordinators.groups.joins import Joins
from strandline.coordinators.groups.member import ClassicMember, JoinReply, SyncReply
from strandline.coordinators.groups.rebalance import Rebalancer
from strandline.coordinators.groups.states import GroupState
from strandline.coordinators.groups.values import (
    JoinRequest,
    JoinResponse,
    LeavingMember,
    SyncRequest,
    SyncResponse,
)
from strandline.coordinators.runtime import RecordSink, Timers, WriteResult, client_error
from strandline.errors import (
    CoordinatorNotAvailable,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    StrandlineError,
    UnknownMemberId,
)


class ClassicProtocol:
    """What members of classic groups may do. Shares the table of groups with its shard."""

    def __init__(
        self,
        groups: dict[str, Group],
        timers: Timers,
        sink: RecordSink,
        clock: Clock,
        ids: Ids,
        settings: GroupSettings,
    ) -> None:
        self._groups, self._settings = groups, settings
        self._rebalancer = Rebalancer(timers, sink, clock, settings)
        self._joins = Joins(groups, self._rebalancer, ids, settings)

    def join(self, request: JoinRequest, reply: JoinReply) -> None:
        self._joins.join(request, reply)

    def sync(self, request: SyncRequest, reply: SyncReply) -> None:
        """Answer through `reply`, at once or when the leader's assignment is in the log."""
        try:
            group = self._group_with_members(request.group_id)
            member = group.check_member(request.member_id, request.group_instance_id)
            group.check_generation(request.generation_id)
            _check_protocol(request, group)
            if group.state is GroupState.PREPARING_REBALANCE:
                raise RebalanceInProgress(f"Group {group.group_id} is rebalancing; join again.")
        except StrandlineError as error:
            reply(SyncResponse(error=error))
            return
        if group.state is GroupState.STABLE:
            self._rebalancer.synced(group, member)
            reply(self._rebalancer.sync_response(group, member))
        else:
            self._await_assignment(group, member, request, reply)

    def heartbeat(
        self, group_id: str, member_id: str, generation_id: int, group_instance_id: str | None = None
    ) -> None:
        """Extend the session. Raises the error that the member has to react to."""
        group = self._group_with_members(group_id)
        member = group.check_member(member_id, group_instance_id)
        group.check_generation(generation_id)
        self._rebalancer.start_session(group, member)
        if group.state is GroupState.PREPARING_REBALANCE:
            raise RebalanceInProgress(f"Group {group_id} is rebalancing; join again.")

    def touch(self, group: Group, member_id: str) -> None:
        """An offset commit is a sign of life as well."""
        if isinstance(group, ClassicGroup) and group.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE):
            member = group.members.get(member_id)
            if member is not None:
                self._rebalancer.start_session(group, member)

    def leave(self, group_id: str, leaving: Sequence[LeavingMember]) -> list[StrandlineError | None]:
        """Remove members; one answer for each. Raises CoordinatorNotAvailable for a group that is being removed."""
        group = self._groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            return [UnknownMemberId(f"There is no classic group {group_id}.") for _ in leaving]
        if group.state is GroupState.DEAD:
            raise CoordinatorNotAvailable(f"Group {group_id} is being removed.")
        before = len(group.members)
        results = [self._leave_one(group, one) for one in leaving]
        if group.state not in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self._rebalancer.maybe_complete_join(group)
        elif len(group.members) < before:
            reasons = ", ".join(one.reason or "not provided" for one in leaving)
            self._rebalancer.prepare(group, f"members left (the clients say: {reasons})")
        return results

    # Life in the shard ------------------------------------------------------------------------------------------

    def start(self, group: ClassicGroup) -> None:
        """The group was loaded from the log: sessions begin now, but for those of members that were heard of since."""
        for member in group.members.values():
            if member.session is None:
                self._rebalancer.start_session(group, member)
        if len(group.members) > self._settings.group_max_size and group.can_rebalance:
            self._rebalancer.prepare(group, "the group was loaded with more members than group.max.size")

    def adopt(self, group: ClassicGroup, reason: str | None) -> None:
        """The group was of another protocol until now. With a reason, its members have to join again."""
        for member in group.members.values():
            self._rebalancer.start_session(group, member)
        if reason is not None:
            self._rebalancer.prepare(group, reason)

    @staticmethod
    def forget_pending(group: ClassicGroup) -> None:
        """Drop the member ids that were given out and not used."""
        for member_id in list(group.pending):
            group.forget_pending(member_id)

    def stop(self, group: ClassicGroup, error: StrandlineError) -> None:
        """The group is unloaded or deleted: waiting members get `error`."""
        self._rebalancer.stop_timers(group)
        group.move_to(GroupState.DEAD, self._rebalancer.now_ms())
        for member in group.members.values():
            member.answer_join(JoinResponse(error=error, member_id=member.member_id))
            member.answer_sync(SyncResponse(error=error))

    # ------------------------------------------------------------------------------------------------------------

    def _group_with_members(self, group_id: str) -> ClassicGroup:
        group = self._groups.get(group_id)
        if not isinstance(group, ClassicGroup) or group.state is GroupState.EMPTY:
            raise UnknownMemberId(f"Group {group_id} does not exist or has no members.")
        if group.state is GroupState.DEAD:
            raise CoordinatorNotAvailable(f"Group {group_id} is being removed.")
        return group

    def _await_assignment(
        self, group: ClassicGroup, member: ClassicMember, request: SyncRequest, reply: SyncReply
    ) -> None:
        superseded = RebalanceInProgress("The member has sent another SyncGroup since.")
        member.answer_sync(SyncResponse(error=superseded))
        member.sync_reply = reply
        self._rebalancer.synced(group, member)
        if group.leader != member.member_id or group.storing_generation == group.generation:
            return
        generation = group.storing_generation = group.generation
        assignments = {member_id: request.assignments.get(member_id, b"") for member_id in group.members}

        def stored(written: WriteResult) -> None:
            # If a member has joined or left meanwhile, this assignment is void.
            if group.state is not GroupState.COMPLETING_REBALANCE or group.generation != generation:
                return
            group.storing_generation = -1
            if written.error is None:
                self._rebalancer.complete_sync(group, assignments)
            else:
                self._rebalancer.reset_assignments(group, client_error(written.error))
                self._rebalancer.prepare(group, f"the assignment could not be stored: {written.error}")

        self._rebalancer.store(group, assignments, stored)

    def _leave_one(self, group: ClassicGroup, leaving: LeavingMember) -> StrandlineError | None:
        member_id = leaving.member_id
        if not member_id:
            known_id = group.instances.get(leaving.group_instance_id or "")
            if known_id is None:
                return UnknownMemberId(f"Group {group.group_id} has no static member {leaving.group_instance_id!r}.")
            member_id = known_id
        elif member_id in group.pending:
            group.forget_pending(member_id)
            return None
        else:
            try:
                group.check_member(member_id, leaving.group_instance_id)
            except StrandlineError as error:
                return error
        self._rebalancer.take_out(group, member_id)
        return None


def _check_protocol(request: SyncRequest, group: ClassicGroup) -> None:
    for given, used in (
        (request.protocol_type, group.protocol_type),
        (request.protocol_name, group.protocol_name),
    ):
        if given is not None and used is not None and given != used:
            raise InconsistentGroupProtocol(f"Group {group.group_id} uses {used!r}, the member says {given!r}.")
