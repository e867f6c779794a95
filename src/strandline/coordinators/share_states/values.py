"""What the share coordinator keeps for a share partition: a partition of a topic as one share group reads it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from heapq import heappop, heappush
from itertools import pairwise
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from strandline.model import NO_EPOCH, NO_OFFSET, LeaderEpoch, Offset, TimestampMs, uuid_to_text

NO_COUNT: Final = -1
"""It is not known how many offsets are settled."""


class DeliveryState(IntEnum):
    """How far the delivery of a record has come. Kafka's numbers; only ACQUIRED is never written."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        """True if the record is not delivered again."""
        return self in (DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED)


class SharePartitionKey(NamedTuple):
    """A share partition: a group, and a partition of a topic that may have been deleted and created again."""

    group_id: str
    topic_id: UUID
    partition: int

    @property
    def coordinator_key(self) -> str:
        """By which its coordinator is found."""
        return f"{self.group_id}:{uuid_to_text(self.topic_id)}:{self.partition}"

    def __str__(self) -> str:
        return self.coordinator_key


class DeliveryBatch(NamedTuple):
    """Offsets that are delivered equally far."""

    first_offset: Offset
    last_offset: Offset
    state: DeliveryState
    delivery_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareState:
    """The whole state of a share partition."""

    snapshot_epoch: int = 0
    state_epoch: int
    """Raised when the group begins anew, at another offset."""
    leader_epoch: LeaderEpoch
    """That of the leader of the partition which last read the state."""
    start_offset: Offset
    """Everything before it is settled; -1: the leader still has to choose where the group begins."""
    delivery_complete_count: int = NO_COUNT
    """How many offsets from `start_offset` on are settled."""
    batches: tuple[DeliveryBatch, ...] = ()
    created_ms: TimestampMs
    written_ms: TimestampMs


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareStateUpdate:
    """A change of the state, as the leader of the partition writes it."""

    state_epoch: int = NO_EPOCH
    leader_epoch: LeaderEpoch
    start_offset: Offset = NO_OFFSET
    """-1: unchanged."""
    delivery_complete_count: int = NO_COUNT
    batches: tuple[DeliveryBatch, ...] = ()


class ShareStateSummary(NamedTuple):
    """The state without batches; that of a share partition that has none is the default."""

    state_epoch: int = 0
    leader_epoch: LeaderEpoch = 0
    start_offset: Offset = NO_OFFSET
    delivery_complete_count: int = NO_COUNT


class ShareGroupStates(Protocol):
    """Keeps the state of share partitions, wherever their coordinator is.

    Each method is atomic and raises StrandlineError; then, and if it is cancelled, a change may have been made or not.
    Changes of one share partition are made in the order in which they arrive. Retriable are NotCoordinator,
    CoordinatorNotAvailable and CoordinatorLoadInProgress.
    """

    async def initialize(self, key: SharePartitionKey, *, state_epoch: int, start_offset: Offset) -> None:
        """Begin anew at `start_offset` (-1: where share.auto.offset.reset says). Raises FencedStateEpoch."""

    async def read(self, key: SharePartitionKey, *, leader_epoch: LeaderEpoch) -> ShareState:
        """The state, for the leader of the partition in this epoch: leaders of earlier epochs are fenced by it.

        Raises FencedLeaderEpoch, InvalidRequest if there is no state.
        """

    async def write(self, key: SharePartitionKey, update: ShareStateUpdate) -> None:
        """Change the state. Raises FencedLeaderEpoch, FencedStateEpoch, InvalidRequest if there is no state."""

    async def delete(self, key: SharePartitionKey) -> None:
        """Forget the state. Harmless if there is none."""

    async def summary(self, key: SharePartitionKey) -> ShareStateSummary:
        """The state without batches."""


def combined(batches: Iterable[DeliveryBatch], start_offset: Offset) -> tuple[DeliveryBatch, ...]:
    """Disjoint batches in order of offsets. Where some overlap, the larger delivery count wins, then the larger state.

    Offsets before `start_offset` are left out (-1: none).
    """
    pruned = (
        batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
        for batch in batches
        if batch.last_offset >= start_offset
    )
    ordered = sorted(pruned)
    edges = sorted({edge for batch in ordered for edge in (batch.first_offset, batch.last_offset + 1)})
    found: list[DeliveryBatch] = []
    open_batches: list[tuple[int, int, Offset]] = []
    position = 0
    for first, end in pairwise(edges):
        while position < len(ordered) and ordered[position].first_offset <= first:
            batch = ordered[position]
            heappush(open_batches, (-batch.delivery_count, -batch.state, batch.last_offset))
            position += 1
        while open_batches and open_batches[0][2] < first:
            heappop(open_batches)
        if open_batches:
            count, state, _ = open_batches[0]
            _append(found, DeliveryBatch(first, end - 1, DeliveryState(-state), -count))
    return tuple(found)


def _append(found: list[DeliveryBatch], batch: DeliveryBatch) -> None:
    last = found[-1] if found else None
    if last is not None and last.last_offset + 1 == batch.first_offset and last[2:] == batch[2:]:
        found[-1] = last._replace(last_offset=batch.last_offset)
    else:
        found.append(batch)
