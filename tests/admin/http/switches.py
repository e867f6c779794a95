"""Topics on their way to diskless, as the test wants them, for what is shown of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from strandline.controlplane.values import MigrationState
from strandline.errors import InvalidConfig, StrandlineError, UnknownTopicOrPartition
from strandline.hybrid.switching.status import (
    MigrationFigures,
    MigrationPhase,
    PartitionMigration,
    TopicMigrationStatus,
    WritePauses,
)
from strandline.model import TopicPartition

COPYING = PartitionMigration(
    partition=0,
    state=MigrationState.MIGRATING,
    phase=MigrationPhase.COPYING_PREFIX,
    b0=800,
    log_start=100,
    local_start=300,
    tiered_high=599,
    high_watermark=1000,
    copied_bytes=5_000_000,
    total_bytes=7_000_000,
    local_bytes=5_000_000,
    remote_bytes=5_000_000,
    diskless_bytes=2_000_000,
)
SEALING = PartitionMigration(
    partition=1,
    state=MigrationState.TIERED_ONLY,
    phase=MigrationPhase.SEALING,
    problem="The database <db> is away.",
    log_start=0,
    local_start=0,
    high_watermark=50,
    total_bytes=100,
)
HYBRID = PartitionMigration(
    partition=0,
    state=MigrationState.HYBRID,
    b0=10,
    tiering_complete=True,
    log_start=0,
    local_start=10,
    tiered_high=9,
    high_watermark=12,
)
ORDERS = TopicMigrationStatus(
    topic="orders", state=MigrationState.TIERED_ONLY, position=2, partitions=(COPYING, SEALING)
)
OLD = TopicMigrationStatus(topic="old", state=MigrationState.HYBRID, partitions=(HYBRID,))


class Switches:
    """`MigrationSource` and `TopicSettings` of a broker that leads these partitions."""

    def __init__(self, *topics: TopicMigrationStatus) -> None:
        self.topics = {status.topic: status for status in topics}
        self.error: StrandlineError | None = None
        self.asked: list[tuple[object, ...]] = []

    def _check(self, topic: str) -> None:
        if self.error is not None:
            raise self.error
        if topic not in self.topics:
            raise UnknownTopicOrPartition(f"There is no topic {topic}.")

    async def topic_status(self, topic: str) -> TopicMigrationStatus:
        self._check(topic)
        return self.topics[topic]

    async def statuses(self, states: Collection[MigrationState] | None) -> list[TopicMigrationStatus]:
        return [status for status in self.topics.values() if states is None or status.state in states]

    def figures(self) -> MigrationFigures:
        led = {TopicPartition(one.topic, row.partition): row for one in self.topics.values() for row in one.partitions}
        pauses = WritePauses().plus("orders", 0.03).plus("orders", 0.01) if led else WritePauses()
        topics = {MigrationState.TIERED_ONLY: 4, MigrationState.HYBRID: 1}
        return MigrationFigures(led=led, topics=topics, tiered_reads=3, local_reads=2, diskless_reads=1, pauses=pauses)

    async def count_topics(self) -> Mapping[MigrationState, int]:
        return self.figures().topics

    async def complete(self, topic: str) -> None:
        self._check(topic)
        self.asked.append(("complete", topic))

    async def change(self, topic: str, name: str, value: str, *, validate_only: bool) -> None:
        self._check(topic)
        if value == "false" and any(row.b0 >= 0 for row in self.topics[topic].partitions):
            raise InvalidConfig(f"{topic} cannot go back.")
        self.asked.append((topic, name, value, validate_only))
