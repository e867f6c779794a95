"""A broker's replicas of an internal topic on real files, of which the test says what other brokers have.

A replica in sync of which nothing is known holds back the high watermark; one that leaves the in-sync set lets it go.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strandline.clock import Clock, SystemChance, SystemClock
from strandline.config.log import LogSettings
from strandline.config.topic import TopicConfig
from strandline.coordinators.runtime import InternalTopic, ReplicatedCoordinatorLog
from strandline.log import LogManager
from strandline.metadata import EMPTY_IMAGE, MetadataDelta, MetadataImage
from strandline.metadata.delta import apply_records
from strandline.metadata.records import MetadataRecord, PartitionChangeRecord, PartitionRecord, TopicRecord
from strandline.records import Record, iter_headers, read_records
from strandline.replication import LeaderRole, Partition, ReplicaManager

HERE, THERE = 1, 2
BOTH = (HERE, THERE)
_TOPIC_ID = uuid.UUID(int=77)


class ReplicatedTopic:
    """One partition of the topic, on this broker (1) and another one (2). This one leads, and both are in sync."""

    def __init__(self, directory: Path, topic: InternalTopic, clock: Clock) -> None:
        self.logs = LogManager(
            LogSettings(log_dirs=(str(directory),)), node_id=HERE, clock=SystemClock(), chance=SystemChance(0)
        )
        config = TopicConfig(cleanup_policy=("delete",), retention_ms=-1)
        self.logs.load(lambda _: config)
        self.replicas = ReplicaManager(HERE, self.logs, loop=asyncio.get_running_loop(), topic_config=lambda _: config)
        self.image: MetadataImage = EMPTY_IMAGE
        self.delta: MetadataDelta
        """The last change."""
        self.name = topic.name
        self.log = ReplicatedCoordinatorLog(self.replicas, lambda: self.image, topic, clock=clock)
        self.apply(
            TopicRecord(name=topic.name, topic_id=_TOPIC_ID),
            PartitionRecord(topic_id=_TOPIC_ID, partition=0, replicas=BOTH, isr=BOTH, leader=HERE),
        )

    @property
    def partition(self) -> Partition:
        return self.replicas.find(self.name, 0)

    @property
    def high_watermark(self) -> int:
        return self.partition.log.high_watermark

    @property
    def end(self) -> int:
        return self.partition.log.log_end_offset

    def hold(self) -> None:
        """What is appended from now on is not replicated."""
        self._change(isr=BOTH)

    def let_go(self) -> None:
        """The other replica is not in sync any more: what this broker has is replicated."""
        self._change(isr=(HERE,))

    def lose(self) -> None:
        """The other broker leads, and does not have what was held back."""
        kept = self.high_watermark
        self._change(isr=BOTH, leader=THERE)
        self.partition.log.truncate_to(kept)

    def fall_back(self) -> None:
        """The other broker leads for a moment, and dies before this one has cut anything off its log."""
        self._change(isr=BOTH, leader=THERE)
        self.lead(isr=BOTH)

    def committed(self) -> list[Record]:
        """The records below the high watermark."""
        found: list[Record] = []
        while (offset := found[-1].offset + 1 if found else 0) < self.high_watermark:
            slice_ = self.partition.log.read(offset, 1 << 20).records
            assert slice_ is not None
            chunk = slice_.read()
            for at, header in iter_headers(chunk):
                found += [one for one in read_records(memoryview(chunk)[at : at + header.size]) if one.offset >= offset]
        return found

    def lead(self, *, isr: tuple[int, ...] = (HERE,)) -> None:
        """This broker leads in another epoch."""
        self._change(isr=isr, leader=HERE)

    def _change(self, *, isr: tuple[int, ...], leader: int | None = None) -> None:
        partitions = ((_TOPIC_ID, (0,)),)
        self.apply(PartitionChangeRecord(partitions=partitions, isr=isr, leader=leader))

    def apply(self, *records: MetadataRecord) -> None:
        """These are the next records of the metadata log."""
        first = self.image.offset + 1
        delta = apply_records(self.image, list(enumerate(records, first)))
        self.image, self.delta = delta.new, delta
        self.replicas.apply(delta, delta.new)

    @property
    def waiting(self) -> int:
        """How many appends, and loads that have read the log, wait for the other replica."""
        role = self.partition.role
        return len(role._waiting) if isinstance(role, LeaderRole) else 0


@contextmanager
def open_replicated_topic(directory: Path, topic: InternalTopic, clock: Clock) -> Iterator[ReplicatedTopic]:
    """The topic until the block ends."""
    made = ReplicatedTopic(directory, topic, clock)
    try:
        yield made
    finally:
        made.replicas.close()
        made.logs.shutdown()
