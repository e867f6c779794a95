"""Share groups in a shard: decisions are made, written and answered, and sessions are kept.

State in the share coordinator is created elsewhere: a decision that needs it says so in its outcome. What is to be
created follows from the record of a group and the topics at every heartbeat, so a call that was lost is made again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias
from uuid import UUID

from strandline.clock import Clock
from strandline.config.share_groups import ShareGroupSettings, share_membership
from strandline.coordinators.groups.consumer.topics import TopicHashes
from strandline.coordinators.groups.decided_writes import DecidedWrites
from strandline.coordinators.groups.group import Group
from strandline.coordinators.groups.incarnations import TopicIncarnations
from strandline.coordinators.groups.share.changes import ShareChanges, ShareSurroundings
from strandline.coordinators.groups.share.group import ShareGroup
from strandline.coordinators.groups.share.heartbeat import check_share_heartbeat, decide_heartbeat, go_beyond_members
from strandline.coordinators.groups.share.member import SHARE_JOINING_EPOCH, SHARE_LEAVING_EPOCH
from strandline.coordinators.groups.share.offsets import (
    OffsetAlteration,
    OffsetDeletion,
    alter_offsets,
    begin_group_deletion,
    begin_offset_deletion,
    end_offset_deletion,
)
from strandline.coordinators.groups.share.partitions import SharePartitions
from strandline.coordinators.groups.share.schemas import ShareRecordKey, ShareRecordType, read_share_value
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
    ShareHeartbeatResponse,
    ShareLimits,
)
from strandline.coordinators.groups.share.writing import current_share_record
from strandline.coordinators.runtime import RecordSink, Timer, Timers, client_error
from strandline.errors import GroupIdNotFound, StrandlineError
from strandline.metadata.image import ConfigResource, ConfigResourceType

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareHeartbeatOutcome:
    """The answer to a member, and the state that has to be created now that the decision is in the log."""

    response: ShareHeartbeatResponse
    creation: StateCreation | None = None


OutcomeReply: TypeAlias = Callable[[ShareHeartbeatOutcome], None]
Done: TypeAlias = Callable[[StrandlineError | None], None]


class ShareGroupService:
    """What may happen to share groups. Shares the table of groups with its shard."""

    def __init__(
        self,
        groups: dict[str, Group],
        timers: Timers,
        sink: RecordSink,
        clock: Clock,
        settings: ShareGroupSettings,
        topics: TopicIncarnations,
        *,
        commit_timeout_ms: int,
    ) -> None:
        self._groups, self._timers, self._clock = groups, timers, clock
        self._settings, self._topics = settings, topics
        self._retry_ms = max(settings.group_share_initialize_retry_interval_ms, commit_timeout_ms)
        self._hashes = TopicHashes()
        self._defaults = share_membership({}, settings)
        self._sessions: dict[tuple[str, str], Timer] = {}
        self.writer = DecidedWrites(sink, timers, partial(current_share_record, groups))

    def around(self, group_id: str) -> ShareSurroundings:
        """What decisions about this group look at now."""
        image = self._topics.image
        overrides = image.overrides(ConfigResource(ConfigResourceType.GROUP, group_id))
        config = share_membership(overrides, self._settings) if overrides else self._defaults
        return ShareSurroundings(
            image=image,
            hashes=self._hashes,
            now_ms=self._clock.now_ms(),
            limits=ShareLimits(max_size=self._settings.group_share_max_size, group=config),
            retry_ms=self._retry_ms,
        )

    # Members ----------------------------------------------------------------------------------------------------

    def heartbeat(self, request: ShareHeartbeatRequest, reply: OutcomeReply) -> None:
        """Answer through `reply` when the decision is in the log. Raises what is refused at once."""
        check_share_heartbeat(request)
        if request.member_epoch == SHARE_LEAVING_EPOCH:
            self._leave(request, reply)
            return
        around = self.around(request.group_id)
        may_create = request.member_epoch == SHARE_JOINING_EPOCH
        changes = ShareChanges(self._found_or_new(request.group_id) if may_create else self.existing(request.group_id))
        group = changes.group
        is_new = request.member_id not in group.members
        try:
            response = decide_heartbeat(changes, request, around)
            creation = begin_missing(changes, around)
        except StrandlineError:
            changes.take_back()
            raise
        self._groups[request.group_id] = group
        self._start_session(request.group_id, request.member_id, around.limits.group.share_session_timeout_ms)
        if is_new:
            logger.info("share group %s: member %s joins", request.group_id, request.member_id)

        def written(error: StrandlineError | None) -> None:
            if error is None:
                reply(ShareHeartbeatOutcome(response=response, creation=creation))
                return
            for topic_id in creation.partitions if creation is not None else ():
                group.begun_at.pop(topic_id, None)  # nobody creates it now: the next heartbeat begins again
            reply(ShareHeartbeatOutcome(response=ShareHeartbeatResponse(error=client_error(error))))

        self.writer.write(request.group_id, changes.records, written)

    def _leave(self, request: ShareHeartbeatRequest, reply: OutcomeReply) -> None:
        group = self.existing(request.group_id)
        group.check_member(request.member_id)
        left = ShareHeartbeatResponse(member_id=request.member_id, member_epoch=SHARE_LEAVING_EPOCH)

        def written(error: StrandlineError | None) -> None:
            response = left if error is None else ShareHeartbeatResponse(error=client_error(error))
            reply(ShareHeartbeatOutcome(response=response))

        self._remove(group, request.member_id, "it leaves", written)

    def _remove(self, group: ShareGroup, member_id: str, reason: str, done: Done) -> None:
        logger.info("share group %s: member %s goes, because %s", group.group_id, member_id, reason)
        changes = ShareChanges(group)
        changes.remove_member(member_id, self.around(group.group_id))
        session = self._sessions.pop((group.group_id, member_id), None)
        if session is not None:
            session.cancel()
        self.writer.write(group.group_id, changes.records, done)

    def _start_session(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        session = self._sessions.get((group_id, member_id))
        if session is None:
            self._sessions[group_id, member_id] = self._timers.after(
                timeout_ms, lambda: self._expire(group_id, member_id)
            )
        else:
            session.restart(timeout_ms)

    def _expire(self, group_id: str, member_id: str) -> None:
        group = self._groups.get(group_id)
        if isinstance(group, ShareGroup) and member_id in group.members:
            self._remove(group, member_id, "its session has ended", lambda _: None)

    def existing(self, group_id: str) -> ShareGroup:
        """Raises GroupIdNotFound."""
        group = self._groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        if not isinstance(group, ShareGroup):
            raise GroupIdNotFound(f"Group {group_id} is not a share group.")
        return group

    def _found_or_new(self, group_id: str) -> ShareGroup:
        return self.existing(group_id) if group_id in self._groups else ShareGroup(group_id)

    # State in the share coordinator -----------------------------------------------------------------------------

    def created(self, group_id: str, partitions: SharePartitions, done: Done) -> SharePartitions:
        """The state of these partitions is there. Returns the part of it that nobody wants any more."""
        group = self._groups.get(group_id)
        if not isinstance(group, ShareGroup):
            done(None)
            return partitions
        changes = ShareChanges(group)
        unwanted = end_creation(changes, partitions)
        self.writer.write(group_id, changes.records, done)
        return unwanted

    def not_created(self, group_id: str, partitions: SharePartitions, done: Done) -> None:
        """The state of these partitions could not be created."""
        group = self._groups.get(group_id)
        changes = ShareChanges(group if isinstance(group, ShareGroup) else ShareGroup(group_id))
        give_up_creation(changes, partitions)
        self.writer.write(group_id, changes.records, done)

    def still_deleted(self, group_id: str, partitions: SharePartitions) -> SharePartitions:
        """The part of this state that is still to go: a member may have joined since, and wants it again."""
        group = self._groups.get(group_id)
        if not isinstance(group, ShareGroup):
            return partitions
        return {topic_id: numbers for topic_id, numbers in partitions.items() if topic_id in group.states.deleting}

    def forget_vanished_topics(self) -> None:
        """Topics were deleted: no group has state of them any more."""
        for group in list(self._groups.values()):
            if isinstance(group, ShareGroup):
                changes = ShareChanges(group)
                forget_vanished(changes, self._topics.image)
                if changes.records:
                    self.writer.write(group.group_id, changes.records, lambda _: None)

    # Administration ---------------------------------------------------------------------------------------------

    def alter_offsets(
        self,
        group_id: str,
        wishes: Sequence[AlteredShareOffset],
        done: Callable[[OffsetAlteration | StrandlineError], None],
    ) -> None:
        """Note where an empty or new group is to begin. Raises a refusal."""
        changes = ShareChanges(self._found_or_new(group_id))
        decided = alter_offsets(changes, wishes, self._topics.image, self._clock.now_ms())
        if decided.creation is not None:
            self._groups[group_id] = changes.group
        self.writer.write(
            group_id, changes.records, lambda error: done(decided if error is None else client_error(error))
        )

    def begin_offset_deletion(
        self, group_id: str, topics: Sequence[str], done: Callable[[OffsetDeletion | StrandlineError], None]
    ) -> None:
        """Note that the state of these topics goes. Raises a refusal."""
        changes = ShareChanges(self.existing(group_id))
        decided = begin_offset_deletion(changes, topics, self._topics.image)
        self.writer.write(
            group_id, changes.records, lambda error: done(decided if error is None else client_error(error))
        )

    def end_offset_deletion(self, group_id: str, topic_ids: Sequence[UUID], done: Done) -> None:
        """Note that the state of these topics is gone."""
        group = self._groups.get(group_id)
        changes = ShareChanges(group if isinstance(group, ShareGroup) else ShareGroup(group_id))
        end_offset_deletion(changes, topic_ids)
        self.writer.write(group_id, changes.records, done)

    def begin_group_deletion(self, group_id: str, done: Callable[[SharePartitions | StrandlineError], None]) -> None:
        """Note that all state of the group goes. Raises a refusal."""
        changes = ShareChanges(self.existing(group_id))
        partitions = begin_group_deletion(changes, self._topics.image)
        self.writer.write(
            group_id, changes.records, lambda error: done(partitions if error is None else client_error(error))
        )

    # Life in the shard ------------------------------------------------------------------------------------------

    def replay(self, key: ShareRecordKey, raw_value: bytes | None) -> None:
        """Apply a record that was read from the log. Raises CorruptMessage."""
        group = self._groups.get(key.group_id)
        if not isinstance(group, ShareGroup):
            if raw_value is None:
                return
            group = self._groups[key.group_id] = ShareGroup(key.group_id)
        if raw_value is None and key.kind is ShareRecordType.GROUP_EPOCH:
            del self._groups[key.group_id]
        else:
            group.apply(key, None if raw_value is None else read_share_value(key.kind, raw_value))

    def start(self) -> None:
        """The groups were loaded from the log: the sessions of their members begin now."""
        for group in list(self._groups.values()):
            if isinstance(group, ShareGroup):
                around, changes = self.around(group.group_id), ShareChanges(group)
                for member_id in group.members:
                    self._start_session(group.group_id, member_id, around.limits.group.share_session_timeout_ms)
                go_beyond_members(changes, around)
                if changes.records:
                    self.writer.write(group.group_id, changes.records, lambda _: None)
        self.forget_vanished_topics()

    def restore(self, group: Group) -> None:
        """The log refused to delete this group, or did not: what it has to hold is written again."""
        if isinstance(group, ShareGroup):
            self.writer.doubt(group.group_id, [key for key, _ in group.tombstones()])

    def stop(self) -> None:
        """Another broker coordinates the groups of this shard now."""
        for session in self._sessions.values():
            session.cancel()
        self._sessions.clear()
        self.writer.stop()
