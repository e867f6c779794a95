"""Requests of the classic protocol go to a classic group, or to a consumer group that has classic members."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.config import GroupSettings
from strandline.coordinators.groups.classic import ClassicProtocol
from strandline.coordinators.groups.classic_group import ClassicGroup
from strandline.coordinators.groups.consumer.classic_service import ClassicMembers
from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.coordinators.groups.consumer.service import ConsumerGroupService
from strandline.coordinators.groups.group import Group
from strandline.coordinators.groups.member import JoinReply, SyncReply
from strandline.coordinators.groups.values import JoinRequest, JoinResponse, LeavingMember, SyncRequest
from strandline.coordinators.runtime import RecordSink
from strandline.errors import StrandlineError, UnknownMemberId


class Memberships:
    """JoinGroup, SyncGroup, Heartbeat and LeaveGroup, whatever the kind of the group."""

    def __init__(
        self,
        groups: dict[str, Group],
        classic: ClassicProtocol,
        consumer: ConsumerGroupService,
        sink: RecordSink,
        settings: GroupSettings,
    ) -> None:
        self._groups, self._classic, self._consumer, self._sink = groups, classic, consumer, sink
        self._classic_members = ClassicMembers(consumer, settings)

    def join(self, request: JoinRequest, reply: JoinReply) -> None:
        """Answer through `reply`, at once or later."""
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            if group.members:
                self._classic_members.join(group, request, reply)
                return
            if request.member_id:
                error = UnknownMemberId(f"Group {group.group_id} is empty: it has no member {request.member_id}.")
                reply(JoinResponse(error=error, member_id=request.member_id))
                return
            self._replace_empty(group)
        self._classic.join(request, reply)
        if isinstance(group, ConsumerGroup) and request.group_id not in self._groups:
            # The join was refused, but the offsets of the group are still there.
            self._groups[request.group_id] = ClassicGroup(request.group_id, self._consumer.around("").now_ms)

    def _replace_empty(self, group: ConsumerGroup) -> None:
        """A consumer group without members makes room for a classic one; its offsets stay."""
        self._consumer.table.forget(group.group_id)
        del self._groups[group.group_id]
        self._consumer.table.writer.write(group.group_id, group.tombstones(), lambda _: None)

    def sync(self, request: SyncRequest, reply: SyncReply) -> None:
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            self._classic_members.sync(group, request, reply)
        else:
            self._classic.sync(request, reply)

    def heartbeat(self, group_id: str, member_id: str, generation_id: int, instance_id: str | None) -> None:
        group = self._groups.get(group_id)
        # Asking for a class with abstract methods costs a call: nearly all groups here are classic ones.
        if not isinstance(group, ClassicGroup) and isinstance(group, ConsumerGroup):
            self._classic_members.heartbeat(group, member_id, generation_id, instance_id)
        else:
            self._classic.heartbeat(group_id, member_id, generation_id, instance_id)

    def leave(self, group_id: str, leaving: Sequence[LeavingMember]) -> list[StrandlineError | None]:
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return self._classic_members.leave(group, leaving)
        return self._classic.leave(group_id, leaving)
