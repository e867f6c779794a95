"""The controller against a dictionary: after any calls it must agree with a model too simple to be wrong."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from strandline.errors import NotController
from strandline.metadata import (
    ConfigAlteration,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    IsrChange,
    IsrMember,
    MetadataImage,
    NewPartitions,
    NewTopic,
    TopicImage,
)
from strandline.model import NO_LEADER
from strandline.sql import SqlStore, open_store
from strandline.testing.clock import VirtualClock
from tests.metadata.cluster import MEMORY, Cluster, member

T = TypeVar("T")

names = st.sampled_from(["a", "b", "c", "d.e", "d_e"])
node_ids = st.integers(1, 3)
COLLISIONS = {"d.e": "d_e", "d_e": "d.e"}


class ControllerAgainstModel(RuleBasedStateMachine):
    """Two controllers share a store. The model knows topics, settings and brokers, and nothing of how they are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.clock = VirtualClock()
        self.topics: dict[str, int] = {}
        self.replicas: dict[str, int] = {}
        self.configs: dict[str, dict[str, str]] = {}
        self.brokers: dict[int, str] = {}  # fenced, active, leaving
        self.incarnations: dict[int, int] = {}
        self.epochs: dict[tuple[uuid.UUID, int], tuple[int, int]] = {}
        self.next_producer_id = 0

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(call)

    @initialize()
    def begin(self) -> None:
        async def opened() -> SqlStore:
            return await self.stack.enter_async_context(open_store(MEMORY))

        self.sql = self.run(opened())
        self.cluster = self.new_life(node_id=1)

    def new_life(self, node_id: int) -> Cluster:
        async def start() -> Cluster:
            cluster = member(self.sql, self.clock, node_id=node_id)
            await cluster.loader.load()
            assert await cluster.controller.activate()
            return cluster

        return self.run(start())

    def active(self) -> list[int]:
        return [node_id for node_id, state in self.brokers.items() if state == "active"]

    @rule(name=names, partitions=st.integers(0, 4), factor=st.integers(1, 3), validate_only=st.booleans())
    def create_topic(self, name: str, partitions: int, factor: int, validate_only: bool) -> None:
        wish = NewTopic(name=name, num_partitions=partitions, replication_factor=factor)
        (answer,) = self.run(self.cluster.controller.create_topics([wish], validate_only))
        is_possible = (
            name not in self.topics
            and COLLISIONS.get(name) not in self.topics
            and partitions > 0
            and bool(self.active())
            and factor <= sum(1 for state in self.brokers.values() if state != "leaving")
        )
        assert isinstance(answer, TopicImage) == is_possible, answer
        if is_possible and not validate_only:
            self.topics[name], self.replicas[name], self.configs[name] = partitions, factor, {}

    @rule(name=names)
    def delete_topic(self, name: str) -> None:
        (answer,) = self.run(self.cluster.controller.delete_topics([name]))
        assert isinstance(answer, TopicImage) == (name in self.topics)
        self.topics.pop(name, None)
        self.configs.pop(name, None)

    @rule(name=names, count=st.integers(1, 8))
    def add_partitions(self, name: str, count: int) -> None:
        (answer,) = self.run(self.cluster.controller.create_partitions([NewPartitions(name=name, count=count)]))
        is_possible = (
            name in self.topics
            and count > self.topics[name]
            and bool(self.active())
            and self.replicas[name] <= sum(1 for state in self.brokers.values() if state != "leaving")
        )
        assert isinstance(answer, TopicImage) == is_possible, answer
        if is_possible:
            self.topics[name] = count

    @rule(name=names, value=st.none() | st.sampled_from(["1", "2", "never"]))
    def configure(self, name: str, value: str | None) -> None:
        operation = ConfigOperation.DELETE if value is None else ConfigOperation.SET
        alteration = ConfigAlteration(
            resource=ConfigResource(ConfigResourceType.TOPIC, name),
            changes=[ConfigChange("retention.ms", operation, value)],
        )
        (error,) = self.run(self.cluster.controller.alter_configs([alteration]))
        assert (error is None) == (name in self.topics and value != "never")
        if error is None:
            self.configs[name].pop("retention.ms", None)
            if value is not None:
                self.configs[name]["retention.ms"] = value

    @rule(node_id=node_ids)
    def start_broker(self, node_id: int) -> None:
        self.clock.move(10.0)  # earlier brokers have no session any more
        self.incarnations[node_id] = self.incarnations.get(node_id, 0) + 1
        self.run(self.cluster.start_broker(node_id, self.incarnations[node_id]))
        self.brokers[node_id] = "active"

    @precondition(lambda self: self.brokers)
    @rule(data=st.data(), want_fence=st.booleans(), want_shut_down=st.booleans())
    def heartbeat(self, data: st.DataObject, want_fence: bool, want_shut_down: bool) -> None:
        node_id = data.draw(st.sampled_from(sorted(self.brokers)))
        reply = self.run(self.cluster.beat(node_id, want_fence=want_fence, want_shut_down=want_shut_down))
        broker = self.cluster.image.brokers[node_id]
        if reply.should_shut_down:
            assert want_shut_down
            assert not any(p.leader == node_id for _, p in self.cluster.image.all_partitions())
        if want_fence and self.brokers[node_id] != "leaving":
            assert broker.fenced
        self.brokers[node_id] = "fenced" if broker.fenced else "leaving" if broker.in_controlled_shutdown else "active"

    @precondition(lambda self: self.topics)
    @rule(data=st.data())
    def change_isr(self, data: st.DataObject) -> None:
        topic = self.cluster.image.topics[data.draw(st.sampled_from(sorted(self.topics)))]
        partition = data.draw(st.sampled_from(topic.partitions))
        if not partition.has_leader:
            return
        others = [node for node in partition.replicas if node != partition.leader and self.brokers[node] == "active"]
        isr = [partition.leader, *data.draw(st.lists(st.sampled_from(others), unique=True) if others else st.just([]))]
        change = IsrChange(
            topic_id=topic.topic_id,
            partition=partition.partition,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            isr=tuple(IsrMember(node) for node in isr),
            leader_recovery_state=partition.leader_recovery_state,
        )
        epoch = self.cluster.image.brokers[partition.leader].epoch
        self.run(self.cluster.controller.alter_partition(partition.leader, epoch, [change]))
        assert set(self.cluster.partition(topic.name, partition.partition).isr) == set(isr)

    @rule()
    def elect_preferred(self) -> None:
        self.run(self.cluster.controller.elect_leaders(ElectionType.PREFERRED, None))
        for _, partition in self.cluster.image.all_partitions():
            preferred = partition.replicas[0]
            if preferred in partition.isr and self.brokers[preferred] == "active":
                assert partition.leader == preferred

    @precondition(lambda self: self.active())
    @rule()
    def allocate_producer_ids(self) -> None:
        node_id = self.active()[0]
        epoch = self.cluster.image.brokers[node_id].epoch
        block = self.run(self.cluster.controller.allocate_producer_ids(node_id, epoch))
        assert block == range(self.next_producer_id, self.next_producer_id + 1000)
        self.next_producer_id += 1000

    @rule(node_id=st.integers(1, 2))
    def fail_over(self, node_id: int) -> None:
        """Another controller takes the lease; the old one finds out when it tries to write."""
        old = self.cluster
        self.run(self.let_the_lease_run_out())
        self.cluster = self.new_life(node_id)
        if self.active():
            wish = NewTopic(name="zombie", assignments={0: self.active()[:1]})
            with pytest.raises(NotController):
                self.run(old.controller.create_topics([wish]))

    async def let_the_lease_run_out(self) -> None:
        async with self.sql.transaction() as tx:
            await tx.execute("UPDATE controller_lease SET expires_at_ms = 0 WHERE id = 1")

    @rule()
    def snapshot(self) -> None:
        self.run(self.cluster.store.add_snapshot(self.cluster.image))

    @invariant()
    def image_and_model_agree(self) -> None:
        image = self.cluster.image
        assert {name: len(topic.partitions) for name, topic in image.topics.items()} == self.topics
        for name, overrides in self.configs.items():
            assert image.topic_overrides(name) == overrides
        assert set(image.brokers) == set(self.brokers)
        assert image.next_producer_id == self.next_producer_id

    @invariant()
    def partitions_are_sound(self) -> None:
        epochs = {}
        for topic, partition in self.cluster.image.all_partitions():
            assert len(partition.replicas) == self.replicas[topic.name]
            assert set(partition.isr) <= set(partition.replicas)
            if partition.has_leader:
                assert partition.leader in partition.isr
                assert self.brokers[partition.leader] == "active"
            else:
                assert partition.leader == NO_LEADER
                assert not any(self.brokers[node] == "active" for node in (*partition.isr, *partition.elr))
                assert partition.isr or partition.elr or partition.last_known_elr
            assert not set(partition.isr) & set(partition.elr)
            key = (topic.topic_id, partition.partition)
            before = self.epochs.get(key, (-1, -1))
            epochs[key] = (partition.leader_epoch, partition.partition_epoch)
            assert epochs[key][0] >= before[0]
            assert epochs[key][1] >= before[1]
        self.epochs = epochs

    @invariant()
    def the_log_holds_what_the_image_says(self) -> None:
        loaded: MetadataImage = self.run(self.cluster.store.load())
        assert loaded == self.cluster.image

    def teardown(self) -> None:
        self.run(self.stack.aclose())
        self.runner.close()


ControllerAgainstModel.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestControllerAgainstModel = ControllerAgainstModel.TestCase
