"""Records are written, converted and deleted between any two steps of a read: every record is there, once and in order.

Real plans of a broker, real control plane, remote log metadata and stores; Spark and the network are left out.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from strandline.clock import SystemChance
from strandline.config.topic import TopicConfig
from strandline.controlplane.values import DisklessLog, FindBatches, FoundBatches
from strandline.conversion_api.codec import decode, encode
from strandline.conversion_api.values import PlanRead, ReadPlan
from strandline.diskless.reader import DisklessReaderLimits
from strandline.errors import KafkaStorageError
from strandline.hybrid.conversion.led import LedPartitions
from strandline.hybrid.conversion.read_plans import ReadPlans
from strandline.hybrid.diskless.limits import TopicLimits
from strandline.hybrid.partition import ServedPartition
from strandline.hybrid.partitions import Partitions
from strandline.hybrid.parts.diskless import DisklessPart
from strandline.model import TopicIdPartition
from strandline.objects import ObjectStore
from strandline.pipeline.client import TieringClient
from strandline.pipeline.source.brokers import TopicBrokers
from strandline.pipeline.source.decoding import Decoder, Wanted
from strandline.pipeline.source.fetching import PartsFetcher
from strandline.pipeline.source.parts import BrokerPart, ReadTask, divided, parts_of
from strandline.pipeline.source.places import find_places
from strandline.pipeline.source.reading import ReadingContext, TaskReader
from strandline.pipeline.source.stores import LazyStores
from strandline.pipeline.stores import StoreSettings
from strandline.reads import FetchIsolation
from strandline.records import Codec, TimestampType, iter_headers, read_records
from strandline.remote.values import RemoteLogSegmentMetadata
from tests.diskless.batches import NOON_MS
from tests.diskless.reader.lake import P0, Write
from tests.hybrid.diskless.converting import ConvertingWorld, ReadingBroker, open_converting


@dataclass
class MovingWorld:
    """A log that changes whenever somebody looks at it."""

    world: ConvertingWorld
    broker: ReadingBroker
    chance: SystemChance
    start: int = 0
    epoch: int = 0
    rows: list[int] = field(default_factory=list)
    """Where its rows end, of those that are not in a segment."""
    uploaded: int = 0
    segments: list[RemoteLogSegmentMetadata] = field(default_factory=list)
    moving: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def move(self) -> None:
        """Something happens to the log, or nothing."""
        async with self.moving:
            await self.one_of(self.rest, self.rest, self.write, self.upload, self.commit, self.delete, self.expire)()

    def one_of(self, *choices: Any) -> Any:
        return choices[self.chance.below(len(choices))]

    async def rest(self) -> None:
        """Nothing happens."""

    async def write(self) -> None:
        below = self.chance.below
        codec, kind = self.one_of(Codec.NONE, Codec.LZ4), self.one_of(*TimestampType)
        batches = [Write(P0, 1 + below(5), below(300), NOON_MS, 1, codec, kind) for _ in range(1 + below(4))]
        self.epoch += below(2)
        await self.world.lake.write(*batches, leader_epoch=self.epoch)
        self.rows.append(self.world.lake.high_watermark(P0))

    async def upload(self) -> None:
        """A segment is finished that the control plane does not know yet."""
        if self.uploaded or not self.rows or self.start > self.world.converted[P0]:
            return
        at = self.chance.below(len(self.rows))
        if self.rows[at] > self.start:
            self.uploaded = self.rows[at]
            del self.rows[: at + 1]
            self.segments.append(await self.world.upload(P0, self.uploaded))

    async def commit(self) -> None:
        """The read boundary moves; WAL objects go with their rows."""
        if self.uploaded:
            await self.world.move_boundary(P0, self.uploaded)
            self.uploaded = 0

    async def delete(self) -> None:
        end = self.world.lake.high_watermark(P0) if not self.uploaded else self.uploaded
        if self.chance.below(3) == 0 and end > self.start:
            self.start += self.chance.below((end - self.start) // 2)
            await self.world.plane.trimming.delete_records({P0: self.start})

    async def expire(self) -> None:
        """Segments below the log start go; not the last, whose upload may not be committed."""
        for segment in self.segments[:-1]:
            if segment.end_offset < self.start:
                self.segments.remove(segment)
                await self.world.delete_segment(segment)

    # What the reader sees of it

    async def logs(self, partitions: Collection[TopicIdPartition]) -> Mapping[TopicIdPartition, DisklessLog]:
        await self.move()
        found = await self.world.plane.reads.logs(partitions)
        await self.move()
        return found

    async def find_batches(self, requests: Sequence[FindBatches], *, max_rows: int) -> Sequence[FoundBatches]:
        await self.move()
        found = await self.world.plane.reads.find_batches(requests, max_rows=max_rows)
        await self.move()
        return found

    async def objects(self) -> ObjectStore:
        await self.move()
        return self.world.lake.objects

    async def remote(self) -> Any:
        await self.move()
        return self.world.storage


def plans_of(moving: MovingWorld) -> ReadPlans:
    tiered = moving.broker.tiered
    partitions = Partitions(tiered, topic_name=lambda _: P0.topic, why_missing=lambda *_: KafkaStorageError("none"))
    part = DisklessPart(
        P0.topic_partition,
        P0.topic_id,
        cast("Any", None),
        rows=moving.broker.rows,
        converted=moving.broker.log(P0),
        limits=TopicLimits.of(TopicConfig()),
        clock=moving.broker.clock,
    )
    partitions.add(ServedPartition(part))
    return ReadPlans(cast("Any", moving), partitions, tiered, LedPartitions(cast("Any", None), 1))


class DirectClient:
    """Asks a `ReadPlans` in this process, as the HTTP client asks a broker: it repeats what may pass."""

    def __init__(self, plans: ReadPlans, loop: asyncio.AbstractEventLoop, check: Callable[[ReadPlan], None]) -> None:
        self._plans, self._loop, self._check = plans, loop, check

    def plan_read(self, request: PlanRead) -> ReadPlan:
        for _ in range(50):
            planning = asyncio.run_coroutine_threadsafe(self._plans.plan(request), self._loop)
            try:
                plan = decode(ReadPlan, encode(planning.result()))
            except KafkaStorageError:
                continue
            self._check(plan)
            return plan
        raise AssertionError("there is never a plan")


def check_plan(plan: ReadPlan) -> None:
    """No gap and no overlap, from the log start or the first row on."""
    parts = parts_of(plan, 0, plan.end_offset)
    for before, after in pairwise(parts):
        assert before.end == after.start
    if parts:
        assert parts[-1].end == plan.end_offset
    rows = [placed.row for placed in plan.rows]
    for row, following in pairwise(rows):
        assert row.last_offset + 1 == following.base_offset
    assert plan.log_start_offset <= plan.end_offset <= plan.high_watermark
    assert not any(isinstance(part, BrokerPart) for part in parts)


async def read_everything(moving: MovingWorld, start: int, *, task_bytes: int) -> tuple[list[dict[str, Any]], int]:
    """Plan, and read task by task, as Spark's driver and executors do."""
    plans, loop = plans_of(moving), asyncio.get_running_loop()
    client = cast("TieringClient", DirectClient(plans, loop, check_plan))
    end = moving.world.lake.high_watermark(P0)

    def lost(sentence: str, instead: int) -> int:
        return instead

    _, parts = await asyncio.to_thread(find_places, client, P0.topic_partition, start, end, lost)
    found: list[dict[str, Any]] = []
    context = ReadingContext(
        bootstrap="",
        timeout_s=1,
        isolation=FetchIsolation.HIGH_WATERMARK,
        include_headers=False,
        fail_on_data_loss=False,
        stores=StoreSettings({}),
    )
    for group in divided(parts, max_bytes=task_bytes):
        task = ReadTask(partition=P0, wanted=Wanted(start=group[0].start, end=group[-1].end), parts=group)
        decoder = Decoder(P0.topic, 0, task.wanted, include_headers=False, page_bytes=2000)
        fetcher = PartsFetcher(
            P0,
            cast("LazyStores", moving),
            cast("TopicBrokers", None),
            isolation=FetchIsolation.HIGH_WATERMARK,
            min_timestamp=0,
        )
        async for chunk in TaskReader(task, context, fetcher, client).chunks():
            for page in decoder.feed(chunk.data, row=chunk.row, name=chunk.name):
                found += page.to_pylist()
        for page in decoder.finish():
            found += page.to_pylist()
    return found, end


def expected(world: ConvertingWorld) -> dict[int, tuple[bytes | None, int]]:
    """Value and time of every record that was ever written."""
    data = world.lake.expected(P0, 0)
    return {
        record.offset: (record.value, record.timestamp)
        for position, header in iter_headers(data)
        for record in read_records(data[position : position + header.size])
    }


@pytest.mark.parametrize("seed", range(12))
def test_every_record_once_while_the_log_moves(seed: int) -> None:
    chance = SystemChance(seed)

    async def run() -> None:
        with tempfile.TemporaryDirectory() as directory:
            async with open_converting(Path(directory)) as world:
                moving = MovingWorld(world, await world.broker(DisklessReaderLimits()), chance)
                await moving.write()
                for _ in range(5 + chance.below(25)):
                    await moving.move()
                end = world.lake.high_watermark(P0)
                start = moving.one_of(0, 0, chance.below(end))
                found, end = await read_everything(moving, start, task_bytes=moving.one_of(300, 3000, 1 << 30))
                offsets = [row["offset"] for row in found]
                assert offsets == sorted(set(offsets))
                assert set(offsets) >= set(range(max(start, moving.start), end))
                assert set(offsets) <= set(range(start, end))
                every = expected(world)
                for row in found:
                    moment = round(row["timestamp"].timestamp() * 1000)
                    assert (row["value"], moment) == every[row["offset"]]

    asyncio.run(run())
