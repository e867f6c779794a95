"""Changes of in-sync sets on their way to the controller: all that wait in one request, and one request at a time.

A proposal is sent until the controller has decided it or metadata has overtaken it. There is no task while none waits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol
from uuid import UUID

from strandline.clock import Clock
from strandline.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    NewLeaderElected,
    OperationNotAttempted,
    StrandlineError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from strandline.metadata import IsrChange, PartitionImage
from strandline.model import BrokerId
from strandline.replication.leader_environment import IsrProposal
from strandline.sql import SqlError
from strandline.tasks import Setbacks, TaskSet

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 0.05

_DECIDED: Final = (
    OperationNotAttempted,
    IneligibleReplica,
    UnknownTopicOrPartition,
    UnknownTopicId,
    FencedLeaderEpoch,
    InvalidUpdateVersion,
    InvalidRequest,
    NewLeaderElected,
)
"""Errors of one partition after which the same proposal cannot succeed. After any other it is sent again."""


class AltersPartitions(Protocol):
    """The active controller, wherever it is."""

    async def alter_partition(
        self, node_id: int, broker_epoch: int, changes: Sequence[IsrChange]
    ) -> list[PartitionImage | StrandlineError]:
        """What has become of each change, in their order. One attempt. Raises StrandlineError for all of them."""


class IsrChangeSender:
    """An `IsrChanges`."""

    def __init__(
        self, controller: AltersPartitions, *, node_id: BrokerId, broker_epoch: Callable[[], int], clock: Clock
    ) -> None:
        self._controller, self._node_id = controller, node_id
        self._broker_epoch, self._clock = broker_epoch, clock
        self._waiting: dict[tuple[UUID, int], IsrProposal] = {}
        self._in_flight: dict[tuple[UUID, int], IsrProposal] = {}
        self._tasks = TaskSet()
        self._is_sending = False
        self._setbacks = Setbacks("changing in-sync sets", logger)
        self.expands = 0
        """Changes that have added a replica."""
        self.shrinks = 0
        """Changes that have only removed replicas."""

    def submit(self, proposal: IsrProposal) -> bool:
        """See `IsrChanges`. One that waits, and that metadata has overtaken, makes room for a new one."""
        key = _key(proposal)
        if key in self._in_flight:
            return False
        known = self._waiting.get(key)
        if known is not None and known.is_wanted:
            return False
        self._waiting[key] = proposal
        if not self._is_sending:
            self._is_sending = True
            self._tasks.start(self._send_all(), name="isr-changes")
        return True

    async def _send_all(self) -> None:
        """Send until nothing waits. The first turn of the loop is over by now: what it has proposed goes together."""
        try:
            while self._waiting:
                waiting, self._waiting = self._waiting, {}
                batch = self._in_flight = {key: one for key, one in waiting.items() if one.is_wanted}
                again = await self._send(list(batch.values())) if batch else ()
                self._in_flight = {}
                for proposal in again:
                    self._waiting.setdefault(_key(proposal), proposal)
                if again:
                    await self._clock.sleep(RETRY_SECONDS)
        finally:
            self._is_sending = False

    async def _send(self, batch: Sequence[IsrProposal]) -> Iterable[IsrProposal]:
        """Send one request. Returns what has to be sent again."""
        changes = [proposal.change for proposal in batch]
        try:
            answers = await self._controller.alter_partition(self._node_id, self._broker_epoch(), changes)
        except (StrandlineError, SqlError) as error:
            self._setbacks.met(error)
            return batch
        except Exception:  # the edge of the task: without it no in-sync set of this broker would ever change again
            logger.exception("in-sync sets could not be changed")
            return batch
        self._setbacks.over()
        again = []
        self._in_flight = {}  # an answer may lead to the next proposal of the same partition
        for proposal, answer in zip(batch, answers, strict=True):
            if isinstance(answer, StrandlineError) and not is_decided(answer):
                again.append(proposal)
                continue
            if isinstance(answer, PartitionImage):
                self._count(proposal)
            proposal.answered(answer)
        return again

    def _count(self, proposal: IsrProposal) -> None:
        if proposal.is_expansion:
            self.expands += 1
        else:
            self.shrinks += 1

    async def close(self) -> None:
        """Send no more."""
        await self._tasks.close()


def is_decided(error: StrandlineError) -> bool:
    """True if the controller has decided a proposal, and will decide it like that again."""
    return isinstance(error, _DECIDED)


def _key(proposal: IsrProposal) -> tuple[UUID, int]:
    return proposal.change.topic_id, proposal.change.partition
