"""A cluster of the last release without replication is upgraded broker by broker, and gets replicas afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from bench.tree import SourceTree, TreeFailed

from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.broker import COMPILED_VARIABLE, EXTERNAL_BOOTSTRAP, BrokerProcess
from tests.clients.two_brokers import QUICK, SECONDS, BrokerCluster, consume_as_group, produce
from tests.nursery import IS_SUPPORTED, Nursery
from tests.postgres import postgres, postgres_url
from tests.waiting import wait_until

__all__ = ["postgres", "postgres_url"]

OLD_RELEASE = "2f745b67"
"""The last commit before the metadata had a level and partitions several replicas."""
UNREPLICATED, REPLICATED = 22, 23
OFFSETS = "__consumer_offsets"
NODES = (1, 2, 3)
SETTINGS: Mapping[str, str] = {**QUICK, "offsets.topic.replication.factor": "3"}


class Upgrading(BrokerCluster):
    """Brokers of the old release, each of which can be started again as one of this tree."""

    def write_and_read(self, topic: str, group: str, written: list[bytes]) -> None:
        """Some more records, by way of any broker; a group reads all there are."""
        more = [b"%d" % number for number in range(len(written), len(written) + 12)]
        produce(self.bootstrap, topic, more, partitions=len(NODES))
        written += more
        received = consume_as_group(self.bootstrap, group, topic, lambda got: len(got) >= len(written))
        assert sorted(received) == sorted(written)

    def upgrade(self, node_id: int) -> None:
        """Stop it cleanly, and start it as one of this tree."""
        broker = self.brokers[node_id]
        assert broker.stop() == 0, broker.log_text[-4000:]
        broker.nursery, broker.environment = None, {}
        broker.start()
        self.wait_alive(*NODES)

    def raise_level(self) -> ErrorCode:
        """Ask for the newest level of metadata."""
        wish = FeatureUpdateKey(feature="metadata.version", max_version_level=REPLICATED, upgrade_type=1)
        with self.connect(NODES[0]) as client:
            answer = client.request(ApiKey.UPDATE_FEATURES, UpdateFeaturesRequest(feature_updates=[wish]))
        return ErrorCode(answer.error_code)

    def replicas(self, topic: str) -> set[tuple[int, int]]:
        """How many replicas the partitions have, and how many are in sync, as every broker sees it."""
        found = set()
        for node_id in self.running:
            request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
            with self.connect(node_id) as client:
                (answer,) = client.request(ApiKey.METADATA, request).topics
            found |= {(len(row.replica_nodes), len(row.isr_nodes)) for row in answer.partitions}
        return found


@pytest.fixture(scope="module")
def old_release(pytestconfig: pytest.Config) -> Iterator[tuple[SourceTree, Nursery]]:
    """The tree of the old release, and where its brokers are forked from."""
    if EXTERNAL_BOOTSTRAP or not IS_SUPPORTED:
        pytest.skip("needs broker processes of its own, on Linux")
    assert pytestconfig.cache is not None
    try:
        tree = SourceTree.at(OLD_RELEASE, Path(pytestconfig.cache.mkdir("releases")))
    except TreeFailed as failure:
        pytest.skip(f"The old release is not there without the git history of this repository: {failure}")
    tree.prepare()
    nursery = Nursery({**os.environ, **tree.environment, COMPILED_VARIABLE: "no"})
    try:
        yield tree, nursery
    finally:
        nursery.close()


@pytest.fixture
def cluster(tmp_path: Path, postgres_url: str, old_release: tuple[SourceTree, Nursery]) -> Iterator[Upgrading]:
    tree, nursery = old_release
    upgrading = Upgrading(
        {
            node_id: BrokerProcess(
                tmp_path / f"broker-{node_id}",
                settings={**SETTINGS, "node.id": str(node_id), "strandline.metadata.url": postgres_url},
                environment={**tree.environment, COMPILED_VARIABLE: "no"},
                nursery=nursery,
            )
            for node_id in NODES
        }
    )
    try:
        for broker in upgrading.brokers.values():
            broker.start()
        upgrading.wait_alive(*NODES)
        yield upgrading
    finally:
        for broker in upgrading.brokers.values():
            broker.close()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_brokers_are_upgraded_one_by_one_and_replicas_come_when_the_level_is_raised(cluster: Upgrading) -> None:
    written: list[bytes] = []
    cluster.create("orders", partitions=len(NODES), via=1)
    cluster.write_and_read("orders", "old", written)
    first = cluster.controller()
    others = [node_id for node_id in NODES if node_id != first]
    # First an old controller has a new broker. When it goes, the new broker or the old one that is left is the next.
    order = [others[0], first, others[1]]
    for upgraded, node_id in enumerate(order, 1):
        cluster.upgrade(node_id)
        cluster.write_and_read("orders", f"group-{upgraded}", written)
        cluster.create(f"during-{upgraded}", partitions=len(NODES), via=node_id)
        refused = cluster.create_straight(f"replicated-{upgraded}", via=node_id, replicas=3)
        assert refused is not ErrorCode.NONE, "no record of replicas before the level is raised"
        assert cluster.replicas(OFFSETS) == {(1, 1)}
        if upgraded < len(order):
            assert cluster.raise_level() is not ErrorCode.NONE, "there is a broker that would not understand it"
    assert cluster.raise_level() is ErrorCode.NONE
    wait_until(lambda: cluster.replicas(OFFSETS) == {(3, 3)}, within=SECONDS, what="groups to have replicas")
    cluster.create("replicated", partitions=len(NODES), via=1, replicas=3, config={"min.insync.replicas": "2"})
    wait_until(lambda: cluster.replicas("replicated") == {(3, 3)}, within=SECONDS, what="all replicas to be in sync")
    assert cluster.replicas("orders") == {(1, 1)}, "how many replicas a topic has is for its users to say"
    cluster.write_and_read("orders", "last", written)
    produce(cluster.bootstrap, "replicated", written, partitions=len(NODES))
    cluster.brokers[first].kill()
    cluster.wait_alive(*others)
    cluster.wait_led("replicated", len(NODES))
    left = ",".join(cluster.brokers[node_id].bootstrap for node_id in others)
    received = consume_as_group(left, "after", "replicated", lambda got: len(got) >= len(written))
    assert sorted(received) == sorted(written)
