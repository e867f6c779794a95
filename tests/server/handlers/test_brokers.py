"""What brokers ask of the controller, and requests in envelopes, on a real broker that is the controller."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from ipaddress import ip_address

import pytest

from strandline.wire.api import API_VERSIONS, BROKER_SOFTWARE, CONTROLLER_APIS, KNOWN_APIS, ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages import assign_replicas_to_dirs as directories
from strandline.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from strandline.wire.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from strandline.wire.messages.api_versions import ApiVersionsRequest
from strandline.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from strandline.wire.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from strandline.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.messages.describe_cluster import DescribeClusterRequest
from strandline.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from strandline.wire.messages.metadata import MetadataRequest
from strandline.wire.principal import encode_principal
from strandline.wire.registry import decode_response, encode_request
from tests.broker import TIERS, Broker, broker_of_tier

GUEST = 77  # a broker that exists only in these tests
HERE = ip_address("127.0.0.1").packed


@pytest.fixture(scope="module", params=sorted(TIERS))
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Its store is one that guests could use, too: beside them it serves no diskless topics from a store of its own."""
    directory = tmp_path_factory.mktemp("broker")
    shared = {"strandline.objects.url": (directory / "objects").as_uri()}
    with broker_of_tier(request.param, directory / "data", shared) as running:
        yield running


@pytest.fixture
def cluster_id(client: Client) -> str:
    return str(client.request(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest()).cluster_id)


def registration(cluster_id: str, node_id: int = GUEST) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=node_id,
        cluster_id=cluster_id,
        incarnation_id=uuid.UUID(int=node_id),
        listeners=[Listener(name="PLAINTEXT", host="nowhere", port=1)],
        rack=None,
        features=[Feature(name="metadata.version", min_supported_version=22, max_supported_version=23)],
    )


@pytest.mark.parametrize("version", range(CONTROLLER_APIS[ApiKey.BROKER_REGISTRATION].max + 1))
def test_a_broker_registers_lives_and_leaves(client: Client, cluster_id: str, version: int) -> None:
    node_id = GUEST + version
    answer = client.request(ApiKey.BROKER_REGISTRATION, registration(cluster_id, node_id), version=version)
    assert answer.error_code == ErrorCode.NONE
    epoch = answer.broker_epoch
    for beat_version in range(CONTROLLER_APIS[ApiKey.BROKER_HEARTBEAT].max + 1):
        alive = BrokerHeartbeatRequest(broker_id=node_id, broker_epoch=epoch, current_metadata_offset=epoch)
        beat = client.request(ApiKey.BROKER_HEARTBEAT, alive, version=beat_version)
        assert (beat.error_code, beat.is_caught_up, beat.is_fenced) == (ErrorCode.NONE, True, False)
    block = client.request(
        ApiKey.ALLOCATE_PRODUCER_IDS, AllocateProducerIdsRequest(broker_id=node_id, broker_epoch=epoch), version=0
    )
    assert (block.error_code, block.producer_id_len) == (ErrorCode.NONE, 1000)
    leaving = BrokerHeartbeatRequest(
        broker_id=node_id, broker_epoch=epoch, current_metadata_offset=epoch, want_fence=True, want_shut_down=True
    )
    assert client.request(ApiKey.BROKER_HEARTBEAT, leaving, version=0).should_shut_down


def test_brokers_that_may_not_join_hear_why(client: Client, cluster_id: str) -> None:
    elsewhere = registration("another-cluster")
    without = registration(cluster_id)
    without.listeners = []
    from_zookeeper = registration(cluster_id)
    from_zookeeper.is_migrating_zk_broker = True
    too_old = registration(cluster_id)
    too_old.features = []
    reserved = registration(cluster_id)
    reserved.log_dirs = [uuid.UUID(int=1)]
    codes = [
        ErrorCode(client.request(ApiKey.BROKER_REGISTRATION, request, version=4).error_code)
        for request in (elsewhere, without, from_zookeeper, too_old, reserved)
    ]
    assert codes == [
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.INVALID_REGISTRATION,
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_REGISTRATION,
    ]


@pytest.mark.parametrize("version", [2, 3])
def test_a_leader_changes_an_in_sync_set(client: Client, new_name: Callable[[], str], version: int) -> None:
    """Every refusal is in its own place, and the others are carried out."""
    name = new_name()
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    topic_id = client.request(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=[topic])).topics[0].topic_id
    node_id = client.request(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest()).brokers[0].broker_id
    epoch = registered_epoch(client, node_id)

    def asked(number: int, *, leader_epoch: int = 0, state: int = 0) -> RequestPartitionData:
        return RequestPartitionData(
            partition_index=number,
            leader_epoch=leader_epoch,
            new_isr=[node_id],
            new_isr_with_epochs=[BrokerState(broker_id=node_id, broker_epoch=epoch)],
            leader_recovery_state=state,
        )

    request = AlterPartitionRequest(
        broker_id=node_id,
        broker_epoch=epoch,
        topics=[
            RequestTopicData(topic_id=topic_id, partitions=[asked(0), asked(1)]),
            RequestTopicData(topic_id=uuid.UUID(int=4711), partitions=[asked(0)]),
        ],
    )
    answer = client.request(ApiKey.ALTER_PARTITION, request, version=version)
    assert answer.error_code == ErrorCode.NONE
    (done, missing), (unknown,) = (one.partitions for one in answer.topics)
    assert (done.error_code, done.leader_id, done.leader_epoch, done.isr) == (ErrorCode.NONE, node_id, 0, [node_id])
    assert (missing.error_code, unknown.error_code) == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    )

    request.topics = [RequestTopicData(topic_id=topic_id, partitions=[asked(0, leader_epoch=9)])]
    newer = client.request(ApiKey.ALTER_PARTITION, request, version=version)
    assert newer.topics[0].partitions[0].error_code == ErrorCode.NOT_CONTROLLER
    request.topics[0].partitions = [asked(0, state=7)]
    assert client.request(ApiKey.ALTER_PARTITION, request, version=version).error_code == ErrorCode.INVALID_REQUEST
    request.topics[0].partitions = [asked(0)]
    request.broker_epoch += 1
    assert client.request(ApiKey.ALTER_PARTITION, request, version=version).error_code == ErrorCode.STALE_BROKER_EPOCH
    request.broker_id = 4711
    assert client.request(ApiKey.ALTER_PARTITION, request, version=version).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_names_the_log_directories_of_its_replicas(client: Client, new_name: Callable[[], str]) -> None:
    topic = CreatableTopic(name=new_name(), num_partitions=2, replication_factor=1)
    topic_id = client.request(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=[topic])).topics[0].topic_id
    node_id = client.request(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest()).brokers[0].broker_id
    disks = [uuid.UUID(int=4711), uuid.UUID(int=4712)]

    def named(disk: uuid.UUID, *numbers: int) -> directories.RequestDirectoryData:
        partitions = [directories.RequestPartitionData(partition_index=number) for number in numbers]
        return directories.RequestDirectoryData(
            id_=disk, topics=[directories.RequestTopicData(topic_id=topic_id, partitions=partitions)]
        )

    request = directories.AssignReplicasToDirsRequest(
        broker_id=node_id,
        broker_epoch=registered_epoch(client, node_id) + 1,
        directories=[named(disks[0], 0, 7), named(disks[1], 1)],
    )
    version = KNOWN_APIS[ApiKey.ASSIGN_REPLICAS_TO_DIRS].max
    answer = client.request(ApiKey.ASSIGN_REPLICAS_TO_DIRS, request, version=version)
    assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
    request.broker_epoch -= 1
    answer = client.request(ApiKey.ASSIGN_REPLICAS_TO_DIRS, request, version=version)
    assert answer.error_code == ErrorCode.NONE
    assert [
        (one.id_, topic.topic_id, [(row.partition_index, row.error_code) for row in topic.partitions])
        for one in answer.directories
        for topic in one.topics
    ] == [
        (disks[0], topic_id, [(0, ErrorCode.NONE), (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
        (disks[1], topic_id, [(1, ErrorCode.NONE)]),
    ]


def registered_epoch(client: Client, node_id: int) -> int:
    """The epoch of the broker that serves us, which it tells no client: the first one for which it may have ids."""
    for epoch in range(100):
        wanted = AllocateProducerIdsRequest(broker_id=node_id, broker_epoch=epoch)
        if client.request(ApiKey.ALLOCATE_PRODUCER_IDS, wanted, version=0).error_code == ErrorCode.NONE:
            return epoch
    raise AssertionError(f"The epoch of broker {node_id} is none of the first ones.")


def test_strangers_get_neither_a_life_nor_ids(client: Client) -> None:
    beat = client.request(ApiKey.BROKER_HEARTBEAT, BrokerHeartbeatRequest(broker_id=4711, broker_epoch=1), version=0)
    block = client.request(
        ApiKey.ALLOCATE_PRODUCER_IDS, AllocateProducerIdsRequest(broker_id=1, broker_epoch=0), version=0
    )
    assert beat.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert block.error_code == ErrorCode.STALE_BROKER_EPOCH


def test_only_brokers_are_told_of_the_controllers_apis(client: Client) -> None:
    for name, expected in (("anybody", set()), (BROKER_SOFTWARE, set(CONTROLLER_APIS))):
        request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
        offered = {row.api_key for row in client.request(ApiKey.API_VERSIONS, request).api_keys}
        assert offered - set(API_VERSIONS) == expected


def in_envelope(
    client: Client, frame: bytes, *, principal: bytes | None = None, host: bytes = HERE
) -> EnvelopeResponse:
    envelope = EnvelopeRequest(
        request_data=frame,
        request_principal=encode_principal("User:ANONYMOUS") if principal is None else principal,
        client_host_address=host,
    )
    answer = client.request(ApiKey.ENVELOPE, envelope, version=0)
    assert isinstance(answer, EnvelopeResponse)
    return answer


@pytest.mark.parametrize("version", range(2, 8))
def test_a_request_in_an_envelope_is_carried_out(client: Client, new_name: Callable[[], str], version: int) -> None:
    name = new_name()
    topic = CreatableTopic(name=name, num_partitions=2, replication_factor=1)
    frame = encode_request(ApiKey.CREATE_TOPICS, version, 99, "somebody", CreateTopicsRequest(topics=[topic]))
    for expected in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        answer = in_envelope(client, frame)
        assert (answer.error_code, answer.response_data is None) == (ErrorCode.NONE, False)
        correlation_id, response = decode_response(
            ApiKey.CREATE_TOPICS, version, memoryview(answer.response_data or b"")
        )
        assert (correlation_id, response.topics[0].error_code) == (99, expected)


def test_what_does_not_belong_in_an_envelope_is_refused(client: Client) -> None:
    fine = encode_request(ApiKey.CREATE_TOPICS, 7, 1, None, CreateTopicsRequest())
    metadata = encode_request(ApiKey.METADATA, 12, 1, None, MetadataRequest())
    nested = encode_request(ApiKey.ENVELOPE, 0, 1, None, EnvelopeRequest(request_data=fine))
    too_new = fine[:2] + b"\x00\x63" + fine[4:]
    codes = [ErrorCode(in_envelope(client, frame).error_code) for frame in (b"", fine[:12], metadata, nested, too_new)]
    assert codes == [*[ErrorCode.INVALID_REQUEST] * 4, ErrorCode.UNSUPPORTED_VERSION]
    assert in_envelope(client, fine, principal=b"\x00\x09").error_code == ErrorCode.INVALID_REQUEST
    assert in_envelope(client, fine, host=b"12345").error_code == ErrorCode.INVALID_REQUEST
    assert in_envelope(client, fine).error_code == ErrorCode.NONE
