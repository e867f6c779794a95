"""Sizes and offsets of diskless logs, for monitoring: as the control plane has them, a few seconds old at most.

The control plane keeps the bytes of each log in the log's own row, so nothing is counted. A question is one query for
each thousand partitions, is asked only if somebody wants to know, and holds up who asked for half a second at most.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from strandline.clock import Clock
from strandline.controlplane.values import DisklessLog
from strandline.errors import StrandlineError
from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.model import TopicPartition
from strandline.tasks import TaskSet

logger = logging.getLogger(__name__)

FRESH_SECONDS: Final = 1.0
PATIENCE_SECONDS: Final = 0.5
_WARNING_SECONDS: Final = 60.0
_LOGS_AT_ONCE: Final = 1000


class DisklessFigures:
    """The logs of the diskless partitions whose clients are sent to this broker. Lives on the event loop."""

    def __init__(self, topics: DisklessTopics, assigned: Callable[[], Sequence[TopicPartition]], clock: Clock) -> None:
        self._topics, self._assigned, self._clock = topics, assigned, clock
        self._known: Mapping[TopicPartition, DisklessLog] = {}
        self._known_at = clock.monotonic() - FRESH_SECONDS
        self._warned_at = clock.monotonic() - _WARNING_SECONDS
        self._asking: asyncio.Task[None] | None = None
        self._tasks = TaskSet()

    @property
    def known(self) -> Mapping[TopicPartition, DisklessLog]:
        """The logs as they were asked for last."""
        return self._known

    def of(self, partition: TopicPartition) -> DisklessLog | None:
        """The log of a partition; None if it is not known yet."""
        return self._known.get(partition)

    async def refresh(self) -> None:
        """Ask the control plane, unless it was asked just now. Returns after half a second in any case."""
        if self._asking is None:
            if self._clock.monotonic() - self._known_at < FRESH_SECONDS or not self._assigned():
                return
            self._asking = self._tasks.start(self._ask(), name="diskless-figures")
        await asyncio.wait((self._asking,), timeout=PATIENCE_SECONDS)

    async def _ask(self) -> None:
        try:
            known: dict[TopicPartition, DisklessLog] = {}
            wanted = self._assigned()
            for first in range(0, len(wanted), _LOGS_AT_ONCE):
                known.update(await self._topics.logs(wanted[first : first + _LOGS_AT_ONCE]))
            self._known, self._known_at = known, self._clock.monotonic()
        except StrandlineError as error:
            self._warn(error)
        finally:
            self._asking = None

    def _warn(self, error: StrandlineError) -> None:
        now = self._clock.monotonic()
        if now - self._warned_at >= _WARNING_SECONDS:
            self._warned_at = now
            logger.warning("sizes and offsets of diskless partitions in /metrics are outdated: %s", error)

    async def close(self) -> None:
        """Ask nothing more."""
        await self._tasks.close()
