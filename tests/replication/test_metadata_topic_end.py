"""The end of a partition of remote log metadata, as long as its leader does not know how far it is committed.

After all brokers were killed, a leader has its high watermark from a checkpoint that is seconds old. If the partition
counted as read up to there, the newest segments would be unknown, the log would seem to begin behind them, and
expiration would delete them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from uuid import UUID

import pytest
import pytest_asyncio

from strandline.coordinators.runtime import InternalTopic
from strandline.metadata import Listener, MetadataDelta, MetadataImage
from strandline.metadata.records import RegisterBrokerRecord
from strandline.model import REMOTE_LOG_METADATA_TOPIC
from strandline.records import Codec
from strandline.remote.topic_based.topic import MetadataTopicUnavailable
from strandline.replication.remote_metadata import ReplicatedMetadataTopic
from strandline.testing.clock import VirtualClock
from tests.coordinators.replicated_topic import BOTH, HERE, ReplicatedTopic, open_replicated_topic
from tests.waiting import until
from tests.wire.listening import listening_with

TOPIC = InternalTopic(name=REMOTE_LOG_METADATA_TOPIC, partitions=1, codec=Codec.NONE, load_buffer_bytes=1000)


class Feed:
    """`ImageFeed` of the topic."""

    def __init__(self, topic: ReplicatedTopic) -> None:
        self._topic = topic
        self._subscribers: list[Callable[[MetadataDelta, MetadataImage], None]] = []

    @property
    def image(self) -> MetadataImage:
        return self._topic.image

    def subscribe(self, subscriber: Callable[[MetadataDelta, MetadataImage], None]) -> Callable[[], None]:
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def tell(self) -> None:
        """Of the last change."""
        for subscriber in self._subscribers:
            subscriber(self._topic.delta, self.image)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1_000_000)


@pytest_asyncio.fixture
async def topic(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[ReplicatedTopic]:
    with open_replicated_topic(tmp_path, TOPIC, clock) as made:
        yield made


def metadata(topic: ReplicatedTopic, clock: VirtualClock) -> ReplicatedMetadataTopic:
    return ReplicatedMetadataTopic(topic.replicas, Feed(topic), node_id=HERE, listener="PLAINTEXT", clock=clock)


async def test_the_end_is_known_when_everything_in_the_log_is_replicated(
    topic: ReplicatedTopic, clock: VirtualClock
) -> None:
    topic.let_go()
    port = metadata(topic, clock)
    await port.append(0, b"one")
    topic.hold()
    late = asyncio.create_task(port.append(0, b"two"))
    asking = asyncio.create_task(port.end_offset(0))
    await until(lambda: topic.waiting == 2)
    assert not asking.done()
    topic.let_go()
    assert await asking == 2
    assert await late == 1


async def test_the_end_is_not_known_if_another_broker_leads_meanwhile(
    topic: ReplicatedTopic, clock: VirtualClock
) -> None:
    topic.let_go()
    port = metadata(topic, clock)
    topic.hold()
    late = asyncio.create_task(port.append(0, b"one"))
    asking = asyncio.create_task(port.end_offset(0))
    await until(lambda: topic.waiting == 2)
    topic.lose()
    for waiting in (late, asking):
        with pytest.raises(MetadataTopicUnavailable):
            await waiting


async def test_an_elected_leader_does_not_take_its_checkpoint_for_the_end(
    topic: ReplicatedTopic, clock: VirtualClock
) -> None:
    topic.let_go()
    port = metadata(topic, clock)
    for value in (b"one", b"two"):
        await port.append(0, value)
    topic._change(isr=BOTH, leader=2)
    topic.partition.log.offsets.high_watermark = 1  # as a checkpoint has it that is older than the last append
    topic.lead(isr=BOTH)
    asking = asyncio.create_task(port.end_offset(0))
    await until(lambda: topic.waiting == 1)
    assert not asking.done()
    topic.let_go()
    assert await asking == 2


async def test_a_leader_that_hangs_is_not_waited_for_when_another_one_leads(
    topic: ReplicatedTopic, clock: VirtualClock
) -> None:
    asked, is_over = asyncio.Event(), asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        asked.set()
        await is_over.wait()

    async with listening_with(hang) as port:
        listeners = (Listener("PLAINTEXT", "127.0.0.1", port),)
        topic.apply(RegisterBrokerRecord(node_id=2, incarnation_id=UUID(int=1), listeners=listeners))
        topic.lose()
        feed = Feed(topic)
        found = ReplicatedMetadataTopic(topic.replicas, feed, node_id=HERE, listener="PLAINTEXT", clock=clock)
        asking = asyncio.create_task(found.end_offset(0))
        await asked.wait()
        topic.lead()
        feed.tell()
        with pytest.raises(MetadataTopicUnavailable, match="before it was given up"):
            await asking
        assert await found.end_offset(0) == 0
        await found.close()
        is_over.set()
