"""A broker with so many partitions, in topics of 100."""

from __future__ import annotations

import resource
import time
from typing import Final
from uuid import UUID

from bench.asking import Asker, FetchSession, fetch_request, framed, produce_request, served
from bench.growing.measuring import Growth, Measured, costs, cpu_seconds, each, settle
from bench.systems import StrandlineBroker
from strandline.wire.api import ApiKey
from strandline.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.messages.fetch import FetchRequest
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

_PER_TOPIC: Final = 100
_IDLE_SECONDS: Final = 5.0
_TOPICS_AT_ONCE: Final = 10

_CREATE = Growth("create all partitions", "CPU ms")
_MEMORY = Growth("memory for all partitions", "MB")
_START = Growth("start the broker", "CPU ms")
_STOP = Growth("stop the broker", "CPU ms")
_IDLE = Growth("at rest, one second", "CPU ms")
_METADATA = Growth("Metadata of all topics", "CPU ms")
_METADATA_ONE = Growth("Metadata of one topic", "CPU ms", 0)
_PRODUCE = Growth("Produce to one partition", "CPU ms", 0)
_FULL = Growth("Fetch at the tail of all partitions, without a session", "CPU ms")
_AGAIN = Growth("the same in a session, nothing new", "CPU ms", 0)
_ONE_NEW = Growth("the same in a session, one new record", "CPU ms", 0)
_DELETE = Growth("delete all partitions", "CPU ms")


def measure(broker: StrandlineBroker, size: int) -> Measured:
    """With `size` partitions; the broker has not been started before."""
    found: dict[Growth, float] = {}
    broker.start()
    topics = {f"many-{number:03}": min(_PER_TOPIC, size) for number in range(max(size // _PER_TOPIC, 1))}
    with Asker(_port(broker)) as asker:
        with costs(broker.process) as cost:
            _create(asker, topics)
            ids = [_when_served(asker, name, partitions) for name, partitions in topics.items()]
        found[_CREATE] = cost.cpu * 1e3
        found[_MEMORY] = cost.memory / 1e6
        found |= _requests(broker, asker, [*topics], ids, size)
    found |= _restart(broker, size)
    with Asker(_port(broker)) as asker, costs(broker.process) as cost:
        names = [DeleteTopicState(name=name) for name in topics]
        answer = asker.ask(ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topics=names, timeout_ms=60_000))
        served(max(one.error_code for one in answer.responses), "DeleteTopics")
    found[_DELETE] = cost.cpu * 1e3
    broker.stop()
    return found


def _port(broker: StrandlineBroker) -> int:
    return int(broker.bootstrap.rpartition(":")[2])


def _create(asker: Asker, topics: dict[str, int]) -> None:
    wanted = [CreatableTopic(name=name, num_partitions=n, replication_factor=1) for name, n in topics.items()]
    for at in range(0, len(wanted), _TOPICS_AT_ONCE):
        request = CreateTopicsRequest(topics=wanted[at : at + _TOPICS_AT_ONCE], timeout_ms=60_000)
        answer = asker.ask(ApiKey.CREATE_TOPICS, request)
        served(max(one.error_code for one in answer.topics), "CreateTopics")


def _when_served(asker: Asker, name: str, partitions: int) -> UUID:
    asker.wait_served(name, partitions)
    return asker.topic_id(name)


def _requests(broker: StrandlineBroker, asker: Asker, names: list[str], ids: list[UUID], size: int) -> Measured:
    process, per_topic = broker.process, size // len(ids)
    every = framed(ApiKey.METADATA, MetadataRequest(topics=None))
    one = framed(ApiKey.METADATA, MetadataRequest(topics=[MetadataRequestTopic(name=names[-1])]))
    record = framed(ApiKey.PRODUCE, produce_request(names[-1], partition=1))
    parts = [fetch_request(topic_id, per_topic) for topic_id in ids]
    full = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=50 << 20, topics=[p.topics[0] for p in parts])
    full_frame = framed(ApiKey.FETCH, full)
    found = {
        _METADATA: each(process, lambda: asker.exchange(every)) * 1e3,
        _METADATA_ONE: each(process, lambda: asker.exchange(one)) * 1e3,
        _FULL: each(process, lambda: asker.exchange(full_frame)) * 1e3,
    }
    with Asker(_port(broker)) as watcher:
        session = FetchSession(watcher, full)
        found[_AGAIN] = each(process, session.again) * 1e3

        def new_record() -> None:
            asker.exchange(record)
            session.next_record(ids[-1], 1)

        both = each(process, new_record)
    alone = each(process, lambda: asker.exchange(record))
    found[_PRODUCE] = alone * 1e3
    found[_ONE_NEW] = (both - alone) * 1e3
    return found


def _restart(broker: StrandlineBroker, size: int) -> Measured:
    settle(broker.process)
    children, before = _cpu_of_children(), cpu_seconds(broker.process.pid)
    broker.stop()
    stopped = _cpu_of_children() - children
    broker.start(led_partitions=size)
    settle(broker.process)
    started = cpu_seconds(broker.process.pid)
    time.sleep(_IDLE_SECONDS)
    idle = (cpu_seconds(broker.process.pid) - started) / _IDLE_SECONDS
    return {_STOP: (stopped - before) * 1e3, _START: started * 1e3, _IDLE: idle * 1e3}


def _cpu_of_children() -> float:
    """Of processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
