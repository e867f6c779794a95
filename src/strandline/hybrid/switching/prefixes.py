"""Follows the prefixes of switched partitions: how far they are copied, where they start, when they are gone.

By level: what the control plane has is compared with the log and the remote log metadata, and brought up to date.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from strandline.clock import Clock
from strandline.controlplane import (
    DisklessLog,
    DisklessLogs,
    MigrationState,
    PrefixProgress,
    PrefixReports,
    trouble_for_clients,
)
from strandline.crash import crash_point
from strandline.errors import RequestTimedOut, StrandlineError
from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.hybrid.remote.topics import TieredTopics
from strandline.hybrid.suffix_sizes import SuffixSizes
from strandline.hybrid.switching.stages import Stage
from strandline.hybrid.switching.switch import PartitionSwitch
from strandline.model import NO_OFFSET, TopicIdPartition
from strandline.sql import SqlError
from strandline.tasks import Setbacks

if TYPE_CHECKING:  # a broker without tiered storage does not load it
    from strandline.remote.manager.prefix import PrefixStatus

logger = logging.getLogger(__name__)

COPYING_SECONDS: Final = 0.5
"""How often a prefix is looked at that is not in remote storage yet."""
COPIED_SECONDS: Final = 5.0
"""How often one is that is, and leaves by retention."""
_MEANING: Final = {
    MigrationState.TIERED_ONLY: "they are not switched",
    MigrationState.MIGRATING: "what is below their boundaries is being copied to remote storage",
    MigrationState.HYBRID: "everything below their boundaries is in remote storage",
    MigrationState.DISKLESS_ONLY: "nothing is left below their boundaries",
}
_LOGS_AT_ONCE: Final = 1000


class PrefixKeeper:
    """See the module."""

    def __init__(
        self,
        switches: Callable[[], Collection[PartitionSwitch]],
        diskless: DisklessTopics,
        tiered: TieredTopics,
        sizes: SuffixSizes,
        *,
        logs: DisklessLogs,
        reports: PrefixReports,
        copying_ms: Callable[[], int],
        on_lost: Callable[[PartitionSwitch], None],
        clock: Clock,
    ) -> None:
        """`copying_ms` is `inkless.migration.segment.wait.ms`; `on_lost` is called if a boundary is gone."""
        self._switches, self._diskless, self._tiered = switches, diskless, tiered
        self._logs, self._reports, self._sizes, self._clock = logs, reports, sizes, clock
        self._copying_ms, self._on_lost = copying_ms, on_lost
        self._copying_since: dict[TopicIdPartition, float] = {}
        self._followed: set[TopicIdPartition] = set()
        self._missing: WeakSet[PartitionSwitch] = WeakSet()
        self._setbacks = Setbacks("following the prefixes of switched topics", logger)

    async def run(self) -> None:
        """Look at all prefixes again and again. Endless."""
        while True:
            await self._wait_due()
            try:
                await self.look()
            except SqlError as error:
                self._setbacks.met(error)
            else:
                self._setbacks.over()

    def _led(self) -> list[PartitionSwitch]:
        return [
            switch
            for switch in self._switches()
            if (switch.has_prefix or switch.is_outdated) and switch.replica.is_leader
        ]

    async def _wait_due(self) -> None:
        """Return after COPIED_SECONDS; sooner if a prefix is copied, new or perhaps gone, or a log was converted."""
        end = self._clock.monotonic() + COPIED_SECONDS
        while True:
            await self._clock.sleep(COPYING_SECONDS)
            if any(map(self._is_urgent, self._led())) or self._clock.monotonic() >= end:
                return

    def _is_urgent(self, switch: PartitionSwitch) -> bool:
        is_new = switch.id not in self._followed
        return is_new or switch.state is MigrationState.MIGRATING or switch in self._missing or switch.is_outdated

    async def look(self) -> None:
        """Compare every prefix with the control plane, and bring both up to date. Raises SqlError."""
        led = {switch.id: switch for switch in self._led()}
        self._forget_others(led)
        keys = list(led)
        for first in range(0, len(keys), _LOGS_AT_ONCE):
            page = keys[first : first + _LOGS_AT_ONCE]
            logs = await self._logs.logs(page)
            found = (self._compare(led[key], logs.get(key)) for key in page)
            changed = [progress for progress in found if progress is not None]
            if changed:
                crash_point("switch.before_prefix")
                await self._reports.record_prefix(changed)
                crash_point("switch.after_prefix")
                self._note({led[progress.partition]: progress.state for progress in changed})

    async def tell_log_start(self, switch: PartitionSwitch) -> None:
        """Return when the control plane knows where the log of a switched partition starts. Raises StrandlineError.

        Other brokers serve the prefix from there: what they would miss, if remote storage has lost it already, would
        look to them like a gap, and they would not stand in for the leader.
        """
        name, log = switch.replica.topic_partition, switch.log
        if switch.stage is Stage.UNKNOWN:
            raise RequestTimedOut(f"It is not known yet whether {name} is switched: nothing of it is deleted.")
        start = min(switch.replica.log.log_start_offset, switch.boundary)
        is_known = log is not None and log.log_start_offset >= start
        if is_known or switch.parts is None or switch.parts.prefix.problem:
            return
        progress = PrefixProgress(
            partition=switch.id,
            leader_epoch=switch.replica.leader_epoch,
            log_start_offset=start,
            tiered_log_start_offset=NO_OFFSET,
            tiered_high_offset=NO_OFFSET,
            state=switch.state,
        )
        try:
            await self._reports.record_prefix([progress])
        except SqlError as error:
            raise trouble_for_clients(error, f"The control plane cannot be told where {name} starts") from error
        crash_point("switch.after_log_start")

    def _forget_others(self, led: Collection[TopicIdPartition]) -> None:
        for key in [key for key in self._followed if key not in led]:
            self._sizes.forget(key)
            self._copying_since.pop(key, None)
        self._followed = set(led)

    def _compare(self, switch: PartitionSwitch, log: DisklessLog | None) -> PrefixProgress | None:
        """What the control plane has to be told of a partition; None if it knows."""
        parts = switch.parts
        if parts is None or not parts.newest.is_open:
            return None
        if log is None or log.diskless_log_start_offset != switch.boundary:
            if switch in self._missing:  # not at once: its topic may have been deleted
                self._on_lost(switch)
            self._missing.add(switch)
            return None
        self._missing.discard(switch)
        switch.learned(log)
        self._sizes.set(switch.id, log.byte_size)
        self._diskless.engine.learn(log)
        try:
            parts.prefix.follow_log_start(log.log_start_offset)
        except StrandlineError as error:
            switch.hindered(str(error))
            return None
        if parts.prefix.problem:  # a log that does not fit says nothing about the prefix
            return None
        local = switch.replica.log
        prefix = self._prefix_of(switch)
        state = self._state_of(switch, prefix)
        is_copying = state is MigrationState.MIGRATING
        problem = self._slow(switch, prefix) if is_copying else self._settled(switch, log, prefix)
        switch.prefix_compared(prefix, is_copying=is_copying, problem=problem)
        found = PrefixProgress(
            partition=switch.id,
            leader_epoch=switch.replica.leader_epoch,
            log_start_offset=min(local.log_start_offset, switch.boundary),
            tiered_log_start_offset=log.tiered_log_start_offset if prefix is None else prefix.tiered_log_start,
            tiered_high_offset=log.tiered_high_offset if prefix is None else prefix.tiered_high,
            state=state,
        )
        is_known = (
            found.log_start_offset <= log.log_start_offset
            and found.tiered_log_start_offset <= log.tiered_log_start_offset
            and found.tiered_high_offset <= log.tiered_high_offset
            and found.state is log.migration_state
        )
        return None if is_known else found

    def _prefix_of(self, switch: PartitionSwitch) -> PrefixStatus | None:
        if not switch.replica.log.is_remote:
            return None
        return self._tiered.storage.prefix_status(switch.replica, switch.boundary)

    def _state_of(self, switch: PartitionSwitch, prefix: PrefixStatus | None) -> MigrationState:
        """States do not go back: a prefix that was complete leaves by retention only."""
        local, boundary = switch.replica.log, switch.boundary
        is_local_gone = local.log_start_offset >= boundary and len(local.segments) == 1
        has_remote = local.is_remote and (prefix is None or prefix.has_remote_segments)
        if is_local_gone and not has_remote:
            return MigrationState.DISKLESS_ONLY
        if switch.state is MigrationState.HYBRID or (prefix is not None and prefix.is_complete):
            return MigrationState.HYBRID
        return MigrationState.MIGRATING

    def _slow(self, switch: PartitionSwitch, prefix: PrefixStatus | None) -> str:
        """The prefix is being copied. Says so if that takes long."""
        if switch.id not in self._copying_since:
            self._copying_since[switch.id] = self._clock.monotonic()
            self._copy_now(switch)
        waited = self._clock.monotonic() - self._copying_since[switch.id]
        if waited * 1000 < self._copying_ms():
            return ""
        copied = NO_OFFSET if prefix is None else prefix.tiered_high
        return (
            f"The records of {switch.replica.topic_partition} below offset {switch.boundary} are in remote storage up "
            f"to offset {copied} only, {waited:.0f} seconds after the switch. Until they all are, this broker's disk "
            "has the only copy of the others. `strandline topics tiers` says what keeps them."
        )

    def _settled(self, switch: PartitionSwitch, log: DisklessLog, prefix: PrefixStatus | None) -> str:
        """The prefix need not be copied any more. Says so if it is not whole."""
        self._copying_since.pop(switch.id, None)
        if log.is_prefix_tiered or prefix is None or prefix.is_complete:
            return ""  # it is whole, or not read yet, or the control plane is about to hear of it
        return (
            f"The switch of {switch.replica.topic_partition} was completed although its records below offset "
            f"{switch.boundary} are in remote storage up to offset {prefix.tiered_high} only. This broker's disk has "
            "the only copy of the others; nothing behind them is converted until they are copied, or have expired."
        )

    def _copy_now(self, switch: PartitionSwitch) -> None:
        """The switch has closed the last segment: until it is copied this disk has its only copy, and people wait."""
        self._tiered.storage.copy_now(switch.id)

    def _note(self, states: Mapping[PartitionSwitch, MigrationState]) -> None:
        """The control plane has taken over these states."""
        news: Counter[tuple[str, MigrationState]] = Counter()
        for switch, state in states.items():
            if switch.prefix_recorded(state):
                news[switch.replica.topic_partition.topic, state] += 1
        for (topic, state), count in news.items():
            logger.info("%s: %d partitions are %s: %s", topic, count, state.value, _MEANING[state])
