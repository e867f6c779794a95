"""Finds out which partitions that were classic before can be served by any broker, also below their boundary.

By level: the control plane is asked again and again for those whose log is on another broker. Clients are sent to a
stand-in while that broker is away, so it has to be known before: remote log metadata may be on the same broker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from strandline.clock import Clock
from strandline.controlplane import DisklessLog, DisklessLogs
from strandline.hybrid.diskless.registry import DisklessPartitions
from strandline.hybrid.parts.diskless import DisklessPart
from strandline.hybrid.parts.prefix_elsewhere import PrefixElsewhere
from strandline.model import TopicIdPartition
from strandline.sql import SqlError
from strandline.tasks import Setbacks, next_turn

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 5.0
"""How often the control plane is asked for all of them."""
SOON_SECONDS: Final = 0.5
"""How often it is for those that were not looked at yet, or whose remote log metadata is being read."""
_LOGS_AT_ONCE: Final = 1000


class PrefixWatch:
    """See the module."""

    def __init__(
        self,
        partitions: DisklessPartitions,
        logs: DisklessLogs,
        *,
        learn: Callable[[DisklessLog], None],
        is_prefix_served: Callable[[], bool],
        on_lost: Callable[[DisklessPart], None],
        clock: Clock,
    ) -> None:
        """`learn` is told what the control plane says of a log; `on_lost` is called if a boundary has changed.

        `is_prefix_served` is `inkless.hybrid.read.enabled`.
        A leader takes a boundary back that lies below the start of its log, if nothing was written behind it.
        """
        self._partitions, self._logs, self._clock = partitions, logs, clock
        self._learn, self._is_prefix_served, self._on_lost = learn, is_prefix_served, on_lost
        self._looked_at: set[PrefixElsewhere] = set()
        self._setbacks = Setbacks("finding out which switched partitions any broker can serve", logger)

    async def run(self) -> None:
        """Look again and again. Endless."""
        due = self._clock.monotonic() + LOOK_SECONDS
        while True:
            await self._clock.sleep(SOON_SECONDS)
            is_due = self._clock.monotonic() >= due
            urgent = list(filter(self._is_urgent, self._partitions.prefixes.values()))
            if not is_due and not urgent:
                continue
            try:
                await (self.look() if is_due else self._look_at(urgent))
            except SqlError as error:
                self._setbacks.met(error)
            else:
                self._setbacks.over()
            if is_due:
                due = self._clock.monotonic() + LOOK_SECONDS

    def _is_urgent(self, prefix: PrefixElsewhere) -> bool:
        return prefix not in self._looked_at or prefix.prefix.is_proving

    async def look(self) -> None:
        """Look at all of them once. Raises SqlError."""
        prefixes = list(self._partitions.prefixes.values())
        self._looked_at.intersection_update(prefixes)
        await self._look_at(prefixes)

    async def _look_at(self, prefixes: Sequence[PrefixElsewhere]) -> None:
        for first in range(0, len(prefixes), _LOGS_AT_ONCE):
            page = prefixes[first : first + _LOGS_AT_ONCE]
            await self._judge(page, await self._logs.logs([prefix.id for prefix in page]))

    async def _judge(self, prefixes: Collection[PrefixElsewhere], logs: Mapping[TopicIdPartition, DisklessLog]) -> None:
        for prefix in prefixes:
            log = logs.get(prefix.id)
            if log is None or not prefix.newer.is_open:
                continue  # its topic was deleted, or the broker stops
            found = log.diskless_log_start_offset, log.diskless_log_start_epoch
            if found != (prefix.end, prefix.prefix.boundary_epoch):
                self._on_lost(prefix.newer)
                continue
            self._learn(log)
            is_gone = log.log_start_offset >= prefix.end
            is_whole = is_gone or (self._is_prefix_served() and prefix.prefix.look(log))
            prefix.state = log.migration_state
            if prefix not in self._looked_at:
                self._looked_at.add(prefix)
                self._tell_lost(prefix)
            if is_whole is not prefix.is_whole:
                self._partitions.found_whole(prefix, is_whole=is_whole)
            if is_gone and log.high_watermark > prefix.end:
                self._partitions.settled(prefix)
            await next_turn()

    def _tell_lost(self, prefix: PrefixElsewhere) -> None:
        if not prefix.is_gone and prefix.topic_partition in self._partitions.without_log:
            logger.error(
                "this broker is to have %s, and does not have its log, which has the offsets from %d to %d: they are "
                "served if all of them are in remote storage",
                prefix.topic_partition,
                prefix.newer.log_start_offset,
                prefix.end - 1,
            )
