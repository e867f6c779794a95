"""Handlers that wait for the controller: several at once, a controller that fails, a client that goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

import pytest

from strandline.config import Settings
from strandline.errors import (
    CoordinatorLoadInProgress,
    InvalidReplicationFactor,
    InvalidTopic,
    KafkaStorageError,
    NotController,
    RequestTimedOut,
    StaleBrokerEpoch,
    StrandlineError,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from strandline.metadata import EMPTY_IMAGE, ControllerUnreachable, MetadataImage, NewTopic, TopicImage, wanted_topic
from strandline.model import (
    GROUP_METADATA_TOPIC,
    REMOTE_LOG_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from strandline.server.handlers.producers import ProducerIds
from strandline.server.handlers.topics.auto_creation import TopicAutoCreator
from tests.server.handlers.serving import AllServed


class Images:
    def __init__(self) -> None:
        self.image = EMPTY_IMAGE


class SlowController:
    """Creates topics, and gives ids, when the test lets it."""

    def __init__(self, images: Images) -> None:
        self.images = images
        self.is_asked = asyncio.Event()
        self.is_open = asyncio.Event()
        self.asked: list[list[str]] = []
        self.failure: StrandlineError | None = None
        self.refusals: dict[str, StrandlineError] = {}
        self.next_id = 0

    async def _turn(self) -> None:
        self.is_asked.set()
        await self.is_open.wait()

    async def create_topics(self, topics: Sequence[NewTopic]) -> list[TopicImage | StrandlineError]:
        self.asked.append([topic.name for topic in topics])
        await self._turn()
        if self.failure is not None:
            raise self.failure
        made = [self.refusals.get(topic.name) or TopicImage(topic.name, UUID(int=1), ()) for topic in topics]
        created = {topic.name: topic for topic in made if isinstance(topic, TopicImage)}
        self.images.image = MetadataImage(topics={**self.images.image.topics, **created})
        return made

    async def allocate_producer_ids(self, node_id: int, broker_epoch: int) -> range:
        await self._turn()
        if self.failure is not None:
            raise self.failure
        assert (node_id, broker_epoch) == (1, 7)
        self.next_id += 10
        return range(self.next_id - 10, self.next_id)


@pytest.fixture
def controller() -> SlowController:
    return SlowController(Images())


@pytest.fixture
def creator(controller: SlowController) -> TopicAutoCreator:
    return TopicAutoCreator(controller.images, controller, Settings, AllServed())


async def test_clients_that_want_the_same_topic_share_its_creation(
    creator: TopicAutoCreator, controller: SlowController
) -> None:
    waiting = [asyncio.create_task(creator.create(["a", "b"])) for _ in range(5)]
    await controller.is_asked.wait()
    controller.is_open.set()
    assert await asyncio.gather(*waiting) == [{}] * 5
    assert controller.asked == [["a", "b"]]


async def test_a_client_that_goes_away_leaves_the_way_free(
    creator: TopicAutoCreator, controller: SlowController
) -> None:
    first = asyncio.create_task(creator.create(["a"]))
    second = asyncio.create_task(creator.create(["a"]))
    await controller.is_asked.wait()
    first.cancel()
    controller.is_open.set()
    assert await second == {}
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_each_topic_has_its_own_reason(creator: TopicAutoCreator, controller: SlowController) -> None:
    controller.is_open.set()
    controller.refusals = {"b": InvalidReplicationFactor("too many"), "c": TopicAlreadyExists("made by another broker")}
    failures = await creator.create(["a", "b", "c", "not a name"])
    assert {name: type(error) for name, error in failures.items()} == {
        "b": InvalidReplicationFactor,
        "not a name": InvalidTopic,
    }
    assert controller.asked == [["a", "b", "c"]]


async def test_a_controller_that_fails_fails_all_topics(creator: TopicAutoCreator, controller: SlowController) -> None:
    controller.is_open.set()
    controller.failure = KafkaStorageError("the database is full")
    assert {name: type(error) for name, error in (await creator.create(["a", "b"])).items()} == {
        "a": KafkaStorageError,
        "b": KafkaStorageError,
    }


@pytest.mark.parametrize("failure", [NotController("nobody is"), ControllerUnreachable("it is asleep")])
async def test_without_a_controller_a_topic_is_one_that_clients_wait_for(
    creator: TopicAutoCreator, controller: SlowController, failure: StrandlineError
) -> None:
    controller.is_open.set()
    controller.failure = failure
    (error,) = (await creator.create(["a"])).values()
    assert isinstance(error, UnknownTopicOrPartition)


def test_the_brokers_own_topics_have_their_own_settings_and_fit_a_small_cluster() -> None:
    for name, partitions in ((GROUP_METADATA_TOPIC, 50), (TRANSACTION_STATE_TOPIC, 50)):
        topic = wanted_topic(name, Settings(), EMPTY_IMAGE)
        assert (topic.num_partitions, topic.replication_factor) == (partitions, 1)
        assert topic.configs["cleanup.policy"] == "compact"
    remote = wanted_topic(REMOTE_LOG_METADATA_TOPIC, Settings(), EMPTY_IMAGE)
    assert (remote.num_partitions, remote.replication_factor) == (50, 1)
    assert remote.configs == {
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "flush.messages": "1",
    }
    shares = wanted_topic(SHARE_GROUP_STATE_TOPIC, Settings(), EMPTY_IMAGE)
    assert (shares.num_partitions, shares.replication_factor) == (50, 1)
    assert shares.configs == {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "1",
        "retention.ms": "-1",
        "segment.bytes": "104857600",
    }
    assert wanted_topic("a", Settings(), EMPTY_IMAGE) == NewTopic(name="a")


async def test_producers_that_arrive_together_get_different_ids(controller: SlowController) -> None:
    ids = ProducerIds(1, lambda: 7, controller)
    waiting = [asyncio.create_task(ids.next()) for _ in range(25)]
    await controller.is_asked.wait()
    controller.is_open.set()
    assert sorted(await asyncio.gather(*waiting)) == list(range(25))


async def test_a_producer_that_goes_away_takes_no_block_along(controller: SlowController) -> None:
    ids = ProducerIds(1, lambda: 7, controller)
    first, second = asyncio.create_task(ids.next()), asyncio.create_task(ids.next())
    await controller.is_asked.wait()
    first.cancel()
    controller.is_open.set()
    assert await second == 0


@pytest.mark.parametrize("failure", [RequestTimedOut, NotController, StaleBrokerEpoch, KafkaStorageError])
async def test_no_ids_while_there_is_no_controller(controller: SlowController, failure: type[StrandlineError]) -> None:
    """Producers ask again, also those whose EndTxn needs an id: any other error would be the end of them."""
    controller.is_open.set()
    ids = ProducerIds(1, lambda: 7, controller)
    controller.failure = failure("nobody answers")
    with pytest.raises(CoordinatorLoadInProgress, match="nobody answers"):
        await ids.next()
    controller.failure = None
    assert await ids.next() == 0
