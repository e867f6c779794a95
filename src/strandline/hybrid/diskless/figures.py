"""Sizes and offsets of diskless logs, for monitoring: as the control plane has them, a few seconds old at most.

The control plane keeps the bytes of each log in the log's own row, so nothing is counted. A question is one query for
each thousand partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from strandline.clock import Clock
from strandline.controlplane import DisklessLog
from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.hybrid.refreshing import Refreshing
from strandline.model import TopicPartition

FRESH_SECONDS: Final = 1.0
_LOGS_AT_ONCE: Final = 1000


class DisklessFigures:
    """The logs of the diskless partitions whose clients are sent to this broker. Lives on the event loop."""

    def __init__(self, topics: DisklessTopics, assigned: Callable[[], Sequence[TopicPartition]], clock: Clock) -> None:
        self._topics, self._assigned = topics, assigned
        nothing: Mapping[TopicPartition, DisklessLog] = {}
        self._logs = Refreshing(
            self._ask,
            nothing,
            what="sizes and offsets of diskless partitions",
            fresh_seconds=FRESH_SECONDS,
            clock=clock,
        )

    @property
    def known(self) -> Mapping[TopicPartition, DisklessLog]:
        """The logs as they were asked for last."""
        return self._logs.known

    def of(self, partition: TopicPartition) -> DisklessLog | None:
        """The log of a partition; None if it is not known yet."""
        return self._logs.known.get(partition)

    async def refresh(self) -> None:
        """See `Refreshing`."""
        if self._assigned():
            await self._logs.refresh()

    async def _ask(self) -> Mapping[TopicPartition, DisklessLog]:
        known: dict[TopicPartition, DisklessLog] = {}
        wanted = self._assigned()
        for first in range(0, len(wanted), _LOGS_AT_ONCE):
            known.update(await self._topics.logs(wanted[first : first + _LOGS_AT_ONCE]))
        return known

    async def close(self) -> None:
        """Ask nothing more."""
        await self._logs.close()
