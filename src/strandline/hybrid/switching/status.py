"""What can be told of the switch of topics to diskless: values, without any I/O."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from strandline.controlplane import MigrationState
from strandline.model import NO_OFFSET, Offset, TopicPartition

# States never go back, so that they have an order.
_STEPS: Final = {state: step for step, state in enumerate(MigrationState)}
PAUSE_BOUNDS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the buckets of write pauses, in seconds. Longer ones are in a bucket of their own."""


class MigrationPhase(enum.StrEnum):
    """What the leader of a partition that is MIGRATING, or about to be, does."""

    WAITING = "WAITING"
    """Other topics come first."""
    DRAINING_TRANSACTIONS = "DRAINING_TRANSACTIONS"
    SEALING = "SEALING"
    COPYING_PREFIX = "COPYING_PREFIX"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMigration:
    """How far one partition is. Unknown offsets are -1, unknown sizes 0."""

    partition: int
    state: MigrationState
    phase: MigrationPhase | None = None
    b0: Offset = NO_OFFSET
    """Where the partition became diskless."""
    tiering_complete: bool = False
    """Whether remote storage has everything below `b0`."""
    problem: str = ""
    """A sentence that says what keeps the partition from going on; empty if nothing does."""
    held_by: tuple[int, ...] = ()
    """Producers whose transactions did not end in the time that the switch has waited for them, and are open."""
    copied_bytes: int = 0
    total_bytes: int = 0
    """Bytes below `b0` (below the end of the log if that is not set), and those of them in remote storage."""
    log_start: Offset = NO_OFFSET
    local_start: Offset = NO_OFFSET
    tiered_high: Offset = NO_OFFSET
    high_watermark: Offset = NO_OFFSET
    local_bytes: int = 0
    remote_bytes: int = 0
    diskless_bytes: int = 0

    @property
    def diskless_start(self) -> Offset:
        """The first offset that is read from the diskless part; -1 while there is none."""
        return max(self.b0, self.tiered_high + 1) if self.b0 >= 0 else NO_OFFSET

    @property
    def is_hybrid(self) -> bool:
        """Whether its log goes over into a diskless part: it has a boundary, with records below that."""
        return self.b0 >= 0 and self.state in {MigrationState.MIGRATING, MigrationState.HYBRID}

    @property
    def uncopied_bytes(self) -> int:
        """Bytes below the boundary that only the disk of one broker has."""
        return 0 if self.tiering_complete else max(self.total_bytes - self.copied_bytes, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMigrationStatus:
    """How far a topic is."""

    topic: str
    state: MigrationState | None
    """None if the topic has no partition that could be switched: it was born diskless, or never was to be."""
    position: int | None = None
    """How many topics come first (0: none), while its switch is not finished; None if there is no switch."""
    partitions: tuple[PartitionMigration, ...] = ()

    @property
    def is_wanted(self) -> bool:
        """Whether the topic is diskless, or is to become it: of others, no partition has a state."""
        return bool(self.partitions)

    @property
    def progress(self) -> float:
        """Percent of the switch: 100 when no partition is left to be copied."""
        return progress(self.partitions)


@dataclass(frozen=True, slots=True)
class WritePauses:
    """How long the partitions that became diskless took no writes: from the seal to the first moment they did again."""

    counts: tuple[int, ...] = (0,) * (len(PAUSE_BOUNDS_S) + 1)
    """By bucket, see `PAUSE_BOUNDS_S`. The last one has what is longer."""
    seconds: float = 0.0
    """The sum of all."""
    last: Mapping[str, float] = field(default_factory=dict)
    """By topic, the longest of the partitions of its switch, in seconds."""

    def plus(self, topic: str, seconds: float) -> WritePauses:
        """With one partition more."""
        bucket = sum(bound < seconds for bound in PAUSE_BOUNDS_S)
        counts = tuple(count + (index == bucket) for index, count in enumerate(self.counts))
        return WritePauses(
            counts, self.seconds + seconds, {**self.last, topic: max(seconds, self.last.get(topic, 0.0))}
        )

    def without(self, topic: str) -> WritePauses:
        """The same without the name of a topic that was deleted."""
        return replace(self, last={name: seconds for name, seconds in self.last.items() if name != topic})


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationFigures:
    """What a broker knows of the switch from memory."""

    led: Mapping[TopicPartition, PartitionMigration] = field(default_factory=dict)
    """Partitions led here that are to be switched, are being switched, or have a prefix below their diskless part."""
    topics: Mapping[MigrationState, int] = field(default_factory=dict)
    """How many topics are in each state, of those whose first partition is led here."""
    tiered_reads: int = 0
    local_reads: int = 0
    diskless_reads: int = 0
    """Reads of partitions that have a diskless part, by the tier that answered, since the start."""
    pauses: WritePauses = field(default_factory=WritePauses)

    def of_topics(self) -> Mapping[str, tuple[PartitionMigration, ...]]:
        """The partitions led here by topic, in order."""
        found: dict[str, list[PartitionMigration]] = {}
        for (topic, _), partition in sorted(self.led.items()):
            found.setdefault(topic, []).append(partition)
        return {topic: tuple(partitions) for topic, partitions in found.items()}


class MigrationSource(Protocol):
    """Where a broker can be asked about the switch of its topics."""

    async def topic_status(self, topic: str) -> TopicMigrationStatus:
        """The whole topic as the control plane has it, with the phases of the partitions that this broker leads.

        Raises StrandlineError, and UnknownTopicOrPartition if there is no such topic.
        """

    async def statuses(self, states: Collection[MigrationState] | None) -> list[TopicMigrationStatus]:
        """All topics in these states; None: all that are in any. Raises StrandlineError."""

    async def count_topics(self) -> Mapping[MigrationState, int]:
        """How many topics are in each state, of those whose first partition this broker leads.

        The controller's broker counts those without a leader as well.
        Over all brokers every tiered or diskless topic counts once, unless the control plane does not answer.
        """

    def figures(self) -> MigrationFigures:
        """What this broker knows without asking. Called on the event loop: never blocks, never raises."""

    async def complete(self, topic: str) -> None:
        """End the switch of a topic although its prefix is not copied. Raises StrandlineError."""


def topic_state(states: Iterable[MigrationState]) -> MigrationState | None:
    """The state of a topic: that of its partition that is the least far; None if it has none."""
    return min(states, key=_STEPS.__getitem__, default=None)


def progress(partitions: Collection[PartitionMigration]) -> float:
    """Percent of the switch of these partitions, which count alike; of each, the part of its prefix that is copied."""
    if not partitions:
        return 0.0
    return sum(map(_part, partitions)) / len(partitions)


def with_phases(status: TopicMigrationStatus, led: Iterable[PartitionMigration]) -> TopicMigrationStatus:
    """The status of a topic, with what leaders know in the place of what the control plane knows."""
    known = {partition.partition: partition for partition in led}
    return replace(status, partitions=tuple(known.get(p.partition, p) for p in status.partitions))


def _part(partition: PartitionMigration) -> float:
    if _STEPS[partition.state] >= _STEPS[MigrationState.HYBRID]:
        return 100.0
    if partition.b0 < 0:
        return 0.0
    copied, total = partition.copied_bytes, partition.total_bytes
    if not total:  # only the leader knows bytes
        start = max(partition.log_start, 0)
        copied, total = max(partition.tiered_high + 1 - start, 0), max(partition.b0 - start, 1)
    # The state decides when it is over, not what is copied.
    return min(100.0 * copied / total, 99.0)
