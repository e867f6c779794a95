"""What a shard knows of one share partition, and which leaders may change it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from strandline.coordinators.share_states.schemas import ShareUpdateValue
from strandline.coordinators.share_states.values import SharePartitionKey, ShareState, combined
from strandline.errors import FencedLeaderEpoch
from strandline.model import NO_OFFSET, LeaderEpoch, Offset
from strandline.share_errors import FencedStateEpoch

NOBODY: Final = "\0"
"""No broker has this name."""


@dataclass(slots=True)
class KnownShareState:
    """What the log says about one share partition."""

    state: ShareState
    snapshot_offset: Offset
    leader_epoch: LeaderEpoch
    """The largest there was: a state that begins anew has none, and earlier leaders are fenced all the same."""
    reader: str | None = None
    """The broker that read the state last, as far as is known. A diskless partition is on every broker, so two brokers
    may take themselves for its leader in one epoch. Not in the log."""
    updates: int = -1
    """Counted as Kafka does: the first update after the very first snapshot is number 0."""


class KeysByTopic:
    """Share partitions by topic: when a topic is deleted, those of others are not looked at."""

    def __init__(self) -> None:
        self._keys: dict[UUID, dict[SharePartitionKey, None]] = {}

    def add(self, key: SharePartitionKey) -> None:
        self._keys.setdefault(key.topic_id, {})[key] = None

    def remove(self, key: SharePartitionKey) -> None:
        """Remove a key that was added."""
        keys = self._keys[key.topic_id]
        del keys[key]
        if not keys:
            del self._keys[key.topic_id]

    def one_of_each(self) -> list[SharePartitionKey]:
        """A share partition of every topic that has any."""
        return [next(iter(keys)) for keys in self._keys.values()]

    def of(self, topic_id: UUID) -> list[SharePartitionKey]:
        return list(self._keys.get(topic_id, ()))


def merged(state: ShareState, update: ShareUpdateValue) -> ShareState:
    """The state after an update. A late one, which its leader has given up, must not undo what was settled since."""
    start = max(update.start_offset, state.start_offset)
    return replace(
        state,
        leader_epoch=_newer(update.leader_epoch, state.leader_epoch),
        start_offset=start,
        delivery_complete_count=update.delivery_complete_count,
        batches=combined((*state.batches, *update.batches), start),
    )


def _newer(value: int, otherwise: int) -> int:
    return otherwise if value == NO_OFFSET else value


def check_leader_epoch(key: SharePartitionKey, known: KnownShareState, leader_epoch: LeaderEpoch) -> None:
    """Raises FencedLeaderEpoch."""
    if leader_epoch < known.leader_epoch:
        raise FencedLeaderEpoch(
            f"The share partition {key} was read by its leader of epoch {known.leader_epoch}; this is one of epoch "
            f"{leader_epoch}."
        )


def check_state_epoch(key: SharePartitionKey, known: KnownShareState, state_epoch: int) -> None:
    """Raises FencedStateEpoch."""
    if state_epoch < known.state.state_epoch:
        raise FencedStateEpoch(
            f"The state of share partition {key} was begun anew with epoch {known.state.state_epoch}; this is epoch "
            f"{state_epoch}."
        )


def check_writer(key: SharePartitionKey, known: KnownShareState, writer: str) -> None:
    """Raises FencedLeaderEpoch."""
    if known.reader not in (None, writer):
        raise FencedLeaderEpoch(f"The share partition {key} was read by another broker, or begun anew, since.")
