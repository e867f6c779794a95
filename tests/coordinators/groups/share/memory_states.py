"""A share coordinator in memory, which can be told to refuse or to wait; and the ends of logs."""

from __future__ import annotations

import asyncio
from uuid import UUID

from strandline.coordinators.groups.share.states import ShareProgress
from strandline.coordinators.groups.share.values import NO_SHARE_OFFSET
from strandline.errors import InvalidRequest, NotLeaderOrFollower, StrandlineError
from strandline.model import TopicPartition


class MemoryShareStates:
    """`found` holds epoch and progress. Partitions in `refused` get an error; `hold()` lets everybody wait."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, UUID, int], tuple[int, ShareProgress]] = {}
        self.refused: dict[tuple[UUID, int], StrandlineError] = {}
        self.silent: set[tuple[UUID, int]] = set()
        """Partitions whose coordinator never answers."""
        self.calls = 0
        self._open = asyncio.Event()
        self._open.set()

    async def initialize(
        self, group_id: str, topic_id: UUID, partition: int, state_epoch: int, start_offset: int
    ) -> None:
        await self._check(topic_id, partition)
        known = self.found.get((group_id, topic_id, partition))
        if known is not None and known[0] > state_epoch:
            raise InvalidRequest(f"The state is of epoch {known[0]}, not {state_epoch}.")
        self.found[group_id, topic_id, partition] = (state_epoch, ShareProgress(start_offset=start_offset))

    async def delete(self, group_id: str, topic_id: UUID, partition: int) -> None:
        await self._check(topic_id, partition)
        self.found.pop((group_id, topic_id, partition), None)

    async def summary(self, group_id: str, topic_id: UUID, partition: int) -> ShareProgress:
        await self._check(topic_id, partition)
        return self.found.get((group_id, topic_id, partition), (0, ShareProgress(start_offset=NO_SHARE_OFFSET)))[1]

    async def _check(self, topic_id: UUID, partition: int) -> None:
        self.calls += 1
        await self._open.wait()
        if (topic_id, partition) in self.silent:
            await asyncio.Event().wait()
        if (topic_id, partition) in self.refused:
            raise self.refused[topic_id, partition]

    def progress(self, group_id: str, topic_id: UUID, partition: int, progress: ShareProgress) -> None:
        epoch, _ = self.found[group_id, topic_id, partition]
        self.found[group_id, topic_id, partition] = (epoch, progress)

    def partitions_of(self, group_id: str) -> set[tuple[UUID, int]]:
        return {(topic_id, partition) for known, topic_id, partition in self.found if known == group_id}

    def hold(self) -> None:
        self._open.clear()

    def release(self) -> None:
        self._open.set()


class MemoryLogEnds:
    """The ends that a test sets; other logs have no leader."""

    def __init__(self) -> None:
        self.ends: dict[TopicPartition, int] = {}

    async def end_offset(self, partition: TopicPartition) -> int:
        if partition not in self.ends:
            raise NotLeaderOrFollower(f"Nobody leads {partition}.")
        return self.ends[partition]
