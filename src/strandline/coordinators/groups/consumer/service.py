"""The consumer protocol in a shard: decisions are made, written and answered, and time is kept.

What happens later follows from the state of a group whenever it is looked at: a group whose target is older than its
epoch gets a timer; when a member of a group is heard of whose regular expressions were not matched with the newest
topics, they are.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from strandline.clock import Clock, Ids
from strandline.config import GroupSettings, group_config
from strandline.coordinators.groups.classic import ClassicProtocol
from strandline.coordinators.groups.classic_group import ClassicGroup
from strandline.coordinators.groups.consumer.changes import ConsumerChanges
from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.coordinators.groups.consumer.heartbeat import heartbeat, is_leaving
from strandline.coordinators.groups.consumer.leaving import find_leaving, leave_for_a_while, remove_members
from strandline.coordinators.groups.consumer.member import STATIC_LEAVING_EPOCH, ConsumerMember, ReconciliationState
from strandline.coordinators.groups.consumer.migration import downgraded, may_downgrade, upgraded
from strandline.coordinators.groups.consumer.ownership import leave_one_owner
from strandline.coordinators.groups.consumer.regular_expressions import Matches, TopicMatcher
from strandline.coordinators.groups.consumer.schemas import ConsumerRecordType, RegularExpressionValue
from strandline.coordinators.groups.consumer.steady import is_steady
from strandline.coordinators.groups.consumer.target import assigned_by_preference
from strandline.coordinators.groups.consumer.values import ConsumerLimits, ConsumerSurroundings, HeartbeatRequest
from strandline.coordinators.groups.group import Group
from strandline.coordinators.groups.incarnations import TopicIncarnations
from strandline.coordinators.groups.modern.group import JOINING_EPOCH
from strandline.coordinators.groups.modern.member_timers import MemberTimer
from strandline.coordinators.groups.modern.surroundings import GroupOutlook
from strandline.coordinators.groups.modern.table import GroupTable
from strandline.coordinators.groups.modern.target import (
    assign_if_due,
    assignment_delay_ms,
    go_beyond_members,
    raise_epoch,
)
from strandline.coordinators.groups.modern.topics import TopicNames
from strandline.coordinators.groups.modern.values import HeartbeatResponse
from strandline.coordinators.groups.schemas import write_group_key, write_group_value
from strandline.coordinators.groups.states import GroupState
from strandline.coordinators.runtime import BoundedSink, KeyValue, Timers, client_error
from strandline.errors import GroupIdNotFound, RebalanceInProgress, StrandlineError

logger = logging.getLogger(__name__)

HeartbeatReply: TypeAlias = Callable[[HeartbeatResponse], None]
Done: TypeAlias = Callable[[StrandlineError | None], None]

_LEAST_MATCH_INTERVAL_MS: Final = 10_000
"""Expressions of one group are not matched more often than this."""


@dataclass(slots=True)
class _Opened:
    """A group that a member joins: it may be new, and may take the place of a classic group."""

    changes: ConsumerChanges
    replaces: ClassicGroup | None = None
    records: list[KeyValue] = field(default_factory=list)


class ConsumerGroupService:
    """What members of consumer groups may do. Shares the table of groups with its shard."""

    def __init__(
        self,
        groups: dict[str, Group],
        classic: ClassicProtocol,
        timers: Timers,
        sink: BoundedSink,
        clock: Clock,
        ids: Ids,
        settings: GroupSettings,
        topics: TopicIncarnations,
        matcher: TopicMatcher,
    ) -> None:
        self._groups, self._classic, self._ids = groups, classic, ids
        self._matcher, self._names = matcher, TopicNames()
        self._matching: set[str] = set()
        self.table = GroupTable(groups, ConsumerGroup, sink, timers)
        self._settings = settings
        self._outlook = GroupOutlook(topics, clock, self._limits)
        self.around = self._outlook.around

    def follow_settings(self, settings: GroupSettings) -> None:
        """The settings of the broker have changed."""
        self._settings = settings
        self._outlook.follow_settings(self._limits)

    def _limits(self, overrides: Mapping[str, str]) -> ConsumerLimits:
        return ConsumerLimits(broker=self._settings, group=group_config(overrides, self._settings))

    def new_member_id(self) -> str:
        """As Kafka writes ids: 22 characters that are safe in URLs."""
        return base64.urlsafe_b64encode(self._ids.uuid().bytes).rstrip(b"=").decode()

    # Requests ---------------------------------------------------------------------------------------------------

    def heartbeat(self, request: HeartbeatRequest, reply: HeartbeatReply) -> None:
        """Answer through `reply` when the decision is in the log. Raises what is refused at once.

        The request has passed `check_request`.
        """
        steady = self._steady_answer(request)
        if steady is not None:
            reply(steady)
            return
        around = self.around(request.group_id)
        if is_leaving(request):
            self._leave(request, around, reply)
            return
        if not request.member_id:
            request = request._replace(member_id=self.new_member_id())
        opened = self._open(request, around)
        group = opened.changes.group
        before, known = group.members.get(request.member_id), group.static_member(request.instance_id)
        with opened.changes:
            response = heartbeat(opened.changes, request, around)
            records = [*opened.records, *opened.changes.records]
            self.table.writer.check(group.group_id, records)
        self._install(opened, around)
        member = group.members[request.member_id]
        if before is None:
            logger.info("group %s: member %s joins", group.group_id, member.member_id)
        if known is not None and known.member_id != member.member_id:
            self.table.timers.cancel_member(group.group_id, known.member_id)
        self.start_session(group, member, around)
        self._watch_revocation(group, member, has_changed=before != member)
        self.table.writer.write(group.group_id, records, lambda error: reply(_answer(response, error)))
        self.look_after(group, around)
        self._match_expressions(group, around)

    def _steady_answer(self, request: HeartbeatRequest) -> HeartbeatResponse | None:
        """The answer to a heartbeat that decides nothing, if all that was decided before is in the log; else None."""
        group_id, member_id = request.group_id, request.member_id
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup) or not self.table.writer.is_settled(group_id):
            return None
        member = group.members.get(member_id)
        image = self._outlook.image
        if member is None or not is_steady(group, member, request, image):
            return None
        limits, timers = self._outlook.limits(image, group_id), self.table.timers
        if not timers.restart(MemberTimer.SESSION, group_id, member_id, limits.session_timeout_ms):
            self.start_session(group, member, self.around(group_id))
        timers.cancel(MemberTimer.REBALANCE, group_id, member_id)
        return HeartbeatResponse(None, member_id, member.epoch, limits.heartbeat_interval_ms)

    def _leave(self, request: HeartbeatRequest, around: ConsumerSurroundings, reply: HeartbeatReply) -> None:
        group = self.table.existing(request.group_id)
        changes = ConsumerChanges(group)
        member = find_leaving(changes, request)
        response = HeartbeatResponse(member_id=member.member_id, member_epoch=request.member_epoch)
        if request.member_epoch == STATIC_LEAVING_EPOCH:
            leave_for_a_while(changes, member)
            self.table.timers.cancel(MemberTimer.REBALANCE, group.group_id, member.member_id)
            self.table.write(changes, lambda error: reply(_answer(response, error)))
        else:
            self.remove(group, [member], "it leaves", lambda error: reply(_answer(response, error)))

    def _open(self, request: HeartbeatRequest, around: ConsumerSurroundings) -> _Opened:
        """The group of a heartbeat. Raises GroupIdNotFound."""
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup) or request.member_epoch != JOINING_EPOCH:
            return _Opened(ConsumerChanges(self.table.existing(request.group_id)))
        if group is None:
            return _Opened(ConsumerChanges(ConsumerGroup(request.group_id)))
        if not isinstance(group, ClassicGroup):
            raise GroupIdNotFound(f"Group {request.group_id} is not a consumer group.")
        tombstone: KeyValue = (write_group_key(request.group_id), None)
        if group.state is GroupState.EMPTY:
            return _Opened(ConsumerChanges(ConsumerGroup(request.group_id)), group, [tombstone])
        return _Opened(upgraded(group, around), group, [tombstone])

    def _install(self, opened: _Opened, around: ConsumerSurroundings) -> None:
        group = opened.changes.group
        if opened.replaces is not None:
            logger.info("group %s changes from the classic to the consumer protocol", group.group_id)
            again = RebalanceInProgress(f"Group {group.group_id} changes its protocol; join again.")
            self._classic.stop(opened.replaces, again)
        if self._groups.get(group.group_id) is not group:
            self.table.install(group)
            for member in group.members.values():
                self.start_session(group, member, around)

    # Members that go --------------------------------------------------------------------------------------------

    def remove(
        self,
        group: ConsumerGroup,
        members: Collection[ConsumerMember],
        reason: str,
        done: Done,
    ) -> None:
        """Take members out. If only classic members remain, the group becomes a classic one."""
        around = self.around(group.group_id)
        leaving = frozenset(member.member_id for member in members)
        for member_id in leaving:
            logger.info("group %s: member %s is removed: %s", group.group_id, member_id, reason)
            self.table.timers.cancel_member(group.group_id, member_id)
        if leaving and may_downgrade(group, leaving, self._settings):
            try:
                self.downgrade(group, leaving, [], around, f"member left: {reason}", done)
            except StrandlineError as error:
                logger.warning("group %s stays a group of the consumer protocol: %s", group.group_id, error)
            else:
                return
        self._remove_members(group, list(members), around, done)
        self.look_after(group, around)

    def _remove_members(
        self, group: ConsumerGroup, members: Sequence[ConsumerMember], around: ConsumerSurroundings, done: Done
    ) -> None:
        """In one decision, or in two if the log does not take so many members at once."""
        changes = ConsumerChanges(group)
        remove_members(changes, members, around)
        if len(members) > 1 and not self.table.takes(changes):
            changes.take_back()
            half = len(members) // 2
            self._remove_members(group, members[:half], around, lambda _: None)
            self._remove_members(group, members[half:], around, done)
        else:
            self.table.write(changes, done)

    def downgrade(
        self,
        group: ConsumerGroup,
        leaving: frozenset[str],
        records: list[KeyValue],
        around: ConsumerSurroundings,
        rebalance_reason: str | None,
        done: Done,
    ) -> None:
        """Only classic members remain: from now on the group is a classic one. `records` are written before.

        Raises StrandlineError if the log cannot take so large a group; then nothing has changed.
        """
        classic = downgraded(group, leaving, around)
        value = classic.stored({member.member_id: member.assignment for member in classic.members.values()})
        record: KeyValue = (write_group_key(group.group_id), write_group_value(value))
        written = [*records, *group.tombstones(), record]
        self.table.writer.check(group.group_id, written)
        logger.info("group %s changes from the consumer to the classic protocol", group.group_id)
        self.table.timers.cancel_group(group.group_id)
        self._groups[group.group_id] = classic
        self.table.writer.write(group.group_id, written, done)
        self._classic.adopt(classic, rebalance_reason)

    def expire(self, group_id: str, member_id: str, reason: str) -> None:
        """A time is over; if the member is still there, it goes."""
        group = self.table.get(group_id)
        if group is not None and member_id in group.members:
            self.remove(group, [group.members[member_id]], reason, lambda _: None)

    # Time -------------------------------------------------------------------------------------------------------

    def start_session(self, group: ConsumerGroup, member: ConsumerMember, around: ConsumerSurroundings) -> None:
        """Start or extend the session: the member is alive."""
        group_id, member_id, classic = group.group_id, member.member_id, member.subscription.classic
        self.table.timers.extend(
            MemberTimer.SESSION,
            group_id,
            member_id,
            around.limits.session_timeout_ms if classic is None else classic.session_timeout_ms,
            lambda: self.expire(group_id, member_id, "its session has ended"),
        )

    def _watch_revocation(self, group: ConsumerGroup, member: ConsumerMember, *, has_changed: bool) -> None:
        group_id, member_id, epoch = group.group_id, member.member_id, member.epoch
        if member.is_classic or member.state is not ReconciliationState.UNREVOKED_PARTITIONS:
            self.table.timers.cancel(MemberTimer.REBALANCE, group_id, member_id)
        elif has_changed or not self.table.timers.is_pending(MemberTimer.REBALANCE, group_id, member_id):
            timeout = member.subscription.rebalance_timeout_ms
            self.table.timers.start(
                MemberTimer.REBALANCE,
                group_id,
                member_id,
                timeout,
                lambda: self._revocation_expired(group_id, member_id, epoch, timeout),
            )

    def _revocation_expired(self, group_id: str, member_id: str, epoch: int, timeout_ms: int) -> None:
        group = self.table.get(group_id)
        member = None if group is None else group.members.get(member_id)
        if member is not None and member.epoch == epoch:
            self.expire(group_id, member_id, f"it has not given up its partitions within {timeout_ms} ms")

    def look_after(self, group: ConsumerGroup, around: ConsumerSurroundings) -> None:
        """If the target is older than the epoch of the group, there will be a new one."""
        delay = assignment_delay_ms(group, around)
        if delay is not None and group.members:
            self.table.timers.start_group(group.group_id, delay, lambda: self._assign(group))

    def _assign(self, group: ConsumerGroup) -> None:
        if self.table.get(group.group_id) is group and group.members:
            changes, around = ConsumerChanges(group), self.around(group.group_id)
            assign_if_due(changes, around, assigned_by_preference)
            self.table.write_unasked(changes)
            self.look_after(group, around)

    # Regular expressions ----------------------------------------------------------------------------------------

    def _match_expressions(self, group: ConsumerGroup, around: ConsumerSurroundings) -> None:
        expressions, names = group.subscribed_expressions, self._names.of(around.image)
        if not expressions or group.group_id in self._matching:
            return
        begun = [found.timestamp_ms for found in group.expressions.values()]
        if group.match_begun_ms is not None:
            begun.append(group.match_begun_ms)
        last = max(begun, default=None)
        if last is not None and around.now_ms <= last + _LEAST_MATCH_INTERVAL_MS:
            return
        is_new = not expressions <= group.expressions.keys() or group.matched_topics is not names
        interval = self._settings.group_consumer_regex_refresh_interval_ms
        if is_new or last is None or around.now_ms > last + interval:
            self._matching.add(group.group_id)
            group.match_begun_ms = around.now_ms
            version, now_ms = around.image.offset, around.now_ms
            self._matcher.match(
                expressions, names, lambda found: self._expressions_matched(group, names, version, now_ms, found)
            )

    def _expressions_matched(
        self, group: ConsumerGroup, names: frozenset[str], version: int, now_ms: int, found: Matches | Exception
    ) -> None:
        self._matching.discard(group.group_id)
        if self.table.writer.is_stopped or self.table.get(group.group_id) is not group:
            return
        if isinstance(found, Exception):
            logger.error("group %s: its regular expressions cannot be matched: %s", group.group_id, found)
            return
        around = self.around(group.group_id)
        changes = ConsumerChanges(group)
        before = {expression: group.matched_by(expression) for expression in found}
        for expression in sorted(found):
            if group.readers_of(expression):
                topics = tuple(sorted(found[expression]))
                value = RegularExpressionValue(topics=topics, version=version, timestamp_ms=now_ms)
                self._put_matched(changes, expression, value)
        group.matched_topics = names
        has_other_hash = around.hashes.of_topics(group.topics(), around.image) != group.metadata_hash
        # Not the topics of the whole group: others may read by name what one member has just been found to read.
        if has_other_hash or any(group.matched_by(expression) != topics for expression, topics in before.items()):
            raise_epoch(changes, around)
        self.table.write_unasked(changes)
        self.look_after(group, around)

    def _put_matched(self, changes: ConsumerChanges, expression: str, value: RegularExpressionValue) -> None:
        """A match that is too large for the log does not count: its readers go on with the one before."""
        group = changes.group
        record = group.record(group.key(ConsumerRecordType.REGULAR_EXPRESSION, expression), value)
        try:
            self.table.writer.check(group.group_id, [record])
        except StrandlineError as error:
            logger.warning("%r matches %d topics, which cannot be stored: %s", expression, len(value.topics), error)
        else:
            changes.put_expression(expression, value)

    # Life in the shard ------------------------------------------------------------------------------------------

    def repair(self, group: ConsumerGroup) -> None:
        """The group was loaded from the log, which may have lost a part of its last changes."""
        changes = ConsumerChanges(group)
        leave_one_owner(changes)
        go_beyond_members(changes, self.around(group.group_id))
        self.table.write_unasked(changes)

    def start(self, group: ConsumerGroup) -> None:
        """Sessions begin now, but for those of members that were heard of since the group was loaded."""
        around = self.around(group.group_id)
        for member in group.members.values():
            if not self.table.timers.is_pending(MemberTimer.SESSION, group.group_id, member.member_id):
                self.start_session(group, member, around)
            self._watch_revocation(group, member, has_changed=False)
        self.look_after(group, around)

    def stop(self, error: StrandlineError) -> None:
        """Another broker coordinates the groups of this shard now."""
        self.table.stop(error)
        self._matching.clear()


def _answer(response: HeartbeatResponse, error: StrandlineError | None) -> HeartbeatResponse:
    return response if error is None else HeartbeatResponse(error=client_error(error))
