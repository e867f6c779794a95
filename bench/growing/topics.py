"""The metadata of so many topics of one partition: a change, a start, the periodic work of the controller.

The parts of it that do no I/O, in this process. Each topic has a setting of its own, as diskless topics have.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
import uuid
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Final, TypeVar

from bench.growing.measuring import Growth, Measured
from strandline.clock import SystemChance, SystemIds
from strandline.config import Settings
from strandline.metadata import ConfigResource, ConfigResourceType, Listener, NewTopic
from strandline.metadata.comparison import compared_in_steps
from strandline.metadata.delta import apply_records
from strandline.metadata.image import EMPTY_IMAGE, MetadataImage
from strandline.metadata.log.snapshot import decode_in_steps, encode_in_steps
from strandline.metadata.plans.election_requests import plan_balance
from strandline.metadata.plans.membership import BrokerState, MembershipPlanner
from strandline.metadata.plans.rules import ConfigRules
from strandline.metadata.plans.topics import TopicPlanner
from strandline.metadata.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from strandline.metadata.topic_map import indexed_topics

T = TypeVar("T")

_CHANGES: Final = 200
# Brokers: one holds nearly all topics, another one holds few.
MOST, FEW = 1, 2
FEW_TOPICS: Final = 10
_RULES: Final = ConfigRules(Settings())


def topic_id(number: int) -> uuid.UUID:
    """Of the topic with this number."""
    return uuid.UUID(int=number + 1)


def records_of(topics: int) -> Iterator[MetadataRecord]:
    """What makes a cluster of two brokers with so many topics."""
    for node_id in (MOST, FEW):
        listener = Listener("PLAINTEXT", "127.0.0.1", 9092 + node_id)
        yield RegisterBrokerRecord(
            node_id=node_id, incarnation_id=uuid.UUID(int=node_id), listeners=(listener,), rack=None, fenced=False
        )
    for number in range(topics):
        name, at, replicas = f"topic.{number}", topic_id(number), (FEW if number < FEW_TOPICS else MOST,)
        yield TopicRecord(name=name, topic_id=at)
        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        yield ConfigRecord(resource=resource, key="retention.ms", value="3600000")
        yield PartitionRecord(topic_id=at, partition=0, replicas=replicas, isr=replicas, leader=replicas[0])


def image_of(topics: int) -> MetadataImage:
    """A cluster of two brokers with so many topics."""
    return apply_records(EMPTY_IMAGE, enumerate(records_of(topics))).new


def change_partition(image: MetadataImage, number: int = 0) -> MetadataImage:
    """Another in-sync set of one partition."""
    record = PartitionChangeRecord(partitions=((topic_id(number), (0,)),), isr=(MOST, FEW))
    return apply_records(image, [(image.offset + 1, record)]).new


def change_setting(image: MetadataImage, number: int = 0) -> MetadataImage:
    """Another setting of one topic."""
    resource = ConfigResource(ConfigResourceType.TOPIC, f"topic.{number}")
    record = ConfigRecord(resource=resource, key="retention.ms", value=str(number))
    return apply_records(image, [(image.offset + 1, record)]).new


def create_topic(image: MetadataImage, name: str = "another.topic") -> MetadataImage:
    """One topic more, as the controller decides on it."""
    planner = TopicPlanner(rules=_RULES, ids=SystemIds(), chance=SystemChance())
    plan = planner.create(image, [NewTopic(name=name, num_partitions=1, replication_factor=1)])
    return apply_records(image, enumerate(plan.records, image.offset + 1)).new


def fence_the_one_with_few(image: MetadataImage) -> MetadataImage:
    """The broker that holds few topics is fenced."""
    planner = MembershipPlanner(_RULES)
    records = planner.change_state(image, image.brokers[FEW], BrokerState.FENCED)
    return apply_records(image, enumerate(records, image.offset + 1)).new


def look_periodically(image: MetadataImage) -> None:
    """What the controller does every few minutes if there is nothing to do."""
    topics = indexed_topics(image)
    assert not plan_balance(image, topics.astray, 1000)
    assert not MembershipPlanner(_RULES).elect_uncleanly(image, topics.leaderless)


CHANGES: Final[dict[str, Callable[[MetadataImage], object]]] = {
    "change a partition": change_partition,
    "change a setting of a topic": change_setting,
    "create a topic": create_topic,
    "fence a broker with ten topics": fence_the_one_with_few,
    "periodic work of the controller": look_periodically,
}


def bytes_of(change: Callable[[MetadataImage], object], image: MetadataImage) -> int:
    """The most memory that the change takes while it is made: a copy of everything shows here, in C as well."""
    change(image)  # whatever is made once
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        change(image)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def _steps(work: Generator[None, None, T]) -> tuple[T, float, float]:
    """The result, CPU seconds of all steps, and of the longest."""
    total = longest = 0.0
    while True:
        began = time.thread_time()
        try:
            next(work)
        except StopIteration as end:
            took = time.thread_time() - began
            return end.value, total + took, max(longest, took)
        took = time.thread_time() - began
        total, longest = total + took, max(longest, took)


def measure(root: Path, size: int) -> Measured:
    """With `size` topics. Collections of garbage are not measured: they are what a broker decides on its own."""
    gc.disable()
    try:
        return _measured(size)
    finally:
        gc.enable()


def _measured(size: int) -> Measured:
    found: dict[Growth, float] = {}
    image = image_of(size)
    for what, change in CHANGES.items():
        change(image)
        began = time.thread_time()
        for _ in range(_CHANGES):
            change(image)
        found[Growth(what, "CPU ms", 0)] = (time.thread_time() - began) / _CHANGES * 1e3
    packed, cpu, longest = _steps(encode_in_steps(image))
    found |= _both("write a snapshot", cpu, longest)
    found[Growth("size of a snapshot", "MB")] = len(packed) / 1e6
    read, cpu, longest = _steps(decode_in_steps(zlib.decompress(packed).decode()))
    found |= _both("read a snapshot", cpu, longest)
    _, cpu, longest = _steps(compared_in_steps(EMPTY_IMAGE, read))
    found |= _both("compare it with what is known", cpu, longest)
    return found


def _both(what: str, cpu: float, longest: float) -> Measured:
    return {Growth(what, "CPU ms"): cpu * 1e3, Growth(f"{what}: longest turn of the loop", "ms", 0): longest * 1e3}
