"""Handlers on the metadata of a cluster of three brokers, and on a broker that is not the controller."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from strandline.config import Settings
from strandline.server.context import RequestContext
from strandline.server.handlers.administration.features import FeaturesHandler
from strandline.server.handlers.administration.members import MembersHandler
from strandline.server.handlers.administration.quorum import QuorumHandler
from strandline.server.handlers.administration.quotas import ClientQuotasHandler
from strandline.server.handlers.administration.scram import ScramHandler
from strandline.server.handlers.cluster import ClusterHandler
from strandline.server.handlers.elections import ElectionsHandler
from strandline.server.handlers.reassignments import ReassignmentsHandler
from strandline.server.handlers.topics.auto_creation import TopicAutoCreator
from strandline.server.handlers.topics.changes import TopicsHandler
from strandline.server.handlers.topics.describe import TopicPartitionsHandler
from strandline.server.handlers.topics.metadata import MetadataHandler
from strandline.wire.errors import ErrorCode
from strandline.wire.messages import alter_client_quotas as quotas
from strandline.wire.messages import alter_configs as full
from strandline.wire.messages import alter_partition_reassignments as reassignments
from strandline.wire.messages import alter_user_scram_credentials as scram
from strandline.wire.messages import describe_quorum as quorum
from strandline.wire.messages import incremental_alter_configs as incremental
from strandline.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from strandline.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.messages.delete_topics import DeleteTopicsRequest
from strandline.wire.messages.describe_cluster import DescribeClusterRequest
from strandline.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from strandline.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from strandline.wire.messages.unregister_broker import UnregisterBrokerRequest
from strandline.wire.messages.update_features import UpdateFeaturesRequest
from tests.metadata.cluster import Cluster, open_cluster
from tests.server.handlers.serving import AllServed, alter_configs_handler

PREFERRED, UNCLEAN = 0, 1


def context(version: int = 0) -> RequestContext:
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


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with open_cluster(brokers=(1, 2, 3)) as opened:
        yield opened


async def ask(cluster: Cluster, name: str, version: int = 12) -> MetadataResponse:
    creator = TopicAutoCreator(cluster.loader, cluster.controller, Settings, AllServed())
    handler = MetadataHandler(cluster.loader, creator, AllServed())
    return await handler.metadata(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), context(version))


async def test_a_fenced_broker_leads_nothing_and_is_not_listed(cluster: Cluster) -> None:
    await cluster.create("t", [(1, 2, 3), (2, 3, 1)])
    await cluster.beat(1, want_fence=True)
    answer = await ask(cluster, "t")
    assert [broker.node_id for broker in answer.brokers] == [2, 3]
    first, second = answer.topics[0].partitions
    assert (first.error_code, first.leader_id, first.isr_nodes) == (ErrorCode.NONE, 2, [2, 3])
    assert (first.offline_replicas, second.offline_replicas) == ([1], [1])
    described = await ClusterHandler(cluster.loader).describe_cluster(
        DescribeClusterRequest(include_fenced_brokers=True), context(2)
    )
    assert [(broker.broker_id, broker.is_fenced) for broker in described.brokers] == [
        (1, True),
        (2, False),
        (3, False),
    ]


async def test_a_partition_whose_only_replica_is_away_has_no_leader(cluster: Cluster) -> None:
    await cluster.create("t", [(3,)])
    await cluster.beat(3, want_fence=True)
    (partition,) = (await ask(cluster, "t")).topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert partition.offline_replicas == [3]


async def test_an_unknown_topic_is_made_with_the_defaults(cluster: Cluster) -> None:
    answer = await ask(cluster, "fresh")
    assert (answer.topics[0].error_code, len(answer.topics[0].partitions)) == (ErrorCode.NONE, 1)


async def test_a_partition_without_a_leader_shows_who_may_lead_it(cluster: Cluster) -> None:
    await cluster.create("t", [[1, 2, 3]], configs={"min.insync.replicas": "2"})
    for node_id in (3, 2, 1):
        await cluster.beat(node_id, want_fence=True)
    handler = TopicPartitionsHandler(cluster.loader, AllServed())
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")])
    (topic,) = (await handler.describe_topic_partitions(request, context())).topics
    (found,) = topic.partitions
    assert (found.leader_id, found.isr_nodes) == (-1, [])
    assert (found.eligible_leader_replicas, found.last_known_elr) == ([1, 2], [1])


async def elect(cluster: Cluster, kind: int, partitions: list[int] | None) -> list[tuple[str, list[tuple[int, int]]]]:
    wish = None if partitions is None else [TopicPartitions(topic="t", partitions=partitions)]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=wish)
    answer = await ElectionsHandler(cluster.controller).elect_leaders(request, context(2))
    assert answer.error_code == ErrorCode.NONE
    return [
        (result.topic, [(row.partition_id, row.error_code) for row in result.partition_result])
        for result in answer.replica_election_results
    ]


async def test_electing_the_preferred_leader(cluster: Cluster) -> None:
    await cluster.create("t", [(1, 2), (2, 1)])
    assert await elect(cluster, PREFERRED, [0, 1, 5]) == [
        (
            "t",
            [
                (0, ErrorCode.ELECTION_NOT_NEEDED),
                (1, ErrorCode.ELECTION_NOT_NEEDED),
                (5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ],
        )
    ]
    await cluster.beat(1, want_fence=True)
    assert await elect(cluster, PREFERRED, [0]) == [("t", [(0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)])]
    assert await elect(cluster, UNCLEAN, [0]) == [("t", [(0, ErrorCode.ELECTION_NOT_NEEDED)])]


async def test_a_broker_that_is_not_the_controller_says_so_for_each_item(cluster: Cluster) -> None:
    await cluster.create("t", [(1,)])
    await cluster.controller.leadership.resign()
    topics = TopicsHandler(cluster.controller, cluster.loader, Settings, AllServed())
    configs = alter_configs_handler(cluster)
    created = await topics.create_topics(CreateTopicsRequest(topics=[CreatableTopic(name="x")]), context(7))
    deleted = await topics.delete_topics(DeleteTopicsRequest(topic_names=["t"]), context(5))
    grown = await topics.create_partitions(
        CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=2)]), context(3)
    )
    replaced = await configs.alter_configs(
        full.AlterConfigsRequest(resources=[full.AlterConfigsResource(resource_type=2, resource_name="t")]), context(2)
    )
    resource = incremental.AlterConfigsResource(resource_type=2, resource_name="t")
    altered = await configs.incremental_alter_configs(
        incremental.IncrementalAlterConfigsRequest(resources=[resource]), context(1)
    )
    elected = await ElectionsHandler(cluster.controller).elect_leaders(ElectLeadersRequest(), context(2))
    assert [
        created.topics[0].error_code,
        deleted.responses[0].error_code,
        grown.results[0].error_code,
        replaced.responses[0].error_code,
        altered.responses[0].error_code,
        elected.error_code,
    ] == [ErrorCode.NOT_CONTROLLER] * 6


async def test_it_says_so_to_administrators_too(cluster: Cluster) -> None:
    controller, images = cluster.controller, cluster.loader
    await controller.leadership.resign()
    entry = quotas.RequestEntryData(entity=[quotas.EntityData(entity_type="user", entity_name="a")])
    quota = await ClientQuotasHandler(controller, images).alter_client_quotas(
        quotas.AlterClientQuotasRequest(entries=[entry]), context(1)
    )
    deletion = scram.ScramCredentialDeletion(name="a", mechanism=1)
    credential = await ScramHandler(controller, images).alter_credentials(
        scram.AlterUserScramCredentialsRequest(deletions=[deletion]), context(0)
    )
    feature = await FeaturesHandler(controller).update_features(UpdateFeaturesRequest(), context(2))
    named = quorum.RequestTopicData(topic_name="__cluster_metadata", partitions=[quorum.RequestPartitionData()])
    described = await QuorumHandler(controller).describe_quorum(
        quorum.DescribeQuorumRequest(topics=[named]), context(2)
    )
    member = await MembersHandler(controller).unregister_broker(UnregisterBrokerRequest(broker_id=3), context(0))
    wish = reassignments.ReassignableTopic(
        name="t", partitions=[reassignments.ReassignablePartition(partition_index=0, replicas=[1])]
    )
    moved = await ReassignmentsHandler(controller).alter_partition_reassignments(
        reassignments.AlterPartitionReassignmentsRequest(topics=[wish]), context(1)
    )
    assert [
        quota.entries[0].error_code,
        credential.results[0].error_code,
        feature.error_code,
        described.error_code,
        member.error_code,
        moved.error_code,
        moved.responses[0].partitions[0].error_code,
    ] == [ErrorCode.NOT_CONTROLLER] * 7
