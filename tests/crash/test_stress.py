"""Everything at once: pipelined producers of records from 100 bytes to 3 MB, sessions over many partitions, topics and
settings that change under load, clients that leave in the middle of frames, small segments, crashes and restarts.

Afterwards every log must be dense, in order, without loss and without duplicates, and the broker small.
"""

from __future__ import annotations

import asyncio
import os
import struct
from collections import defaultdict
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from strandline.clock import SystemChance
from strandline.records.builder import build_batch
from strandline.records.record import Record
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from strandline.wire.messages.delete_topics import DeleteTopicsRequest
from strandline.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker import BrokerProcess, running_broker
from tests.crash.load import CLOCK, NETWORK_TROUBLE, PRODUCE, RETRIABLE, PipelinedProducer, Tail, judge, linked
from tests.crash.load import read_partition as read

CREATE, DELETE, ALTER = 7, 5, 1
SMALL, MIXED, HUGE = (100, 1000), (100, 2000, 60_000, 300_000, 700_000), (100, 1_000_000, 3_000_000)
SETTINGS = [
    ("flush.messages", ("1", "50", "9223372036854775807")),
    ("flush.ms", ("50", "9223372036854775807")),
    ("preallocate", ("true", "false")),
    ("segment.ms", ("500", "604800000")),
    ("index.interval.bytes", ("100", "4096")),
]


async def call(port: int, api_key: ApiKey, version: int, message: Any) -> Any:
    """One request, tried until a broker answers."""
    while True:
        try:
            async with linked(port) as link:
                return await link.call(api_key, version, message)
        except NETWORK_TROUBLE:
            await CLOCK.sleep(0.05)


async def create(port: int, name: str, partitions: int, **configs: str) -> None:
    entries = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=entries)
    while True:
        [row] = (await call(port, ApiKey.CREATE_TOPICS, CREATE, CreateTopicsRequest(topics=[topic]))).topics
        if row.error_code in (0, ErrorCode.TOPIC_ALREADY_EXISTS):
            return
        # A broker that stops in good order takes no partitions any more.
        assert row.error_code == ErrorCode.INVALID_REPLICATION_FACTOR, row.error_message
        await CLOCK.sleep(0.05)


class Nuisance:
    """What goes on beside the producers and must not disturb them. Each of its methods runs until `is_stopping`."""

    def __init__(self, port: int, chance: SystemChance) -> None:
        self.port, self.chance = port, chance
        self.is_stopping = False
        self.rounds: dict[str, int] = defaultdict(int)

    async def leave_in_the_middle(self) -> None:
        large = struct.pack(">ihhi", 400_000, ApiKey.PRODUCE, PRODUCE, 1)
        beginnings = [
            b"\x00",
            struct.pack(">i", 9_000_000) + bytes(70_000),
            large + bytes(200_000),
            large + b"\xff" * 399_992,
        ]
        while not self.is_stopping:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.write(beginnings[self.chance.below(len(beginnings))])
                await CLOCK.sleep(0.01)
                writer.transport.abort()
                await asyncio.gather(writer.wait_closed(), return_exceptions=True)
            except NETWORK_TROUBLE:
                await CLOCK.sleep(0.05)
            self.rounds["left"] += 1

    async def create_and_delete(self) -> None:
        """A topic goes while large and small records for it are being written."""
        while not self.is_stopping:
            await create(self.port, "fleeting", 2, segment_bytes="1048576")
            try:
                async with linked(self.port) as link:
                    sizes = [100, 300_000, 100, 700_000, 100] * 3
                    for size in sizes:
                        link.send(ApiKey.PRODUCE, PRODUCE, _fleeting(size))
                    request = DeleteTopicsRequest(topic_names=["fleeting"], timeout_ms=10_000)
                    await call(self.port, ApiKey.DELETE_TOPICS, DELETE, request)
                    for _ in sizes:
                        [answer] = (await link.receive()).responses[0].partition_responses
                        assert answer.error_code == 0 or answer.error_code in RETRIABLE, answer.error_message
            except NETWORK_TROUBLE:
                await CLOCK.sleep(0.05)
            self.rounds["deleted"] += 1

    async def change_settings(self) -> None:
        while not self.is_stopping:
            name, values = SETTINGS[self.chance.below(len(SETTINGS))]
            value = values[self.chance.below(len(values))]
            config = AlterableConfig(name=name, config_operation=0, value=value)
            topic = ("mixed", "huge")[self.chance.below(2)]
            resource = AlterConfigsResource(resource_type=2, resource_name=topic, configs=[config])
            request = IncrementalAlterConfigsRequest(resources=[resource])
            [row] = (await call(self.port, ApiKey.INCREMENTAL_ALTER_CONFIGS, ALTER, request)).responses
            assert row.error_code == 0, row.error_message
            self.rounds["altered"] += 1
            await CLOCK.sleep(0.05)


def _fleeting(size: int) -> ProduceRequest:
    records = bytes(build_batch([Record(0, CLOCK.now_ms(), None, b"x" * size)]))
    data = TopicProduceData(name="fleeting", partition_data=[PartitionProduceData(index=0, records=records)])
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data])


def test_nothing_is_lost_doubled_or_reordered_whatever_happens_beside(tmp_path: Path) -> None:
    settings = {"log.segment.delete.delay.ms": "500", "log.retention.check.interval.ms": "500"}
    with running_broker(tmp_path / "data", settings) as broker:
        asyncio.run(_stress(broker))
        assert broker.stop(within=10) == 0
        assert "Traceback" not in broker.log_text


async def _stress(broker: BrokerProcess) -> None:
    port, chance = broker.port, SystemChance(7)
    await create(port, "mixed", 3, segment_bytes="1048576", max_message_bytes="900000")
    await create(port, "huge", 1, segment_bytes="4194304", max_message_bytes="4000000")
    await create(port, "quiet", 100)
    producers = [
        PipelinedProducer(port, "mixed", partition, f"{kind}-{partition}", sizes, in_flight, chance)
        for partition in range(3)
        for kind, sizes, in_flight in (("small", SMALL, 5), ("mixed", MIXED, 5), ("patient", MIXED, 1))
    ]
    producers += [
        PipelinedProducer(port, "huge", 0, "huge", HUGE, 3, chance, timeout_ms=1),
        PipelinedProducer(port, "huge", 0, "tiny", SMALL, 5, chance, timeout_ms=1),
        PipelinedProducer(port, "quiet", 50, "quiet", SMALL, 1, chance),
    ]
    everything = [("mixed", p) for p in range(3)] + [("huge", 0)] + [("quiet", p) for p in range(100)]
    tails = [Tail(port, everything), Tail(port, everything, min_bytes=200_000)]
    nuisance = Nuisance(port, chance)
    async with asyncio.TaskGroup() as tasks:
        works = [producer.run for producer in producers] + [tail.run for tail in tails]
        works += [nuisance.leave_in_the_middle, nuisance.create_and_delete, nuisance.change_settings]
        _start(tasks, works)
        await _more(producers, 2000)
        for end in (broker.kill, broker.stop, broker.kill):
            await asyncio.to_thread(end)
            await asyncio.to_thread(broker.start)
            await _more(producers, 1500)
        nuisance.is_stopping = True
        for producer in producers:
            producer.is_stopping = True
        for tail in tails:
            tail.is_stopping = True
    assert all(tail.records for tail in tails)
    assert set(nuisance.rounds) == {"left", "deleted", "altered"}
    await _judge(producers)
    await asyncio.to_thread(broker.kill)  # recovery must not change anything
    await asyncio.to_thread(broker.start)
    await _judge(producers)
    assert broker.rss_bytes() < 300_000_000
    assert _open_files(broker) == []


def _start(tasks: asyncio.TaskGroup, works: list[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    for work in works:
        tasks.create_task(work())


async def _more(producers: list[PipelinedProducer], count: int) -> None:
    """Return when so many more records have been acknowledged, and some to every producer."""
    before = [len(producer.acknowledged) for producer in producers]
    while True:
        now = [len(producer.acknowledged) for producer in producers]
        if sum(now) >= sum(before) + count and all(n > b for n, b in zip(now, before, strict=True)):
            return
        await CLOCK.sleep(0.05)


async def _judge(producers: list[PipelinedProducer]) -> None:
    by_partition: dict[tuple[str, int], list[PipelinedProducer]] = defaultdict(list)
    for producer in producers:
        by_partition[producer.topic, producer.partition].append(producer)
    for (topic, partition), writers in by_partition.items():
        assert judge(writers, await read(writers[0].port, topic, partition)) == [], f"{topic}-{partition}"


def _open_files(broker: BrokerProcess) -> list[str]:
    """Files that are gone from the disk, but not from the broker."""
    links = []
    for name in os.listdir(f"/proc/{broker.pid}/fd"):
        try:
            links.append(os.readlink(f"/proc/{broker.pid}/fd/{name}"))
        except FileNotFoundError:
            continue
    return [link for link in links if ".log" in link and link.endswith("(deleted)")]
