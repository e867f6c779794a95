"""Rebalances of classic groups: from the first join to the assignment, with their timers.

`Rebalancer` holds the steps that several requests share. It decides at once and never waits: answers go through the
reply callbacks of the members, records through the sink.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from strandline.clock import Clock
from strandline.config import GroupSettings
from strandline.coordinators.groups.classic_group import ClassicGroup
from strandline.coordinators.groups.member import ClassicMember
from strandline.coordinators.groups.schemas import GroupValue, write_group_key, write_group_value
from strandline.coordinators.groups.states import GroupState
from strandline.coordinators.groups.values import JoinResponse, SyncResponse
from strandline.coordinators.runtime import RecordSink, Timers, WriteDone, WriteResult
from strandline.errors import RebalanceInProgress, StrandlineError, UnknownMemberId

logger = logging.getLogger(__name__)

# A new member that waits for its first JoinGroup answer cannot heartbeat, so it may have gone away unnoticed.
NEW_MEMBER_TIMEOUT_MS: Final = 5 * 60 * 1000


class Rebalancer:
    """Moves groups through their states."""

    def __init__(self, timers: Timers, sink: RecordSink, clock: Clock, settings: GroupSettings) -> None:
        self._timers, self._sink, self._clock, self._settings = timers, sink, clock, settings

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def store(self, group: ClassicGroup, assignments: Mapping[str, bytes], done: WriteDone) -> None:
        """Write the group's record with these assignments."""
        self._sink.write([(write_group_key(group.group_id), write_group_value(group.stored(assignments)))], done)

    def store_new(self, group: ClassicGroup, done: WriteDone) -> None:
        """Write that the group exists. Kafka writes this record when the first member asks to join."""
        empty = GroupValue(
            protocol_type="", generation=0, protocol=None, leader=None, state_timestamp=group.state_timestamp
        )
        self._sink.write([(write_group_key(group.group_id), write_group_value(empty))], done)

    # The join phase ---------------------------------------------------------------------------------------------

    def prepare_or_complete(self, group: ClassicGroup, reason: str) -> None:
        """The members changed: start a rebalance, or complete the one under way if all have joined."""
        if group.can_rebalance:
            self.prepare(group, reason)
        else:
            self.maybe_complete_join(group)

    def prepare(self, group: ClassicGroup, reason: str) -> None:
        """Start a rebalance: every member has to rejoin. Members that wait for an assignment get the error at once."""
        if group.state is GroupState.COMPLETING_REBALANCE:
            self.reset_assignments(group, RebalanceInProgress(f"Group {group.group_id} is rebalancing."))
        self._stop_sync_timer(group)
        is_initial = group.state is GroupState.EMPTY
        group.move_to(GroupState.PREPARING_REBALANCE, self.now_ms())
        logger.info("group %s rebalances after generation %d: %s", group.group_id, group.generation, reason)
        if is_initial:
            self._start_initial_delay(group)
        elif group.have_all_joined:
            self.complete_join(group)
        else:
            self._start_join_timer(group, group.rebalance_timeout_ms, lambda: self.complete_join(group))

    def maybe_complete_join(self, group: ClassicGroup) -> None:
        """Complete the join phase if all members have joined. The initial delay of an empty group is not cut short."""
        if (
            group.state is GroupState.PREPARING_REBALANCE
            and group.previous_state is not GroupState.EMPTY
            and group.have_all_joined
        ):
            self.complete_join(group)

    def complete_join(self, group: ClassicGroup) -> None:
        """End the join phase: members that have not rejoined are removed; static ones stay until their session ends."""
        self._stop_join_timer(group)
        if group.state is not GroupState.PREPARING_REBALANCE:
            return
        for member in [m for m in group.members.values() if not m.is_awaiting_join and not m.is_static]:
            group.remove(member.member_id)
        if not group.elect_joined_leader() and group.members:
            # Only static members that have not rejoined are left: their sessions decide.
            self._start_join_timer(group, group.rebalance_timeout_ms, lambda: self.complete_join(group))
            return
        group.start_next_generation(self.now_ms())
        if group.members:
            self._answer_joins(group)
        else:
            logger.info("group %s is empty in generation %d", group.group_id, group.generation)
            self.store(group, {}, lambda written: _warn_not_stored(group, written))

    def _answer_joins(self, group: ClassicGroup) -> None:
        logger.info("group %s enters generation %d, %d members", group.group_id, group.generation, len(group.members))
        for member in group.members.values():
            member.answer_join(self.join_response(group, member))
            member.is_new = False
            self.start_session(group, member)
            group.pending_sync.add(member.member_id)
        generation = group.generation
        timeout = group.rebalance_timeout_ms
        group.sync_timer = self._timers.after(timeout, lambda: self._sync_expired(group, generation))

    @staticmethod
    def join_response(group: ClassicGroup, member: ClassicMember) -> JoinResponse:
        """The current generation, with the members if this one leads."""
        return JoinResponse(
            member_id=member.member_id,
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=group.leader or "",
            members=group.joined_members() if group.leader == member.member_id else (),
        )

    def _start_initial_delay(self, group: ClassicGroup) -> None:
        delay = self._settings.group_initial_rebalance_delay_ms
        remaining = max(group.rebalance_timeout_ms - delay, 0)
        group.has_new_member = False
        self._start_join_timer(group, delay, lambda: self._initial_delay_over(group, delay, remaining))

    def _initial_delay_over(self, group: ClassicGroup, delay: int, remaining: int) -> None:
        if not group.has_new_member or remaining == 0:
            self.complete_join(group)
            return
        group.has_new_member = False
        next_delay = min(self._settings.group_initial_rebalance_delay_ms, remaining)
        next_remaining = max(remaining - delay, 0)
        self._start_join_timer(group, next_delay, lambda: self._initial_delay_over(group, next_delay, next_remaining))

    # The sync phase ---------------------------------------------------------------------------------------------

    def reset_assignments(self, group: ClassicGroup, error: StrandlineError) -> None:
        """No assignment of this generation is valid any more."""
        for member in group.members.values():
            member.assignment = b""
            if member.answer_sync(SyncResponse(error=error)):
                self.start_session(group, member)

    def complete_sync(self, group: ClassicGroup, assignments: Mapping[str, bytes]) -> None:
        """The assignment is in the log: answer every waiting member with its part."""
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            if member.answer_sync(self.sync_response(group, member)):
                # A session that ended while the member waited was ignored; it starts again.
                self.start_session(group, member)
        group.move_to(GroupState.STABLE, self.now_ms())

    @staticmethod
    def sync_response(group: ClassicGroup, member: ClassicMember) -> SyncResponse:
        return SyncResponse(
            assignment=member.assignment, protocol_type=group.protocol_type, protocol_name=group.protocol_name
        )

    def synced(self, group: ClassicGroup, member: ClassicMember) -> None:
        """The member has asked for its assignment."""
        group.pending_sync.discard(member.member_id)
        if not group.pending_sync:
            self._stop_sync_timer(group)

    def _sync_expired(self, group: ClassicGroup, generation: int) -> None:
        is_current = group.generation == generation
        if not is_current or group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            return
        silent = sorted(group.pending_sync)
        if silent:
            for member_id in silent:
                self.take_out(group, member_id)
            self.prepare(group, f"members {silent} did not ask for their assignment in time")

    # Sessions and members ---------------------------------------------------------------------------------------

    def start_session(self, group: ClassicGroup, member: ClassicMember, timeout_ms: int | None = None) -> None:
        """Start or extend the session: the member is alive."""
        delay = member.session_timeout_ms if timeout_ms is None else timeout_ms
        if member.session is None:
            member.session = self._timers.after(delay, lambda: self._session_expired(group, member))
        else:
            member.session.restart(delay)

    def start_pending(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Remember an id that was given out and has to be used within a session timeout."""
        group.pending[member_id] = self._timers.after(timeout_ms, lambda: self._pending_expired(group, member_id))

    def take_out(self, group: ClassicGroup, member_id: str) -> None:
        """Remove a member and answer its waiting requests, so that a live client joins again."""
        member = group.remove(member_id)
        if member is not None:
            gone = UnknownMemberId(f"Member {member_id} was removed from group {group.group_id}.")
            member.answer_join(JoinResponse(error=gone))
            member.answer_sync(SyncResponse(error=gone))

    def stop_timers(self, group: ClassicGroup) -> None:
        self._stop_join_timer(group)
        self._stop_sync_timer(group)
        for member in group.members.values():
            member.end_session()
        for member_id in list(group.pending):
            group.forget_pending(member_id)

    def _session_expired(self, group: ClassicGroup, member: ClassicMember) -> None:
        if group.members.get(member.member_id) is not member or not member.is_expected_to_heartbeat:
            return
        logger.info("group %s: the session of member %s has ended", group.group_id, member.member_id)
        self.take_out(group, member.member_id)
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self.prepare_or_complete(group, f"the session of member {member.member_id} has ended")
        elif group.state is GroupState.PREPARING_REBALANCE and group.have_all_joined:
            self.complete_join(group)

    def _pending_expired(self, group: ClassicGroup, member_id: str) -> None:
        group.forget_pending(member_id)
        if group.state is GroupState.PREPARING_REBALANCE and group.have_all_joined:
            self.complete_join(group)

    def _start_join_timer(self, group: ClassicGroup, delay_ms: int, callback: Callable[[], None]) -> None:
        self._stop_join_timer(group)
        group.join_timer = self._timers.after(delay_ms, callback)

    @staticmethod
    def _stop_join_timer(group: ClassicGroup) -> None:
        if group.join_timer is not None:
            group.join_timer.cancel()
            group.join_timer = None

    @staticmethod
    def _stop_sync_timer(group: ClassicGroup) -> None:
        group.pending_sync.clear()
        if group.sync_timer is not None:
            group.sync_timer.cancel()
            group.sync_timer = None


def _warn_not_stored(group: ClassicGroup, written: WriteResult) -> None:
    # The generation before this one comes back after a restart, and its members time out: nothing is lost.
    if written.error is not None:
        logger.warning("group %s: the empty generation was not stored: %s", group.group_id, written.error)
