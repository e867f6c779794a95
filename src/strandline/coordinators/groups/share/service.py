"""Share groups in a shard: decisions are made, written and answered, and sessions are kept.

State in the share coordinator is created elsewhere: a decision that needs it says so in its outcome. What is to be
created follows from the record of a group and the topics at every heartbeat, so a call that was lost is made again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

from strandline.clock import Clock
from strandline.config.share_groups import ShareGroupSettings, share_membership
from strandline.coordinators.groups.group import Group
from strandline.coordinators.groups.incarnations import TopicIncarnations
from strandline.coordinators.groups.modern.group import JOINING_EPOCH, LEAVING_EPOCH
from strandline.coordinators.groups.modern.member_timers import MemberTimer
from strandline.coordinators.groups.modern.partitions import Partitions
from strandline.coordinators.groups.modern.surroundings import GroupOutlook
from strandline.coordinators.groups.modern.table import GroupTable
from strandline.coordinators.groups.modern.target import go_beyond_members, raise_epoch
from strandline.coordinators.groups.modern.values import HeartbeatResponse
from strandline.coordinators.groups.share.changes import ShareChanges
from strandline.coordinators.groups.share.group import ShareGroup
from strandline.coordinators.groups.share.heartbeat import check_share_heartbeat, decide_heartbeat
from strandline.coordinators.groups.share.offsets import (
    OffsetAlteration,
    OffsetDeletion,
    alter_offsets,
    begin_group_deletion,
    begin_offset_deletion,
    end_offset_deletion,
)
from strandline.coordinators.groups.share.states import (
    StateCreation,
    begin_missing,
    end_creation,
    forget_vanished,
    give_up_creation,
)
from strandline.coordinators.groups.share.values import (
    AlteredShareOffset,
    ShareHeartbeatRequest,
    ShareLimits,
    ShareSurroundings,
)
from strandline.coordinators.runtime import BoundedSink, Timers, client_error
from strandline.errors import StrandlineError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareHeartbeatOutcome:
    """The answer to a member, and the state that has to be created now that the decision is in the log."""

    response: HeartbeatResponse
    creation: StateCreation | None = None


OutcomeReply: TypeAlias = Callable[[ShareHeartbeatOutcome], None]
Done: TypeAlias = Callable[[StrandlineError | None], None]


class ShareGroupService:
    """What may happen to share groups. Shares the table of groups with its shard."""

    def __init__(
        self,
        groups: dict[str, Group],
        timers: Timers,
        sink: BoundedSink,
        clock: Clock,
        settings: ShareGroupSettings,
        topics: TopicIncarnations,
        *,
        commit_timeout_ms: int,
    ) -> None:
        self.table = GroupTable(groups, ShareGroup, sink, timers)
        self._settings = settings
        self._retry_ms = max(settings.group_share_initialize_retry_interval_ms, commit_timeout_ms)
        self._outlook = GroupOutlook(topics, clock, self._limits)
        self.around = self._outlook.around

    def follow_settings(self, settings: ShareGroupSettings) -> None:
        """The settings of the broker have changed."""
        self._settings = settings
        self._outlook.follow_settings(self._limits)

    def _limits(self, overrides: Mapping[str, str]) -> ShareLimits:
        return ShareLimits(
            max_size=self._settings.group_share_max_size,
            group=share_membership(overrides, self._settings),
            retry_ms=self._retry_ms,
        )

    # Members ----------------------------------------------------------------------------------------------------

    def heartbeat(self, request: ShareHeartbeatRequest, reply: OutcomeReply) -> None:
        """Answer through `reply` when the decision is in the log. Raises what is refused at once."""
        check_share_heartbeat(request)
        if request.member_epoch == LEAVING_EPOCH:
            self._leave(request, reply)
            return
        around = self.around(request.group_id)
        find = self.table.existing_or_new if request.member_epoch == JOINING_EPOCH else self.table.existing
        group = find(request.group_id)
        is_new = request.member_id not in group.members
        with ShareChanges(group) as changes:
            response = decide_heartbeat(changes, request, around)
            creation = begin_missing(changes, around)
            self.table.writer.check(group.group_id, changes.records)
        self.table.install(group)
        self._start_session(group, request.member_id, around)
        if is_new:
            logger.info("share group %s: member %s joins", request.group_id, request.member_id)

        def written(error: StrandlineError | None) -> None:
            if error is None:
                reply(ShareHeartbeatOutcome(response=response, creation=creation))
                return
            for topic_id in creation.partitions if creation is not None else ():
                group.begun_at.pop(topic_id, None)  # its state is not created now: the next heartbeat begins again
            reply(ShareHeartbeatOutcome(response=HeartbeatResponse(error=client_error(error))))

        self.table.write(changes, written)

    def _leave(self, request: ShareHeartbeatRequest, reply: OutcomeReply) -> None:
        group = self.table.existing(request.group_id)
        group.check_member(request.member_id)
        left = HeartbeatResponse(member_id=request.member_id, member_epoch=LEAVING_EPOCH)

        def written(error: StrandlineError | None) -> None:
            response = left if error is None else HeartbeatResponse(error=client_error(error))
            reply(ShareHeartbeatOutcome(response=response))

        self._remove(group, request.member_id, "it leaves", written)

    def _remove(self, group: ShareGroup, member_id: str, reason: str, done: Done) -> None:
        logger.info("share group %s: member %s goes, because %s", group.group_id, member_id, reason)
        changes = ShareChanges(group)
        changes.remove_member(member_id)
        raise_epoch(changes, self.around(group.group_id))
        self.table.timers.cancel_member(group.group_id, member_id)
        self.table.write(changes, done)

    def _start_session(self, group: ShareGroup, member_id: str, around: ShareSurroundings) -> None:
        group_id = group.group_id
        self.table.timers.extend(
            MemberTimer.SESSION,
            group_id,
            member_id,
            around.limits.session_timeout_ms,
            lambda: self._expire(group_id, member_id),
        )

    def _expire(self, group_id: str, member_id: str) -> None:
        group = self.table.get(group_id)
        if group is not None and member_id in group.members:
            self._remove(group, member_id, "its session has ended", lambda _: None)

    # State in the share coordinator -----------------------------------------------------------------------------

    def created(self, group_id: str, partitions: Partitions, done: Done) -> Partitions:
        """The state of these partitions is there. Returns those of them that the group does not need any more."""
        group = self.table.get(group_id)
        if group is None:
            done(None)
            return partitions
        changes = ShareChanges(group)
        unwanted = end_creation(changes, partitions)
        self.table.write(changes, done)
        return unwanted

    def not_created(self, group_id: str, partitions: Partitions, done: Done) -> None:
        """The state of these partitions could not be created."""
        changes = ShareChanges(self.table.get(group_id) or ShareGroup(group_id))
        give_up_creation(changes, partitions)
        self.table.write(changes, done)

    def still_deleted(self, group_id: str, partitions: Partitions) -> Partitions:
        """The part of this state that is still to go: a member may have joined since, and wants it again."""
        group = self.table.get(group_id)
        if group is None:
            return partitions
        return {topic_id: numbers for topic_id, numbers in partitions.items() if topic_id in group.states.deleting}

    def forget_vanished_topics_of(self, group: ShareGroup) -> None:
        """Topics were deleted: the group has no state of them any more."""
        changes = ShareChanges(group)
        forget_vanished(changes, self._outlook.image)
        self.table.write_unasked(changes)

    # Administration ---------------------------------------------------------------------------------------------

    def alter_offsets(
        self,
        group_id: str,
        wishes: Sequence[AlteredShareOffset],
        done: Callable[[OffsetAlteration | StrandlineError], None],
    ) -> None:
        """Note where an empty or new group is to begin. Raises a refusal."""
        changes = ShareChanges(self.table.existing_or_new(group_id))
        around = self.around(group_id)
        decided = alter_offsets(changes, wishes, around.image, around.now_ms)
        if decided.creation is not None:
            self.table.install(changes.group)
        self.table.write(changes, lambda error: done(decided if error is None else client_error(error)))

    def begin_offset_deletion(
        self, group_id: str, topics: Sequence[str], done: Callable[[OffsetDeletion | StrandlineError], None]
    ) -> None:
        """Note that the state of these topics goes. Raises a refusal."""
        changes = ShareChanges(self.table.existing(group_id))
        decided = begin_offset_deletion(changes, topics, self._outlook.image)
        self.table.write(changes, lambda error: done(decided if error is None else client_error(error)))

    def end_offset_deletion(self, group_id: str, topic_ids: Sequence[UUID], done: Done) -> None:
        """Note that the state of these topics is gone."""
        changes = ShareChanges(self.table.get(group_id) or ShareGroup(group_id))
        end_offset_deletion(changes, topic_ids)
        self.table.write(changes, done)

    def begin_group_deletion(self, group_id: str, done: Callable[[Partitions | StrandlineError], None]) -> None:
        """Note that all state of the group goes. Raises a refusal."""
        changes = ShareChanges(self.table.existing(group_id))
        partitions = begin_group_deletion(changes, self._outlook.image)
        self.table.write(changes, lambda error: done(partitions if error is None else client_error(error)))

    # Life in the shard ------------------------------------------------------------------------------------------

    def repair(self, group: ShareGroup) -> None:
        """The group was loaded from the log, which may have lost a part of its last changes, and topics may have gone
        since."""
        changes = ShareChanges(group)
        go_beyond_members(changes, self.around(group.group_id))
        self.table.write_unasked(changes)
        self.forget_vanished_topics_of(group)

    def start(self, group: ShareGroup) -> None:
        """Sessions begin now, but for those of members that were heard of since the group was loaded."""
        around = self.around(group.group_id)
        for member_id in group.members:
            if not self.table.timers.is_pending(MemberTimer.SESSION, group.group_id, member_id):
                self._start_session(group, member_id, around)
