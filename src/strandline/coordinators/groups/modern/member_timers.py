"""The timers of members and groups, by name: starting one again moves it."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, auto

from strandline.coordinators.runtime import Timer, Timers


class MemberTimer(IntEnum):  # its hash costs no call
    SESSION = auto()
    """The member has to be heard of."""
    REBALANCE = auto()
    """The member has to give up partitions."""
    JOIN = auto()
    """A classic member has to join again."""
    SYNC = auto()
    """A classic member has to ask for its assignment."""


class MemberTimers:
    """All timers of one shard."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._members: dict[str, dict[tuple[MemberTimer, str], Timer]] = {}
        self._groups: dict[str, Timer] = {}

    def start(
        self, kind: MemberTimer, group_id: str, member_id: str, delay_ms: int, callback: Callable[[], None]
    ) -> None:
        """Call back after the delay, and not at the time that was set before."""
        self.cancel(kind, group_id, member_id)
        self._members.setdefault(group_id, {})[(kind, member_id)] = self._timers.after(delay_ms, callback)

    def restart(self, kind: MemberTimer, group_id: str, member_id: str, delay_ms: int) -> bool:
        """Move a timer. False if there is none, or it has called back."""
        timer = self._members.get(group_id, {}).get((kind, member_id))
        if timer is None or not timer.is_pending:
            return False
        self._timers.restart(timer, delay_ms)
        return True

    def extend(
        self, kind: MemberTimer, group_id: str, member_id: str, delay_ms: int, callback: Callable[[], None]
    ) -> None:
        """Move a timer, or start it if there is none."""
        if not self.restart(kind, group_id, member_id, delay_ms):
            self.start(kind, group_id, member_id, delay_ms, callback)

    def is_pending(self, kind: MemberTimer, group_id: str, member_id: str) -> bool:
        timer = self._members.get(group_id, {}).get((kind, member_id))
        return timer is not None and timer.is_pending

    def cancel(self, kind: MemberTimer, group_id: str, member_id: str) -> None:
        timers = self._members.get(group_id, {})
        timer = timers.pop((kind, member_id), None)
        if timer is not None:
            timer.cancel()
            if not timers:
                del self._members[group_id]

    def cancel_member(self, group_id: str, member_id: str) -> None:
        for kind in MemberTimer:
            self.cancel(kind, group_id, member_id)

    def start_group(self, group_id: str, delay_ms: int, callback: Callable[[], None]) -> None:
        """One timer of the group itself; if it is set already, it stays."""
        timer = self._groups.get(group_id)
        if timer is None or not timer.is_pending:
            self._groups[group_id] = self._timers.after(delay_ms, callback)

    def cancel_group(self, group_id: str) -> None:
        """All timers of the group and of its members."""
        for timer in self._members.pop(group_id, {}).values():
            timer.cancel()
        timer_of_group = self._groups.pop(group_id, None)
        if timer_of_group is not None:
            timer_of_group.cancel()

    def cancel_all(self) -> None:
        for group_id in [*self._members, *self._groups]:
            self.cancel_group(group_id)
