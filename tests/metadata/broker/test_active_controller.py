"""Requests to the controller on any broker: one that answers, moves, is silent, or is of another cluster."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from uuid import UUID

import pytest

from strandline.clock import SystemClock
from strandline.config import ClusterSettings
from strandline.errors import (
    DuplicateBrokerRegistration,
    InvalidRegistration,
    InvalidRequest,
    InvalidUpdateVersion,
    NotController,
    RequestTimedOut,
    StaleBrokerEpoch,
    StrandlineError,
)
from strandline.metadata import (
    ActiveController,
    BrokerHeartbeat,
    BrokerRegistration,
    Controller,
    ControllerUnreachable,
    HeartbeatReply,
    IsrChange,
    IsrMember,
    Listener,
    NewTopic,
    PartitionImage,
    isr_changes_of,
)
from strandline.metadata.broker.wire_requests import (
    heartbeat_of,
    heartbeat_request,
    registration_of,
    registration_request,
)
from strandline.wire.api import SERVED_APIS, ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.allocate_producer_ids import AllocateProducerIdsResponse
from strandline.wire.messages.alter_partition import (
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from strandline.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from strandline.wire.messages.broker_heartbeat import BrokerHeartbeatResponse
from strandline.wire.messages.broker_registration import BrokerRegistrationResponse
from strandline.wire.messages.describe_cluster import DescribeClusterResponse
from strandline.wire.registry import Message, decode_request, encode_response
from tests.metadata.cluster import Cluster, open_cluster, registration
from tests.waiting import until
from tests.wire.listening import listening_with

ALIVE = BrokerHeartbeat(node_id=1, broker_epoch=3, current_metadata_offset=9)
WITHIN_SECONDS = 20.0


@dataclass
class OtherBroker:
    """A listener that answers as a broker with the controller would. `None` as an answer: it hangs up."""

    cluster_id: str
    port: int = 0
    answers: dict[ApiKey, list[Message | None]] = field(default_factory=dict)
    heard: list[tuple[ApiKey, Message]] = field(default_factory=list)
    is_silent: bool = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            (length,) = struct.unpack(">i", await reader.readexactly(4))
            header, message = decode_request(memoryview(await reader.readexactly(length)))
            answer = self.answer(ApiKey(header.api_key), message)
            if answer is None:
                return
            if not self.is_silent:
                frame = encode_response(ApiKey(header.api_key), header.api_version, header.correlation_id, answer)
                writer.write(struct.pack(">i", len(frame)) + frame)

    def answer(self, api_key: ApiKey, message: Message) -> Message | None:
        if api_key is ApiKey.API_VERSIONS:
            rows = [ApiVersion(api_key=key, min_version=v.min, max_version=v.max) for key, v in SERVED_APIS.items()]
            return ApiVersionsResponse(api_keys=rows)
        if api_key is ApiKey.DESCRIBE_CLUSTER:
            return DescribeClusterResponse(cluster_id=self.cluster_id)
        self.heard.append((api_key, message))
        given = self.answers[api_key]
        return given.pop(0) if len(given) > 1 else given[0]


@asynccontextmanager
async def listening(cluster: Cluster, cluster_id: str | None = None) -> AsyncIterator[OtherBroker]:
    """Broker 2, registered in the metadata with this listener's address."""
    other = OtherBroker(cluster_id=cluster.image.cluster_id if cluster_id is None else cluster_id)
    async with listening_with(other.serve) as other.port:
        await cluster.controller.register_broker(
            replace(registration(2), listeners=(Listener("PLAINTEXT", "127.0.0.1", other.port),))
        )
        yield other


async def move_controller(cluster: Cluster, node_id: int) -> None:
    """The lease is another broker's from now on."""
    await cluster.controller.leadership.resign()
    assert await cluster.store.take_lease(node_id, may_take=lambda _: True, duration_ms=None) is not None
    await cluster.loader.catch_up()


def active(cluster: Cluster, *, session_ms: int = 9000) -> ActiveController:
    settings = ClusterSettings(broker_session_timeout_ms=session_ms)
    return ActiveController(cluster.controller, cluster.loader, settings, SystemClock(), listener="PLAINTEXT")


async def test_while_the_lease_is_ours_nothing_is_sent() -> None:
    async with open_cluster(brokers=()) as cluster, listening(cluster) as other, active(cluster).running() as asked:
        epoch = await asked.register_broker(registration(1))
        assert epoch == cluster.image.brokers[1].epoch
        beat = BrokerHeartbeat(node_id=1, broker_epoch=epoch, current_metadata_offset=cluster.image.offset)
        assert not (await asked.broker_heartbeat(beat)).is_fenced
        assert len(await asked.allocate_producer_ids(1, epoch)) == 1000
        (topic,) = await asked.create_topics([NewTopic(name="t")])
        assert not isinstance(topic, StrandlineError)
        assert other.heard == []


async def test_requests_go_to_the_broker_that_has_the_lease() -> None:
    async with open_cluster() as cluster, listening(cluster) as other, active(cluster).running() as asked:
        other.answers = {
            ApiKey.BROKER_REGISTRATION: [BrokerRegistrationResponse(broker_epoch=17)],
            ApiKey.BROKER_HEARTBEAT: [BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False)],
            ApiKey.ALLOCATE_PRODUCER_IDS: [AllocateProducerIdsResponse(producer_id_start=5000, producer_id_len=1000)],
        }
        await move_controller(cluster, 2)
        assert not asked.is_local
        assert await asked.register_broker(registration(1, rack="a")) == 17
        expected = HeartbeatReply(is_caught_up=True, is_fenced=False, should_shut_down=False)
        assert await asked.broker_heartbeat(ALIVE) == expected
        assert await asked.allocate_producer_ids(1, 3) == range(5000, 6000)
        (_, registered), (_, beat), (_, wanted) = other.heard
        assert registration_of(registered) == registration(1, rack="a")
        assert heartbeat_of(beat) == ALIVE
        assert (wanted.broker_id, wanted.broker_epoch) == (1, 3)


async def test_changes_of_in_sync_sets_go_there_too_and_are_answered_in_their_order() -> None:
    async with open_cluster(brokers=(1, 3)) as cluster, listening(cluster) as other, active(cluster).running() as asked:
        topic = await cluster.create("t", [[1, 3], [1, 3], [3, 1]])
        epoch = cluster.image.brokers[1].epoch
        changes = [
            IsrChange(
                topic_id=topic.topic_id, partition=number, leader_epoch=0, partition_epoch=0, isr=(IsrMember(1, epoch),)
            )
            for number in (2, 0, 1)
        ]
        here = await asked.alter_partition(1, epoch, changes)  # this broker has the lease
        assert [type(one) for one in here] == [InvalidRequest, PartitionImage, PartitionImage]
        await move_controller(cluster, 2)
        done = ResponsePartitionData(partition_index=0, leader_id=1, leader_epoch=4, isr=[1], partition_epoch=9)
        late = ResponsePartitionData(partition_index=2, error_code=ErrorCode.INVALID_UPDATE_VERSION)
        answer = AlterPartitionResponse(topics=[ResponseTopicData(topic_id=topic.topic_id, partitions=[done, late])])
        other.answers = {ApiKey.ALTER_PARTITION: [answer]}
        third, first, second = await asked.alter_partition(1, epoch, changes)
        assert type(third) is InvalidUpdateVersion
        assert isinstance(first, PartitionImage)
        assert (first.replicas, first.isr, first.leader_epoch, first.partition_epoch) == ((1, 3), (1,), 4, 9)
        assert type(second) is RequestTimedOut, "it was not answered for: ask again"
        ((_, sent),) = other.heard
        assert isr_changes_of(sent) == [changes[0], changes[1], changes[2]]


async def test_a_refusal_of_all_changes_is_raised() -> None:
    async with open_cluster() as cluster, listening(cluster) as other, active(cluster).running() as asked:
        other.answers = {ApiKey.ALTER_PARTITION: [AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)]}
        await move_controller(cluster, 2)
        with pytest.raises(StaleBrokerEpoch):
            await asked.alter_partition(1, 3, [])


@pytest.mark.parametrize("error", [DuplicateBrokerRegistration, StaleBrokerEpoch, NotController])
async def test_errors_of_the_controller_arrive_as_they_are(error: type[StrandlineError]) -> None:
    code = ErrorCode[
        {
            DuplicateBrokerRegistration: "DUPLICATE_BROKER_REGISTRATION",
            StaleBrokerEpoch: "STALE_BROKER_EPOCH",
            NotController: "NOT_CONTROLLER",
        }[error]
    ]
    async with open_cluster() as cluster, listening(cluster) as other, active(cluster).running() as asked:
        other.answers = {ApiKey.BROKER_HEARTBEAT: [BrokerHeartbeatResponse(error_code=code)]}
        await move_controller(cluster, 2)
        with pytest.raises(error):
            await asked.broker_heartbeat(ALIVE)


async def test_a_lost_connection_is_made_anew_and_the_request_sent_again() -> None:
    async with open_cluster() as cluster, listening(cluster) as other, active(cluster).running() as asked:
        block = AllocateProducerIdsResponse(producer_id_start=1, producer_id_len=1)
        moved = AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
        other.answers = {ApiKey.ALLOCATE_PRODUCER_IDS: [None, moved, None, block]}
        await move_controller(cluster, 2)
        async with asyncio.timeout(WITHIN_SECONDS):
            assert await asked.allocate_producer_ids(1, 3) == range(1, 2)
        assert len(other.heard) == 4


async def test_a_controller_that_comes_home_while_one_waits_is_asked_at_home() -> None:
    async with open_cluster() as cluster, listening(cluster) as other, active(cluster).running() as asked:
        other.answers = {ApiKey.ALLOCATE_PRODUCER_IDS: [None]}
        await move_controller(cluster, 2)
        waiting = asyncio.create_task(asked.allocate_producer_ids(1, cluster.image.brokers[1].epoch))
        async with asyncio.timeout(WITHIN_SECONDS):
            while not other.heard:
                await SystemClock().sleep(0.01)
            lease = await cluster.store.lease()
            assert lease.node_id == 2
            assert await take_back(cluster.controller)
            assert len(await waiting) == 1000


async def take_back(controller: Controller) -> bool:
    """Take the lease when the other broker's lease has expired."""
    async with controller.leadership._store.sql.transaction() as tx:
        await tx.execute("UPDATE controller_lease SET node_id = NULL")
    return await controller.activate()


async def test_a_silent_controller_is_given_up_in_time_and_its_connection_closed() -> None:
    async with (
        open_cluster() as cluster,
        listening(cluster) as other,
        active(cluster, session_ms=3000).running() as asked,
    ):
        other.answers = {ApiKey.BROKER_HEARTBEAT: [BrokerHeartbeatResponse(is_fenced=False)]}
        await move_controller(cluster, 2)
        other.is_silent = True
        with pytest.raises(ControllerUnreachable, match=rf"Broker 2 \(127.0.0.1:{other.port}\) did not answer"):
            await asked.broker_heartbeat(ALIVE)
        other.is_silent = False
        assert not (await asked.broker_heartbeat(ALIVE)).is_fenced


async def test_a_silent_controller_is_not_waited_for_when_there_is_another_one() -> None:
    async with (
        open_cluster() as cluster,
        listening(cluster) as other,
        active(cluster, session_ms=3_600_000).running() as asked,
    ):
        other.answers = {ApiKey.BROKER_HEARTBEAT: [BrokerHeartbeatResponse(is_fenced=False)]}
        await move_controller(cluster, 2)
        assert not (await asked.broker_heartbeat(ALIVE)).is_fenced
        other.is_silent = True
        waiting = asyncio.create_task(asked.broker_heartbeat(ALIVE))
        await until(lambda: len(other.heard) == 2, "the heartbeat")
        assert await cluster.store.take_lease(7, may_take=lambda _: True, duration_ms=None) is not None
        await cluster.loader.catch_up()
        with pytest.raises(ControllerUnreachable):
            await asyncio.wait_for(waiting, 20)


async def test_a_broker_of_another_cluster_at_the_old_address_is_not_believed() -> None:
    async with open_cluster() as cluster, listening(cluster, "another") as other, active(cluster).running() as asked:
        await move_controller(cluster, 2)
        with pytest.raises(ControllerUnreachable, match="another cluster"):
            await asked.broker_heartbeat(ALIVE)
        assert other.heard == []


async def test_a_controller_that_has_not_registered_cannot_be_asked_yet() -> None:
    async with open_cluster() as cluster, active(cluster).running() as asked:
        await move_controller(cluster, 7)
        with pytest.raises(NotController, match="broker 7"):
            await asked.broker_heartbeat(ALIVE)


async def test_a_broker_that_lost_the_lease_does_not_ask_itself_while_the_lease_is_free() -> None:
    async with open_cluster() as cluster, active(cluster).running() as asked:
        await cluster.controller.leadership.resign()
        with pytest.raises(NotController, match="is no longer"):
            await asked.broker_heartbeat(ALIVE)


def test_what_is_sent_is_what_arrives() -> None:
    broker = BrokerRegistration(
        node_id=4,
        incarnation_id=registration(4).incarnation_id,
        listeners=(Listener("A", "a", 1), Listener("B", "b", 2, "SASL_SSL")),
        cluster_id="c",
        rack=None,
        previous_broker_epoch=17,
        log_dirs=(UUID(int=1000), UUID(int=1001)),
    )
    assert registration_of(registration_request(broker)) == broker
    assert heartbeat_of(heartbeat_request(ALIVE)) == ALIVE


def test_registrations_that_no_broker_can_have_are_refused() -> None:
    for listeners in ((), (Listener("A", "a", 1), Listener("A", "b", 2))):
        with pytest.raises(InvalidRegistration):
            registration_of(registration_request(replace(registration(1), listeners=listeners)))
    for log_dirs in ((UUID(int=99),), (UUID(int=1000), UUID(int=1000))):
        with pytest.raises(InvalidRegistration, match="log directories"):
            registration_of(registration_request(replace(registration(1), log_dirs=log_dirs)))
    strange = registration_request(registration(1))
    strange.listeners[0].security_protocol = 9
    with pytest.raises(InvalidRegistration, match="9"):
        registration_of(strange)
