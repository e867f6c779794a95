"""A broker that does not see in the metadata who the controller is asks the other brokers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from uuid import UUID

import pytest
import pytest_asyncio

from strandline.errors import NotController
from strandline.metadata import BrokerImage, Listener, MetadataImage
from strandline.metadata.broker.controller_client import ControllerClient, ControllerUnreachable
from strandline.metadata.broker.controller_search import EVERY_SECONDS, ControllerSearch
from strandline.testing.clock import VirtualClock
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from strandline.wire.messages.describe_cluster import DescribeClusterResponse
from strandline.wire.registry import Message
from tests.broker import free_port
from tests.metadata.broker.test_active_controller import OtherBroker
from tests.wire.listening import listening_with

CLUSTER_ID = "cluster"
ME = 1


@dataclass
class NamingBroker(OtherBroker):
    """One that names a controller, and is it or not."""

    node_id: int = 0
    names: int = -1
    questions: int = 0

    def answer(self, api_key: ApiKey, message: Message) -> Message | None:
        if api_key is ApiKey.DESCRIBE_CLUSTER:
            self.questions += 1
            return DescribeClusterResponse(cluster_id=self.cluster_id, controller_id=self.names)
        if api_key is ApiKey.BROKER_HEARTBEAT:
            is_it = self.names == self.node_id
            return BrokerHeartbeatResponse(error_code=0 if is_it else ErrorCode.NOT_CONTROLLER, is_fenced=False)
        return super().answer(api_key, message)


class Cut:
    """Broker 1, whose metadata stay as they are, and the brokers 2 to 4. Nothing listens where broker 5 did."""

    def __init__(self) -> None:
        self.others = {number: NamingBroker(CLUSTER_ID, node_id=number) for number in (2, 3, 4)}
        self.image = MetadataImage(cluster_id=CLUSTER_ID, controller_id=5, controller_epoch=7)
        self.clock = VirtualClock()
        self.search = ControllerSearch(ME, self, self.clock, listener="PLAINTEXT")
        self.client = ControllerClient(ME, self, self.search, purpose="test")

    def register(self) -> None:
        ports = {ME: free_port(), 5: free_port()} | {number: other.port for number, other in self.others.items()}
        brokers = {
            number: BrokerImage(
                node_id=number,
                epoch=number,
                incarnation_id=UUID(int=number),
                listeners=(Listener("PLAINTEXT", "127.0.0.1", port),),
                fenced=False,
            )
            for number, port in ports.items()
        }
        self.image = replace(self.image, brokers=brokers)

    def name(self, controller: int, *by: int) -> None:
        for number in by or self.others:
            self.others[number].names = controller

    async def beat(self) -> int:
        answer = await self.client.ask(ApiKey.BROKER_HEARTBEAT, BrokerHeartbeatRequest(), within=20)
        return int(answer.error_code)

    @property
    def questions(self) -> int:
        return sum(other.questions for other in self.others.values())


@pytest_asyncio.fixture
async def cut() -> AsyncIterator[Cut]:
    made = Cut()
    async with AsyncExitStack() as stack:
        for other in made.others.values():
            other.port = await stack.enter_async_context(listening_with(other.serve))
        made.register()
        yield made
        made.client.close()


async def test_the_controller_of_the_metadata_is_asked_first(cut: Cut) -> None:
    cut.image = replace(cut.image, controller_id=3)
    cut.name(2, 2, 4)
    cut.name(3, 3)
    assert await cut.beat() == 0
    assert cut.search.target().node_id == 3


async def test_one_that_cannot_be_reached_is_replaced_by_the_one_that_names_itself(cut: Cut) -> None:
    cut.name(2, 2, 3)
    cut.name(5, 4)  # it has not heard of another one
    with pytest.raises(ControllerUnreachable, match="Broker 5"):
        await cut.beat()
    assert await cut.beat() == 0
    assert cut.search.target().node_id == 2


async def test_one_that_is_it_no_more_is_replaced(cut: Cut) -> None:
    cut.image = replace(cut.image, controller_id=2)
    cut.name(4)
    assert await cut.beat() == ErrorCode.NOT_CONTROLLER
    assert await cut.beat() == 0
    cut.name(3)
    await cut.clock.advance(EVERY_SECONDS)
    assert await cut.beat() == ErrorCode.NOT_CONTROLLER
    assert await cut.beat() == 0
    assert cut.search.target().node_id == 3


async def test_a_broker_that_was_the_controller_finds_its_successor(cut: Cut) -> None:
    cut.image = replace(cut.image, controller_id=ME)
    cut.name(3)
    with pytest.raises(NotController, match="was the last"):
        await cut.beat()
    assert await cut.beat() == 0


async def test_one_that_takes_itself_for_the_controller_wrongly_is_not_asked_again_and_again(cut: Cut) -> None:
    """It is cut off as well."""
    cut.others[2].node_id = -2  # and so refuses heartbeats
    cut.name(2, 2)
    with pytest.raises(ControllerUnreachable):
        await cut.beat()
    assert await cut.beat() == ErrorCode.NOT_CONTROLLER
    cut.name(3, 3, 4)
    await cut.clock.advance(EVERY_SECONDS)
    assert await cut.beat() == ErrorCode.NOT_CONTROLLER
    assert await cut.beat() == 0
    assert cut.search.target().node_id == 3


async def test_it_is_named_by_others_where_it_does_not_say_it_itself(cut: Cut) -> None:
    cut.others[3].node_id = -3
    cut.name(4, 2, 3)
    cut.name(-1, 4)
    with pytest.raises(ControllerUnreachable):
        await cut.beat()
    assert cut.search.target().node_id == 4


async def test_metadata_of_a_later_controller_count_more_than_what_others_said(cut: Cut) -> None:
    cut.name(2)
    with pytest.raises(ControllerUnreachable):
        await cut.beat()
    assert cut.search.target().node_id == 2
    cut.image = replace(cut.image, controller_id=4, controller_epoch=8)
    assert cut.search.target().node_id == 4


async def test_others_are_not_asked_for_each_request_that_fails(cut: Cut) -> None:
    cut.name(5)
    for _ in range(5):
        with pytest.raises(ControllerUnreachable):
            await cut.beat()
    asked = cut.questions
    assert asked == 2 * len(cut.others), "once, and each of them for its cluster and for the controller"
    await cut.clock.advance(EVERY_SECONDS)
    with pytest.raises(ControllerUnreachable):
        await cut.beat()
    assert cut.questions == 2 * asked


async def test_a_broker_of_another_cluster_is_not_believed(cut: Cut) -> None:
    for other in cut.others.values():
        other.cluster_id = "another"
    cut.name(2)
    with pytest.raises(ControllerUnreachable):
        await cut.beat()
    assert cut.search.target().node_id == 5
