"""How partitions get their boundary: drain, seal, roll, force to disk, and one transaction of the control plane.

Every step may be entered again, by this process or by the next: a sealed log is sealed again, an empty segment is used
again, and the control plane accepts the same boundary twice. A log stays sealed while the outcome of the transaction is
not known: its boundary may be there already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from strandline.clock import Clock
from strandline.controlplane import Boundaries, BoundarySet, NewBoundary
from strandline.crash import crash_point
from strandline.errors import StrandlineError
from strandline.hybrid.switching.switch import PartitionSwitch
from strandline.hybrid.switching.waiting import wait_until
from strandline.log import UnifiedLog
from strandline.log.snapshot_writing import write_snapshots
from strandline.replication import Partition
from strandline.tasks import TaskSet

HOLD_S: Final = 0.5
"""How long appends are held while a partition is sealed, before they are refused. A client that is refused waits before
it sends again, at first 100 ms, and the partition could have taken the records long before that."""
QUIET_WITHIN_S: Final = 2.0
"""A sealed log that does not come to rest within this time takes records again, and is tried later."""

IsWanted: TypeAlias = Callable[[PartitionSwitch], bool]


@dataclass(frozen=True, slots=True)
class Sealed:
    """A partition that has come to rest, the boundary that it asks for, and the answer of the control plane."""

    switch: PartitionSwitch
    boundary: NewBoundary
    answer: BoundarySet


class BoundarySetter:
    """Sets the boundaries of groups of partitions. Those of one group wait for each other: a group is small."""

    def __init__(self, boundaries: Boundaries, clock: Clock) -> None:
        self._boundaries, self._clock = boundaries, clock
        self._tasks = TaskSet()

    async def close(self) -> None:
        """The broker stops: appends that are held are refused with the partitions."""
        await self._tasks.close()

    async def set(self, group: Sequence[PartitionSwitch], position: int, *, is_wanted: IsWanted) -> list[Sealed]:
        """Set the boundaries of those that can be sealed now; the others go on, with their problem noted.

        Those that are not wanted are left alone: they belong to another leadership, or are classic again.

        `is_wanted` tells whether a partition is still to be switched under the leadership in which this began. Raises
        SqlError: the sealed ones stay sealed, and the call is to be repeated.
        """
        ready = await self._each(list(filter(is_wanted, group)), _as_it_is, is_wanted)
        # One may have begun meanwhile, where new ones are not refused: the next look finds it.
        ready = [switch for switch in ready if is_wanted(switch) and not switch.replica.has_open_transactions]
        crash_point("switch.before_seal")
        now = self._clock.monotonic()
        for switch in ready:
            switch.sealed(now)
        self._tasks.start(self._stop_holding(ready), name="held-appends")
        crash_point("switch.after_seal")
        ready = await self._come_to_rest(ready, is_wanted)
        crash_point("switch.at_rest")
        ready = await self._each([switch for switch in ready if is_wanted(switch)], _roll, is_wanted)
        crash_point("switch.after_flush")
        ready = [switch for switch in ready if is_wanted(switch)]
        if not ready:
            return []
        wished = [_boundary_of(switch, position) for switch in ready]
        answers = await self._boundaries.initialize_diskless_migration(wished)
        crash_point("switch.after_boundary")
        return list(map(Sealed, ready, wished, answers))

    async def _stop_holding(self, switches: Sequence[PartitionSwitch]) -> None:
        """Refuse what is held after a while: the client need not wait for a disk or a database that is slow."""
        await self._clock.sleep(HOLD_S)
        for switch in switches:
            if switch.replica.gate is not None:
                switch.replica.gate.stop_holding()

    async def _come_to_rest(self, switches: Iterable[PartitionSwitch], is_wanted: IsWanted) -> list[PartitionSwitch]:
        """Those whose records are all written and replicated. The others take records again."""
        resting = []
        deadline = self._clock.monotonic() + QUIET_WITHIN_S
        for switch in switches:
            if await wait_until(switch.replica, _is_quiet, self._clock, deadline=deadline):
                resting.append(switch)
            elif is_wanted(switch):
                log = switch.replica.log
                switch.stepped_back(
                    f"{switch.replica.topic_partition} did not come to rest: its high watermark is "
                    f"{log.high_watermark}, its last stable offset {log.last_stable_offset}, its end "
                    f"{log.log_end_offset}."
                )
        return resting

    async def _each(
        self, switches: Sequence[PartitionSwitch], prepare: Callable[[UnifiedLog], None], is_wanted: IsWanted
    ) -> list[PartitionSwitch]:
        """Prepare each log, and force it to disk in threads. Those that fail go on without a boundary."""
        done = await asyncio.gather(*(self._forced(switch, prepare, is_wanted) for switch in switches))
        return [switch for switch, is_done in zip(switches, done, strict=True) if is_done]

    async def _forced(
        self, switch: PartitionSwitch, prepare: Callable[[UnifiedLog], None], is_wanted: IsWanted
    ) -> bool:
        log = switch.replica.log

        async def on_disk(work: Callable[[], None]) -> bool:
            try:
                await asyncio.to_thread(work)
            except OSError as error:
                raise log.fail_append(error) from error
            return True

        try:
            prepare(log)
            await write_snapshots(log, on_disk)
            plan = log.flusher.begin_hard()
            await on_disk(plan.run)
            log.flusher.finish(plan)
        except StrandlineError as error:
            if is_wanted(switch):
                switch.stepped_back(f"{switch.replica.topic_partition} cannot be forced to disk: {error}")
            return False
        return True


def _is_quiet(replica: Partition) -> bool:
    return replica.is_quiet


def _as_it_is(log: UnifiedLog) -> None:
    """Changes nothing. Most of the log is forced to disk first, before any append has to wait for it."""


def _roll(log: UnifiedLog) -> None:
    log.roll()
    crash_point("switch.after_roll")


def _boundary_of(switch: PartitionSwitch, position: int) -> NewBoundary:
    log = switch.replica.log
    highest = min(log.remote.highest_offset, log.log_end_offset - 1) if log.is_remote else -1
    return NewBoundary(
        partition=switch.id,
        position=position,
        boundary=log.log_end_offset,
        leader_epoch=switch.epoch,
        log_start_offset=log.log_start_offset,
        tiered_log_start_offset=log.log_start_offset if highest >= 0 else -1,
        tiered_high_offset=highest,
        producers=tuple(log.producers.entries.values()),
    )
