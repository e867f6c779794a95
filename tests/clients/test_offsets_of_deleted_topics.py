"""A topic is deleted and created again while the coordinator of a group is away: the old offset does not count."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka.cimpl import NewTopic

from strandline.crash import ENVIRONMENT_VARIABLE
from strandline.wire.api import API_VERSIONS, ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.messages.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.broker import BrokerProcess, running_broker
from tests.clients.two_brokers import SECONDS, BrokerCluster, consume_as_group, produce, running_cluster
from tests.postgres import postgres, postgres_url
from tests.waiting import wait_until

__all__ = ["postgres", "postgres_url"]

SIGKILLED = -9
TOPIC = "orders"
VERSIONS = range(API_VERSIONS[ApiKey.OFFSET_FETCH].min, API_VERSIONS[ApiKey.OFFSET_FETCH].max + 1)


@pytest.fixture
def cluster(tmp_path: Path, postgres_url: str) -> Iterator[BrokerCluster]:
    with running_cluster(tmp_path, postgres_url) as running:
        yield running


def find_coordinator(broker: BrokerProcess, group: str) -> int:
    """The id of the broker that coordinates the group, as soon as there is one."""

    def ask() -> int | None:
        with Client.connect("127.0.0.1", broker.port) as client:
            request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
            (answer,) = client.request(ApiKey.FIND_COORDINATOR, request).coordinators
        return answer.node_id if answer.error_code == ErrorCode.NONE else None

    return wait_until(ask, within=SECONDS, what=f"a coordinator of {group}")


def topic_id(client: Client) -> uuid.UUID:
    (found,) = client.request(ApiKey.METADATA, MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])).topics
    assert isinstance(found.topic_id, uuid.UUID)
    return found.topic_id


def committed(broker: BrokerProcess, group: str) -> dict[int, int]:
    """The offset that each version of OffsetFetch answers for partition 0, by version."""
    with Client.connect("127.0.0.1", broker.port) as client:
        known = topic_id(client)

        def ask(version: int) -> int:
            named = OffsetFetchRequestTopics(name=TOPIC, topic_id=known, partition_indexes=[0])
            request = OffsetFetchRequest(
                group_id=group,
                topics=[OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])],
                groups=[OffsetFetchRequestGroup(group_id=group, topics=[named])],
            )
            answer = client.request(ApiKey.OFFSET_FETCH, request, version=version)
            topics = answer.topics if version < 8 else answer.groups[0].topics
            return int(topics[0].partitions[0].committed_offset)

        return {version: ask(version) for version in VERSIONS}


def test_a_coordinator_that_was_killed_does_not_know_the_offsets_of_the_new_topic(cluster: BrokerCluster) -> None:
    controller = cluster.controller()
    away = 3 - controller
    names = [f"group-{number}" for number in range(40)]
    group = next(name for name in names if find_coordinator(cluster.brokers[controller], name) == away)

    def create() -> None:
        topic = NewTopic(TOPIC, num_partitions=1, replica_assignment=[[controller]])
        cluster.admin(controller).create_topics([topic])[TOPIC].result(SECONDS)

    create()
    produce(cluster.bootstrap, TOPIC, [b"old 0", b"old 1", b"old 2"], partitions=1)
    consume_as_group(cluster.bootstrap, group, TOPIC, lambda got: len(got) == 3)
    assert set(committed(cluster.brokers[away], group).values()) == {3}

    cluster.brokers[away].kill()
    cluster.admin(controller).delete_topics([TOPIC])[TOPIC].result(SECONDS)
    create()
    fresh = [f"new {number}".encode() for number in range(5)]
    produce(cluster.brokers[controller].bootstrap, TOPIC, fresh, partitions=1)
    cluster.brokers[away].start()
    cluster.wait_alive(1, 2)

    assert find_coordinator(cluster.brokers[controller], group) == away
    wait_until(
        lambda: set(committed(cluster.brokers[away], group).values()) == {-1},
        within=SECONDS,
        what="the coordinator to be loaded, without the old offset in any version",
    )
    assert consume_as_group(cluster.bootstrap, group, TOPIC, lambda got: len(got) == 5) == fresh
    assert set(committed(cluster.brokers[away], group).values()) == {5}
    cluster.brokers[away].kill()
    cluster.brokers[away].start()  # the offset of the new topic stays
    cluster.wait_alive(1, 2)
    assert find_coordinator(cluster.brokers[controller], group) == away
    wait_until(
        lambda: set(committed(cluster.brokers[away], group).values()) == {5},
        within=SECONDS,
        what="the offset of the new topic in every version",
    )


def test_a_broker_that_dies_between_the_deletion_and_the_tombstones(tmp_path: Path) -> None:
    """The old version of OffsetCommit whose client chooses its own retention as well."""
    environment = {ENVIRONMENT_VARIABLE: "groups.offsets.before_tombstones"}
    with running_broker(tmp_path / "data", environment=environment) as broker:
        produce(broker.bootstrap, TOPIC, [b"old"], partitions=1)
        with Client.connect("127.0.0.1", broker.port) as client:
            for group, version, retention_ms in (("new-client", 9, -1), ("old-client", 3, 3_600_000)):
                find_coordinator(broker, group)
                request = OffsetCommitRequest(
                    group_id=group,
                    generation_id_or_member_epoch=-1,
                    retention_time_ms=retention_ms,
                    topics=[
                        OffsetCommitRequestTopic(
                            name=TOPIC,
                            partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=1)],
                        )
                    ],
                )
                (answer,) = client.request(ApiKey.OFFSET_COMMIT, request, version=version).topics
                assert answer.partitions[0].error_code == ErrorCode.NONE
                assert set(committed(broker, group).values()) == {1}
            delete = DeleteTopicsRequest(topic_names=[TOPIC], topics=[DeleteTopicState(name=TOPIC)], timeout_ms=1000)
            with suppress(ConnectionError):  # the tombstones come a turn later, and the answer may be before them
                client.request(ApiKey.DELETE_TOPICS, delete)
        assert broker.wait() == SIGKILLED
        broker.environment = {}
        broker.start()
        produce(broker.bootstrap, TOPIC, [b"new 0", b"new 1"], partitions=1)
        for group in ("new-client", "old-client"):
            find_coordinator(broker, group)
            wait_until(lambda: set(committed(broker, group).values()) == {-1}, what="no offset in any version")  # noqa: B023
        received = consume_as_group(broker.bootstrap, "new-client", TOPIC, lambda got: len(got) == 2)
        assert received == [b"new 0", b"new 1"]
