"""A partition on a real log in a temporary directory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from uuid import UUID

import pytest_asyncio

from strandline.clock import SystemChance, SystemClock
from strandline.config import Settings
from strandline.config.log import LogSettings
from strandline.config.topic import TopicConfig
from strandline.log import LogManager
from strandline.metadata.image import PartitionImage
from strandline.model import TopicPartition
from strandline.records.builder import build_batch
from strandline.records.record import Record
from strandline.replication import LogWriter, Partition
from tests.golden import kafka_classic as kafka_classic

TOPIC_ID = UUID(int=7)
TP = TopicPartition("topic", 0)
NODE = 1
CLOCK = SystemClock()


def image(
    *,
    leader: int = NODE,
    epoch: int = 0,
    isr: Sequence[int] = (NODE,),
    replicas: Sequence[int] = (NODE,),
    version: int = 0,
) -> PartitionImage:
    return PartitionImage(0, tuple(replicas), tuple(isr), leader, epoch, version)


def batch(
    *values: bytes, producer_id: int = -1, sequence: int = -1, producer_epoch: int | None = None, size: int = 0
) -> memoryview:
    now = CLOCK.now_ms()
    records = [Record(at, now, None, value.ljust(size, b".")) for at, value in enumerate(values)]
    epoch = producer_epoch if producer_epoch is not None else (0 if producer_id >= 0 else -1)
    return memoryview(build_batch(records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence))


class Fixture:
    """A log manager, and partitions on it."""

    def __init__(self, directory: Path) -> None:
        self.logs = LogManager(
            LogSettings(log_dirs=(str(directory),)), node_id=NODE, clock=CLOCK, chance=SystemChance(1)
        )
        self.logs.load(lambda _: self.config())
        self.writer = LogWriter(asyncio.get_running_loop(), "test")

    def config(self, **overrides: str) -> TopicConfig:
        return Settings().topic_config({name.replace("_", "."): value for name, value in overrides.items()})

    def partition(self, **overrides: str) -> Partition:
        log = self.logs.get_or_create(TP, TOPIC_ID, self.config(**overrides))
        return Partition(TP, TOPIC_ID, log, node_id=NODE, writer=self.writer)


@pytest_asyncio.fixture
async def fixture(tmp_path: Path) -> AsyncIterator[Fixture]:
    made = Fixture(tmp_path)
    try:
        yield made
    finally:
        made.writer.close()
        made.logs.shutdown()
