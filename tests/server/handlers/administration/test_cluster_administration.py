"""UpdateFeatures, the ACL requests, DescribeQuorum, AlterPartitionReassignments and UnregisterBroker over the wire."""

from __future__ import annotations

import pytest

from strandline.metadata import features
from strandline.metadata.features import SUPPORTED_FEATURES, TRANSACTION_VERSION
from strandline.server.client_software import ClientSoftware
from strandline.server.context import RequestContext
from strandline.server.handlers.administration.features import FeaturesHandler
from strandline.server.handlers.api_versions import ApiVersionsHandler
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from strandline.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from strandline.wire.messages.create_acls import AclCreation, CreateAclsRequest
from strandline.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from strandline.wire.messages.describe_acls import DescribeAclsRequest
from strandline.wire.messages.describe_cluster import DescribeClusterRequest
from strandline.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.messages.unregister_broker import UnregisterBrokerRequest
from strandline.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from tests.metadata.cluster import Cluster, open_cluster
from tests.server.handlers.conftest import create_topic

UPGRADE, SAFE_DOWNGRADE = 1, 2


def context(version: int) -> RequestContext:
    return RequestContext(
        api_key=0,
        api_version=version,
        correlation_id=1,
        client_id=None,
        client_host="127.0.0.1",
        listener="PLAINTEXT",
        principal="User:ANONYMOUS",
        connection_id=1,
    )


# Features


async def update(cluster: Cluster, level: int, version: int, **how: object) -> UpdateFeaturesResponse:
    wish = FeatureUpdateKey(feature=TRANSACTION_VERSION, max_version_level=level)
    for name, value in how.items():
        setattr(wish, name, value)
    request = UpdateFeaturesRequest(feature_updates=[wish])
    return await FeaturesHandler(cluster.controller).update_features(request, context(version))


async def announced(cluster: Cluster, version: int) -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    return await ApiVersionsHandler(cluster.loader, ClientSoftware()).api_versions(request, context(version))


async def test_a_feature_is_announced_with_its_range_and_its_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "ANNOUNCED_FEATURES", tuple(SUPPORTED_FEATURES))
    async with open_cluster() as cluster:
        answer = await announced(cluster, 4)
        ranges = {one.name: (one.min_version, one.max_version) for one in answer.supported_features}
        assert ranges == {
            "group.version": (0, 1),
            "metadata.version": (22, 23),
            "share.version": (0, 1),
            "transaction.version": (0, 2),
        }
        levels = {one.name: (one.min_version_level, one.max_version_level) for one in answer.finalized_features}
        assert levels == {
            "group.version": (1, 1),
            "metadata.version": (23, 23),
            "share.version": (1, 1),
            "transaction.version": (2, 2),
        }
        assert answer.finalized_features_epoch == cluster.image.offset
        older = await announced(cluster, 3)
        # Clients of version 3 cannot read a range that begins with 0.
        assert [one.name for one in older.supported_features] == ["metadata.version"]
        assert len(older.finalized_features) == 4

        changed = await update(cluster, 0, 2, upgrade_type=SAFE_DOWNGRADE)
        assert (changed.error_code, changed.results) == (ErrorCode.NONE, [])
        answer = await announced(cluster, 4)
        assert [one.name for one in answer.finalized_features] == [
            "group.version",
            "metadata.version",
            "share.version",
        ]  # level 0 is off


async def test_old_versions_of_the_answer_have_a_line_for_each_feature_if_all_were_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(features, "ANNOUNCED_FEATURES", tuple(SUPPORTED_FEATURES))
    async with open_cluster() as cluster:
        refused = await update(cluster, 1, 0)
        assert (refused.error_code, refused.results) == (ErrorCode.INVALID_UPDATE_VERSION, [])
        done = await update(cluster, 1, 0, allow_downgrade=True)
        assert [(line.feature, line.error_code) for line in done.results] == [(TRANSACTION_VERSION, ErrorCode.NONE)]
        assert cluster.image.administered.feature_levels[TRANSACTION_VERSION] == 1


def test_a_feature_that_is_not_announced_cannot_be_switched(client: Client) -> None:
    wish = FeatureUpdateKey(feature="metadata.version", max_version_level=25, upgrade_type=UPGRADE)
    answer = client.request(ApiKey.UPDATE_FEATURES, UpdateFeaturesRequest(feature_updates=[wish]))
    assert (answer.error_code, answer.results) == (ErrorCode.INVALID_UPDATE_VERSION, [])


# Access rules


def test_there_are_no_access_rules_without_an_authorizer(client: Client) -> None:
    described = client.request(ApiKey.DESCRIBE_ACLS, DescribeAclsRequest())
    created = client.request(ApiKey.CREATE_ACLS, CreateAclsRequest(creations=[AclCreation(), AclCreation()]))
    deleted = client.request(ApiKey.DELETE_ACLS, DeleteAclsRequest(filters=[DeleteAclsFilter()]))
    codes = [described.error_code, *(one.error_code for one in (*created.results, *deleted.filter_results))]
    assert codes == [ErrorCode.SECURITY_DISABLED] * 4
    assert "authorizer" in described.error_message


# The controller


def quorum_request(topic: str = "__cluster_metadata", partition: int = 0) -> DescribeQuorumRequest:
    partitions = [RequestPartitionData(partition_index=partition)]
    return DescribeQuorumRequest(topics=[RequestTopicData(topic_name=topic, partitions=partitions)])


def test_the_quorum_is_this_broker(client: Client) -> None:
    answer = client.request(ApiKey.DESCRIBE_QUORUM, quorum_request())
    ((partition,),) = (topic.partitions for topic in answer.topics)
    cluster = client.request(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest())
    assert (answer.error_code, partition.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
    assert partition.leader_id == cluster.controller_id
    assert partition.leader_epoch >= 1
    (voter,) = partition.current_voters
    assert (voter.replica_id, voter.log_end_offset) == (cluster.controller_id, partition.high_watermark)
    assert voter.last_caught_up_timestamp > 0
    assert partition.observers == []
    (node,) = answer.nodes
    assert (node.node_id, [one.port for one in node.listeners]) == (cluster.controller_id, [cluster.brokers[0].port])


@pytest.mark.parametrize(("topic", "partition"), [("__cluster_metadata", 1), ("other", 0)])
def test_no_other_partition_has_a_quorum(client: Client, topic: str, partition: int) -> None:
    answer = client.request(ApiKey.DESCRIBE_QUORUM, quorum_request(topic, partition))
    ((found,),) = (one.partitions for one in answer.topics)
    assert (answer.error_code, found.error_code) == (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


# Reassignments


def test_reassignments_are_answered_for_each_partition(client: Client, topic: str) -> None:
    here = client.request(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest()).controller_id
    wanted: list[tuple[str, int, list[int] | None]] = [
        (topic, 0, [here]),
        (topic, 1, [here, here + 1]),
        (topic, 2, None),
        (topic, 3, [here]),
        ("missing", 0, [here]),
    ]
    request = AlterPartitionReassignmentsRequest(
        topics=[
            ReassignableTopic(name=name, partitions=[ReassignablePartition(partition_index=index, replicas=replicas)])
            for name, index, replicas in wanted
        ]
    )
    answer = client.request(ApiKey.ALTER_PARTITION_REASSIGNMENTS, request)
    assert answer.error_code == ErrorCode.NONE
    assert [(one.name, one.partitions[0].partition_index) for one in answer.responses] == [
        (name, index) for name, index, _ in wanted
    ]
    assert [one.partitions[0].error_code for one in answer.responses] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


# Members


def test_a_broker_that_is_not_registered_cannot_be_unregistered(client: Client) -> None:
    answer = client.request(ApiKey.UNREGISTER_BROKER, UnregisterBrokerRequest(broker_id=99))
    assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_broker_that_runs_is_not_unregistered_and_goes_on(client: Client) -> None:
    here = client.request(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest()).controller_id
    topic = create_topic(client, "kept")
    answer = client.request(ApiKey.UNREGISTER_BROKER, UnregisterBrokerRequest(broker_id=here))
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert f"Broker {here} is running" in answer.error_message
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    (found,) = client.request(ApiKey.METADATA, request).topics
    assert [(one.error_code, one.leader_id) for one in found.partitions] == [(ErrorCode.NONE, here)]
