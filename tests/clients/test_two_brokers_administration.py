"""Two brokers: what administrators change through the one that is not the controller holds for both of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from strandline.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from strandline.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from strandline.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
)
from strandline.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from strandline.wire.messages.unregister_broker import UnregisterBrokerRequest
from strandline.wire.registry import Message
from tests.clients.two_brokers import SECONDS, BrokerCluster, running_cluster
from tests.postgres import start_postgres
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    with running_cluster(tmp_path_factory.mktemp("two"), start_postgres().new_database()) as running:
        yield running


def ask(cluster: BrokerCluster, node_id: int, api_key: ApiKey, request: Message) -> Message:
    with Client.connect("127.0.0.1", cluster.brokers[node_id].port) as client:
        return client.request(api_key, request)


def quorum(cluster: BrokerCluster, node_id: int) -> ResponsePartitionData:
    topic = RequestTopicData(topic_name="__cluster_metadata", partitions=[RequestPartitionData()])
    answer = ask(cluster, node_id, ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequest(topics=[topic]))
    assert answer.error_code == ErrorCode.NONE, answer.error_message
    partition = answer.topics[0].partitions[0]
    assert isinstance(partition, ResponsePartitionData)
    return partition


def other_than_controller(cluster: BrokerCluster) -> int:
    controller = cluster.controller()
    return next(node_id for node_id in cluster.brokers if node_id != controller)


def test_quotas_and_credentials_set_through_the_other_broker_are_seen_on_both(cluster: BrokerCluster) -> None:
    other = other_than_controller(cluster)
    entry = RequestEntryData(
        entity=[EntityData(entity_type="client-id", entity_name="app")],
        ops=[OpData(key="consumer_byte_rate", value=4096.0)],
    )
    altered = ask(cluster, other, ApiKey.ALTER_CLIENT_QUOTAS, AlterClientQuotasRequest(entries=[entry]))
    assert altered.entries[0].error_code == ErrorCode.NONE
    wish = ScramCredentialUpsertion(
        name="alice", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"never-to-be-seen"
    )
    stored = ask(
        cluster,
        other,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        AlterUserScramCredentialsRequest(upsertions=[wish]),
    )
    assert stored.results[0].error_code == ErrorCode.NONE
    for node_id in cluster.brokers:

        def is_seen(node_id: int = node_id) -> bool:
            quotas = ask(cluster, node_id, ApiKey.DESCRIBE_CLIENT_QUOTAS, DescribeClientQuotasRequest())
            users = ask(
                cluster,
                node_id,
                ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
                DescribeUserScramCredentialsRequest(users=None),
            )
            return [value.value for entry in quotas.entries for value in entry.values] == [4096.0] and [
                (one.user, one.credential_infos[0].iterations) for one in users.results
            ] == [("alice", 4096)]

        wait_until(is_seen, within=SECONDS, what=f"broker {node_id} to see quota and credential")
    assert all("never-to-be-seen" not in broker.log_text for broker in cluster.brokers.values())


def test_both_describe_the_same_quorum_and_a_dead_broker_is_listed_until_it_is_unregistered(
    cluster: BrokerCluster,
) -> None:
    controller, other = cluster.controller(), other_than_controller(cluster)
    for node_id in cluster.brokers:
        described = quorum(cluster, node_id)
        assert described.leader_id == controller
        assert [voter.replica_id for voter in described.current_voters] == sorted(cluster.brokers)

    def has_followed() -> bool:
        described = quorum(cluster, other)
        return all(voter.log_end_offset == described.high_watermark for voter in described.current_voters)

    wait_until(has_followed, within=SECONDS, what="the follower to have read everything")

    cluster.brokers[other].kill()
    cluster.wait_alive(controller)
    assert [voter.replica_id for voter in quorum(cluster, controller).current_voters] == sorted(cluster.brokers)
    request = UnregisterBrokerRequest(broker_id=other)
    assert ask(cluster, controller, ApiKey.UNREGISTER_BROKER, request).error_code == ErrorCode.NONE
    assert [voter.replica_id for voter in quorum(cluster, controller).current_voters] == [controller]
    assert [broker.broker_id for broker in cluster.describe(controller).brokers] == [controller]
    again = ask(cluster, controller, ApiKey.UNREGISTER_BROKER, request)
    assert again.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    cluster.brokers[other].start()
    cluster.wait_alive(controller, other)  # it registers again
