"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic members in consumer groups: written, answered, timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from strandline.config import GroupSettings
from strandline.coordinators.groups.consumer.changes import ConsumerChanges
from strandline.coordinators.groups.consumer.classic_members import (
    check_classic,
    check_join,
    has_to_rejoin,
    join_member,
    joined,
    reconcile_joined,
    sync,
)
from strandline.coordinators.groups.consumer.embedded import by_topic_id
from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.coordinators.groups.consumer.heartbeat import check_static
from strandline.coordinators.groups.consumer.member import ConsumerMember
from strandline.coordinators.groups.consumer.migration import may_downgrade
from strandline.coordinators.groups.consumer.service import ConsumerGroupService
from strandline.coordinators.groups.consumer.target import reconcile_member
from strandline.coordinators.groups.consumer.values import ConsumerSurroundings
from strandline.coordinators.groups.member import JoinReply, SyncReply
from strandline.coordinators.groups.modern.member_timers import MemberTimer
from strandline.coordinators.groups.values import (
    JoinRequest,
    JoinResponse,
    LeavingMember,
    SyncRequest,
    SyncResponse,
)
from strandline.coordinators.runtime import client_error
from strandline.errors import MemberIdRequired, RebalanceInProgress, StrandlineError, UnknownMemberId


class ClassicMembers:
    """What classic members of consumer groups may do."""

    def __init__(self, service: ConsumerGroupService, settings: GroupSettings) -> None:
        self._service, self._settings = service, settings

    def join(self, group: ConsumerGroup, request: JoinRequest, reply: JoinReply) -> None:
        """Answer through `reply` when the decision is in the log; the member does not wait for others."""
        service = self._service
        around = service.around(group.group_id)
        member_id = request.member_id or service.new_member_id()
        changes = ConsumerChanges(group)
        known = group.static_member(request.group_instance_id)
        try:
            check_join(group, request, member_id, around)
            if request.requires_member_id and not request.member_id and request.group_instance_id is None:
                error = MemberIdRequired("Join again with the member id of this response.")
                reply(JoinResponse(error=error, member_id=member_id))
                return
            _, embedded, changed = join_member(changes, request, member_id, around)
            was_last = known is not None and not known.is_classic
            is_downgrade = was_last and may_downgrade(group, frozenset(), self._settings)
            if not is_downgrade:
                response = reconcile_joined(changes, member_id, embedded, around, changed=changed)
            else:
                owned = by_topic_id(embedded.owned, around.image)
                if not changed:
                    reconcile_member(changes, member_id, around, owned=owned, subscription_changed=False)
                response = joined(group.members[member_id])
            done = _answering(response, reply)
            if is_downgrade:
                reason = "a static member came back with another subscription" if changed else None
                service.downgrade(group, frozenset(), changes.records, around, reason, done)
                return
            service.table.writer.check(group.group_id, changes.records)
        except StrandlineError as error:
            changes.take_back()
            reply(JoinResponse(error=error, member_id=request.member_id))
            return
        if known is not None and known.member_id != member_id:
            service.table.timers.cancel_member(group.group_id, known.member_id)
        self._joined(group, group.members[member_id], around)
        service.table.write(changes, done)
        service.look_after(group, around)

    def _joined(self, group: ConsumerGroup, member: ConsumerMember, around: ConsumerSurroundings) -> None:
        group_id, member_id = group.group_id, member.member_id
        timers = self._service.table.timers
        timers.cancel(MemberTimer.JOIN, group_id, member_id)
        timers.cancel(MemberTimer.REBALANCE, group_id, member_id)
        self._service.start_session(group, member, around)
        timers.start(
            MemberTimer.SYNC,
            group_id,
            member_id,
            member.subscription.rebalance_timeout_ms,
            lambda: self._service.expire(group_id, member_id, "it has not asked for its assignment in time"),
        )

    def sync(self, group: ConsumerGroup, request: SyncRequest, reply: SyncReply) -> None:
        around = self._service.around(group.group_id)
        try:
            response = sync(group, request, around.image)
        except RebalanceInProgress as error:
            self._expect_join(group, group.check_member(request.member_id))
            reply(SyncResponse(error=error))
            return
        except StrandlineError as error:
            reply(SyncResponse(error=error))
            return
        self._service.table.timers.cancel(MemberTimer.SYNC, group.group_id, request.member_id)
        self._service.start_session(group, group.check_member(request.member_id), around)
        self._service.table.writer.write(
            group.group_id,
            (),
            lambda error: reply(response if error is None else SyncResponse(error=client_error(error))),
        )

    def heartbeat(self, group: ConsumerGroup, member_id: str, generation_id: int, instance_id: str | None) -> None:
        """Extend the session. Raises the error that the member has to react to."""
        member, _ = check_classic(group, member_id, instance_id, generation_id)
        self._service.start_session(group, member, self._service.around(group.group_id))
        if has_to_rejoin(group, member):
            self._expect_join(group, member)
            raise RebalanceInProgress(f"Group {group.group_id} has a new assignment; join again.")

    def _expect_join(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        group_id, member_id = group.group_id, member.member_id
        if not self._service.table.timers.is_pending(MemberTimer.JOIN, group_id, member_id):
            self._service.table.timers.start(
                MemberTimer.JOIN,
                group_id,
                member_id,
                member.subscription.rebalance_timeout_ms,
                lambda: self._service.expire(group_id, member_id, "it has not joined again in time"),
            )

    def leave(self, group: ConsumerGroup, leaving: Sequence[LeavingMember]) -> list[StrandlineError | None]:
        """Remove members; one answer for each."""
        results: list[StrandlineError | None] = []
        found: dict[str, ConsumerMember] = {}
        for one in leaving:
            try:
                member = _find_leaving(group, one)
            except StrandlineError as error:
                results.append(error)
            else:
                results.append(None)
                found[member.member_id] = member
        if found:
            reasons = ", ".join(one.reason or "not provided" for one in leaving)
            self._service.remove(group, found.values(), f"it leaves (the client says: {reasons})", lambda _: None)
        return results


def _find_leaving(group: ConsumerGroup, leaving: LeavingMember) -> ConsumerMember:
    if leaving.group_instance_id is None:
        return group.check_member(leaving.member_id)
    if leaving.member_id:
        return check_static(group, leaving.group_instance_id, leaving.member_id)
    member = group.static_member(leaving.group_instance_id)
    if member is None:
        raise UnknownMemberId(f"Group {group.group_id} has no static member {leaving.group_instance_id!r}.")
    return member


def _answering(response: JoinResponse, reply: JoinReply) -> Callable[[StrandlineError | None], None]:
    return lambda error: reply(response if error is None else JoinResponse(error=client_error(error)))
