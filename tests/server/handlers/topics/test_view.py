"""What clients see of topics in a cluster of several brokers: pure, from images made by hand."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from uuid import UUID

import pytest

from strandline.metadata import BrokerImage, Listener, MetadataImage, PartitionImage, TopicImage
from strandline.server.handlers.topics.view import TopicViews, bootstrap_endpoints, broker_endpoints
from strandline.wire.errors import ErrorCode
from tests.server.handlers.serving import AllServed


def broker(node_id: int, *listeners: str, fenced: bool = False) -> BrokerImage:
    return BrokerImage(
        node_id=node_id,
        epoch=node_id,
        incarnation_id=UUID(int=node_id),
        listeners=tuple(Listener(name, f"{name.lower()}{node_id}", 9092) for name in listeners),
        fenced=fenced,
    )


TOPIC = TopicImage("t", UUID(int=9), (PartitionImage(0, (1, 2, 3), (1, 2), 1, 4, 5),))
BROKERS = {1: broker(1, "IN", "OUT"), 2: broker(2, "IN"), 3: broker(3, "IN", "OUT", fenced=True)}
IMAGE = MetadataImage(brokers=BROKERS, topics={"t": TOPIC}, topics_by_id={TOPIC.topic_id: TOPIC})


def view(image: MetadataImage, listener: str = "IN", *, old: bool = False) -> tuple[int, int, list[int], list[int]]:
    (partition,) = (
        TopicViews(AllServed()).describe(image, image.topics["t"], listener, only_alive_replicas=old).partitions
    )
    return partition.error_code, partition.leader_id, partition.replica_nodes, partition.offline_replicas


def with_brokers(*brokers: BrokerImage) -> MetadataImage:
    return replace(IMAGE, brokers={broker.node_id: broker for broker in brokers})


def test_endpoints_are_those_of_alive_brokers_with_the_listener() -> None:
    assert [(b.node_id, e.host) for b, e in broker_endpoints(IMAGE, "IN")] == [(1, "in1"), (2, "in2")]
    assert [(b.node_id, e.host) for b, e in broker_endpoints(IMAGE, "OUT")] == [(1, "out1")]


def test_clients_are_told_of_fenced_brokers_rather_than_of_none() -> None:
    """librdkafka, told of none by the last broker that stopped, asked nobody any more when it was back."""
    assert [b.node_id for b, _ in bootstrap_endpoints(IMAGE, "OUT")] == [1]
    stopping = with_brokers(broker(1, "IN", "OUT", fenced=True), broker(2, "IN", fenced=True))
    assert broker_endpoints(stopping, "IN") == []
    assert [(b.node_id, e.host) for b, e in bootstrap_endpoints(stopping, "IN")] == [(1, "in1"), (2, "in2")]
    assert [b.node_id for b, _ in bootstrap_endpoints(stopping, "OUT")] == [1]


def test_replicas_in_log_directories_that_have_failed_are_offline() -> None:
    disk = UUID(int=4711)
    broken = replace(BROKERS[2], failed_log_dirs=(disk,))
    there = TOPIC.partitions[0].in_directory(2, disk)
    for partition, offline in (there, [2, 3]), (there.in_directory(2, UUID(int=4712)), [3]):
        topic = replace(TOPIC, partitions=(partition,))
        image = replace(IMAGE, topics={"t": topic}, brokers={**BROKERS, 2: broken})
        assert view(image) == (ErrorCode.NONE, 1, [1, 2, 3], offline)


def test_replicas_on_fenced_brokers_are_offline() -> None:
    assert view(IMAGE) == (ErrorCode.NONE, 1, [1, 2, 3], [3])
    assert view(IMAGE, "OUT") == (ErrorCode.NONE, 1, [1, 2, 3], [2, 3])


def test_version_0_hears_of_alive_replicas_only() -> None:
    assert view(IMAGE, old=True) == (ErrorCode.REPLICA_NOT_AVAILABLE, 1, [1, 2], [3])


@pytest.mark.parametrize("leader", [broker(1, "IN", fenced=True), broker(7, "IN")])
def test_a_leader_that_is_fenced_or_gone(leader: BrokerImage) -> None:
    assert view(with_brokers(leader, BROKERS[2]))[:2] == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


def test_a_leader_without_the_listener() -> None:
    assert view(with_brokers(broker(1, "OUT"), BROKERS[2]))[:2] == (ErrorCode.LISTENER_NOT_FOUND, -1)


def test_answers_are_kept_until_something_changes() -> None:
    views = TopicViews(AllServed())

    def describe(image: MetadataImage) -> object:
        return views.describe(image, image.topics["t"], "IN", only_alive_replicas=False)

    first = describe(IMAGE)
    assert describe(replace(IMAGE, offset=7)) is first
    changed = TopicImage("t", TOPIC.topic_id, (TOPIC.partitions[0]._replace(leader=2),))
    assert describe(replace(IMAGE, topics={"t": changed})) is not first
    assert describe(with_brokers(*BROKERS.values())) is not first


def test_answers_are_not_kept_when_others_may_serve_a_topic() -> None:
    class Serving(AllServed):
        version = 0

        @property
        def view_version(self) -> int:
            return self.version

        def as_served(self, topic: TopicImage, reachable: Collection[int]) -> TopicImage:
            return TopicImage("t", topic.topic_id, (topic.partitions[0]._replace(leader=1 + self.version),))

    serving = Serving()
    views = TopicViews(serving)
    for version in (0, 1):
        serving.version = version
        shown = views.describe(IMAGE, TOPIC, "IN", only_alive_replicas=False)
        assert shown.partitions[0].leader_id == 1 + version


def test_deleted_topics_are_forgotten_in_time() -> None:
    views = TopicViews(AllServed())
    for number in range(100):
        topic = TopicImage(f"t{number}", UUID(int=number + 1), TOPIC.partitions)
        image = replace(IMAGE, topics={topic.name: topic})
        views.describe(image, topic, "IN", only_alive_replicas=False)
        assert sum(map(len, views._kept.values())) <= 4
