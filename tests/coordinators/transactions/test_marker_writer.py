"""Markers in the partitions that this broker leads, on real files: what they end, and whose are refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest_asyncio

from strandline.clock import SystemClock
from strandline.coordinators.runtime import TransactionEnd
from strandline.coordinators.transactions.marker_writer import MarkerWriter
from strandline.coordinators.transactions.markers import TransactionMarker
from strandline.errors import (
    InvalidProducerEpoch,
    StrandlineError,
    TransactionCoordinatorFenced,
    UnknownTopicOrPartition,
)
from strandline.hybrid.parts.replica_appends import ReplicaAppends
from strandline.log import AppendOrigin
from strandline.model import GROUP_METADATA_TOPIC, ProducerAndEpoch, TopicPartition
from strandline.records.builder import build_batch
from strandline.records.record import Record
from strandline.replication import Partition
from tests.coordinators.runtime.replicas import TOPIC, open_coordinator_log

P = TopicPartition("orders", 0)
ORDERS = replace(TOPIC, name=P.topic)


@dataclass
class Offsets:
    """What the group coordinator hears."""

    ended: list[tuple[int, TransactionEnd]] = field(default_factory=list)

    async def end_transaction(self, partition: int, end: TransactionEnd) -> None:
        self.ended.append((partition, end))


@dataclass
class World:
    partition: Partition
    writer: MarkerWriter
    offsets: Offsets
    announced: list[tuple[TopicPartition, int]]

    async def produce(self, producer_id: int, epoch: int, *, sequence: int = 0) -> None:
        batch = build_batch(
            [Record(0, 1_000, b"key", b"value")],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        await self.partition.append_and_wait(memoryview(batch), origin=AppendOrigin.CLIENT, timeout_ms=5_000)

    async def mark(
        self, producer_id: int, epoch: int, *, is_commit: bool = True, version: int = 2, coordinator_epoch: int = 1
    ) -> StrandlineError | None:
        end = TransactionEnd(ProducerAndEpoch(producer_id, epoch), is_commit, coordinator_epoch, version)
        marker = TransactionMarker("pay", end, (P,))
        (error,) = (await self.writer.write([marker])).values()
        return error

    @property
    def stable(self) -> tuple[int, int]:
        """The last stable offset, and the end."""
        return self.partition.log.last_stable_offset, self.partition.log.log_end_offset


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    with open_coordinator_log(tmp_path, topic=ORDERS) as (_, replicas):
        offsets, announced = Offsets(), list[tuple[TopicPartition, int]]()

        def announce(partition: TopicPartition, producer_id: int) -> None:
            announced.append((partition, producer_id))

        def find(topic: str, partition: int) -> ReplicaAppends:
            return ReplicaAppends(replicas.get_leader(TopicPartition(topic, partition)))

        writer = MarkerWriter(find, offsets, SystemClock(), on_marker=announce)
        yield World(replicas.get_leader(P), writer, offsets, announced)


async def test_a_marker_ends_a_transaction(world: World) -> None:
    await world.produce(7, 0)
    await world.produce(8, 0)
    assert world.stable == (0, 2)
    assert await world.mark(7, 1, is_commit=False) is None
    assert world.stable == (1, 3)
    assert await world.mark(8, 1) is None
    assert world.stable == (4, 4)
    assert world.announced == [(P, 7), (P, 8)]


async def test_markers_of_offsets_go_through_the_group_coordinator(world: World) -> None:
    end = TransactionEnd(ProducerAndEpoch(7, 1), is_commit=True, coordinator_epoch=1, transaction_version=2)
    partition = TopicPartition(GROUP_METADATA_TOPIC, 9)
    assert await world.writer.write([TransactionMarker("pay", end, (partition,))]) == {("pay", partition): None}
    assert world.offsets.ended == [(9, end)]
    assert world.announced == [(partition, 7)]


async def test_late_markers_of_version_2_are_refused(world: World) -> None:
    """So that a marker of an earlier transaction does not end the next one."""
    await world.produce(7, 0)
    assert await world.mark(7, 1) is None
    assert isinstance(await world.mark(7, 1), InvalidProducerEpoch)
    await world.produce(7, 1)
    assert isinstance(await world.mark(7, 1, is_commit=False), InvalidProducerEpoch)
    assert world.stable == (2, 3)
    assert await world.mark(7, 2) is None
    assert world.stable == (4, 4)


async def test_markers_of_version_1_keep_the_epoch(world: World) -> None:
    for sequence in range(3):
        await world.produce(7, 0, sequence=sequence)
        assert await world.mark(7, 0, version=1) is None
    assert world.stable == (6, 6)
    await world.produce(7, 0, sequence=3)
    assert await world.mark(7, 1, version=1, is_commit=False) is None  # it took too long
    assert world.stable == (8, 8)
    assert isinstance(await world.mark(7, 0, version=1), InvalidProducerEpoch)


async def test_an_old_coordinator_is_fenced(world: World) -> None:
    await world.produce(7, 0)
    assert await world.mark(7, 1, coordinator_epoch=5) is None
    await world.produce(7, 1)
    assert isinstance(await world.mark(7, 2, coordinator_epoch=4), TransactionCoordinatorFenced)
    assert world.stable == (2, 3)


async def test_partitions_that_are_not_here(world: World) -> None:
    end = TransactionEnd(ProducerAndEpoch(7, 1), is_commit=True, coordinator_epoch=1, transaction_version=2)
    marker = TransactionMarker("pay", end, (P, TopicPartition("gone", 0)))
    found = await world.writer.write([marker])
    assert found["pay", P] is None
    assert isinstance(found["pay", TopicPartition("gone", 0)], UnknownTopicOrPartition)
