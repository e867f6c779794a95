"""Switches of topics from classic to diskless, for tests of the control plane."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from strandline.controlplane import (
    BoundarySet,
    DisklessLog,
    MigrationState,
    NewBoundary,
    PrefixProgress,
    Refusal,
    SqlControlPlane,
    abort_migration,
    request_migration,
)
from strandline.model import TopicIdPartition
from strandline.records import BatchSpan, ProducerEntry
from tests.partitions import id_partition

CLASSIC = uuid.UUID(int=21)
"""A topic that has no logs in the control plane."""
P, Q, R = (id_partition(CLASSIC, number) for number in range(3))


async def request(
    plane: SqlControlPlane, topic_id: uuid.UUID = CLASSIC, partitions: int = 2, *, is_flagged: bool = False
) -> int:
    """Request the switch of a topic as the controller does; returns its position, 0 if there is none."""
    async with plane.store.transaction() as tx:
        await request_migration(tx, topic_id, f"topic-{topic_id.int:x}", partitions, is_flagged=is_flagged)
    positions = [switch.position for switch in await plane.migrations.topic_migrations() if switch.topic_id == topic_id]
    return positions[0] if positions else 0


async def abort(plane: SqlControlPlane, topic_id: uuid.UUID = CLASSIC) -> int | None:
    """Abort the switch of a topic as the controller does."""
    async with plane.store.transaction() as tx:
        return await abort_migration(tx, topic_id)


def producer(producer_id: int, *batches: tuple[int, int, int], epoch: int = 0) -> ProducerEntry:
    """A producer of a prefix; each batch has its first sequence, its number of records and its first offset."""
    entry = ProducerEntry(producer_id, epoch)
    entry.batches = [
        BatchSpan(sequence + records - 1, offset + records - 1, records - 1, 900 + offset)
        for sequence, records, offset in batches
    ]
    entry.last_timestamp = entry.batches[-1].timestamp if entry.batches else -1
    return entry


def boundary(
    partition: TopicIdPartition,
    offset: int,
    *producers: ProducerEntry,
    position: int,
    epoch: int = 3,
    log_start: int = 0,
    tiered: tuple[int, int] = (-1, -1),
) -> NewBoundary:
    """B0 of a partition."""
    return NewBoundary(
        partition=partition,
        position=position,
        boundary=offset,
        leader_epoch=epoch,
        log_start_offset=log_start,
        tiered_log_start_offset=tiered[0],
        tiered_high_offset=tiered[1],
        producers=producers,
    )


async def switch(plane: SqlControlPlane, *boundaries: NewBoundary) -> list[Refusal | None]:
    """Set boundaries; returns the refusals."""
    return [answer.refusal for answer in await plane.migrations.initialize_diskless_migration(boundaries)]


async def switched(
    plane: SqlControlPlane, offset: int = 100, *producers: ProducerEntry, log_start: int = 0, partitions: int = 2
) -> int:
    """Request a switch and set B0 of its first partition P; returns the position."""
    position = await request(plane, partitions=partitions)
    assert await switch(plane, boundary(P, offset, *producers, position=position, log_start=log_start)) == [None]
    return position


def progress(
    partition: TopicIdPartition,
    state: MigrationState = MigrationState.MIGRATING,
    *,
    log_start: int = 0,
    tiered: tuple[int, int] = (-1, -1),
    epoch: int = 3,
) -> PrefixProgress:
    """What a leader reports of a prefix."""
    return PrefixProgress(
        partition=partition,
        leader_epoch=epoch,
        log_start_offset=log_start,
        tiered_log_start_offset=tiered[0],
        tiered_high_offset=tiered[1],
        state=state,
    )


async def log_of(plane: SqlControlPlane, partition: TopicIdPartition) -> DisklessLog:
    """A log that exists."""
    return (await plane.reads.logs([partition]))[partition]


def refusals(answers: Sequence[BoundarySet]) -> list[Refusal | None]:
    """Of some answers."""
    return [answer.refusal for answer in answers]
