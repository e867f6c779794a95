"""Hypothesis strategies: legal metadata logs."""

from __future__ import annotations

import uuid

from hypothesis import strategies as st

from strandline.metadata import ConfigResource, ConfigResourceType, LeaderRecoveryState, Listener
from strandline.metadata.administered import ScramCredential, ScramMechanism, ScramOwner, quota_entity
from strandline.metadata.image import FeatureSupport
from strandline.metadata.records import (
    BrokerChangeRecord,
    ClientQuotaRecord,
    ClusterRecord,
    ConfigRecord,
    ControllerChangeRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    ScramCredentialRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)

NAMES = ["a", "b", "c.d"]
nodes = st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True).map(tuple)
recovery = st.sampled_from(LeaderRecoveryState)


class History:
    """Draws records that fit the ones before."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.records: list[MetadataRecord] = []
        self.topics: dict[str, tuple[uuid.UUID, int]] = {}  # name -> id, partitions
        self.brokers: dict[int, int] = {}  # node -> epoch
        self.next_id = 1
        self.epoch = 0

    def add(self, record: MetadataRecord) -> None:
        self.records.append(record)

    def step(self) -> None:
        steps = [self.new_topic, self.register, self.configure, self.small_things, self.administer]
        if self.topics:
            steps += [self.add_partition, self.change_partitions, self.remove_topic]
        if self.brokers:
            steps += [self.change_broker, self.unregister]
        self.draw(st.sampled_from(steps))()

    def new_topic(self) -> None:
        free = [name for name in NAMES if name not in self.topics]
        if free:
            name = self.draw(st.sampled_from(free))
            self.topics[name] = (uuid.UUID(int=self.next_id), 0)
            self.next_id += 1
            self.add(TopicRecord(name=name, topic_id=self.topics[name][0]))
            for _ in range(self.draw(st.integers(1, 3))):
                self.partition_of(name)

    def add_partition(self) -> None:
        self.partition_of(self.draw(st.sampled_from(sorted(self.topics))))

    def partition_of(self, name: str) -> None:
        topic_id, count = self.topics[name]
        replicas = self.draw(nodes)
        self.add(
            PartitionRecord(
                topic_id=topic_id,
                partition=count,
                replicas=replicas,
                isr=replicas[:1],
                leader=self.draw(st.sampled_from([-1, replicas[0]])),
                leader_epoch=self.draw(st.integers(0, 3)),
                partition_epoch=self.draw(st.integers(0, 3)),
                leader_recovery_state=self.draw(recovery),
            )
        )
        self.topics[name] = (topic_id, count + 1)

    def change_partitions(self) -> None:
        chosen = self.draw(st.lists(st.sampled_from(sorted(self.topics)), min_size=1, unique=True))
        partitions = []
        for name in chosen:
            topic_id, count = self.topics[name]
            numbers = self.draw(st.lists(st.integers(0, count - 1), min_size=1, unique=True))
            partitions.append((topic_id, tuple(numbers)))
        self.add(
            PartitionChangeRecord(
                partitions=tuple(partitions),
                isr=self.draw(st.none() | nodes),
                leader=self.draw(st.none() | st.integers(-1, 4)),
                leader_recovery_state=self.draw(st.none() | recovery),
                replicas=self.draw(st.none() | nodes),
                elr=self.draw(st.none() | st.just(()) | nodes),
                last_known_elr=self.draw(st.none() | st.just(()) | nodes),
            )
        )

    def remove_topic(self) -> None:
        name = self.draw(st.sampled_from(sorted(self.topics)))
        self.add(RemoveTopicRecord(topic_id=self.topics.pop(name)[0]))

    def register(self) -> None:
        node_id = self.draw(st.integers(1, 4))
        self.brokers[node_id] = len(self.records)
        self.add(
            RegisterBrokerRecord(
                node_id=node_id,
                incarnation_id=self.draw(st.uuids()),
                listeners=(Listener("PLAINTEXT", self.draw(st.text(max_size=5)), self.draw(st.integers(0, 65535))),),
                rack=self.draw(st.none() | st.sampled_from(["r1", "r2"])),
                fenced=self.draw(st.booleans()),
                in_controlled_shutdown=self.draw(st.booleans()),
                features=self.draw(st.sampled_from([(), (FeatureSupport("transaction.version", 0, 2),)])),
                log_dirs=tuple(self.draw(st.lists(st.uuids(), max_size=2))),
            )
        )

    def change_broker(self) -> None:
        node_id = self.draw(st.sampled_from(sorted(self.brokers)))
        maybe = st.none() | st.booleans()
        self.add(
            BrokerChangeRecord(
                node_id=node_id,
                broker_epoch=self.brokers[node_id],
                fenced=self.draw(maybe),
                in_controlled_shutdown=self.draw(maybe),
            )
        )

    def unregister(self) -> None:
        node_id = self.draw(st.sampled_from(sorted(self.brokers)))
        self.add(UnregisterBrokerRecord(node_id=node_id, broker_epoch=self.brokers.pop(node_id)))

    def configure(self) -> None:
        topics = [ConfigResource(ConfigResourceType.TOPIC, name) for name in sorted(self.topics)]
        brokers = [ConfigResource(ConfigResourceType.BROKER, name) for name in ("", "1")]
        resource = self.draw(st.sampled_from(topics + brokers))
        value = self.draw(st.none() | st.text(max_size=4))
        self.add(ConfigRecord(resource=resource, key=self.draw(st.sampled_from(["x", "y"])), value=value))

    def administer(self) -> None:
        names = st.none() | st.sampled_from(["alice", "Bob ☃"])
        kinds = self.draw(st.sets(st.sampled_from(["user", "client-id"]), min_size=1))
        credential = ScramCredential(
            salt=self.draw(st.binary(max_size=4)),
            stored_key=self.draw(st.binary(max_size=4)),
            server_key=b"",
            iterations=4096,
        )
        owner = ScramOwner(self.draw(st.sampled_from(["alice", "bob"])), self.draw(st.sampled_from(ScramMechanism)))
        choices: list[MetadataRecord] = [
            ClientQuotaRecord(
                entity=quota_entity({kind: self.draw(names) for kind in kinds}),
                key=self.draw(st.sampled_from(["x", "y"])),
                value=self.draw(st.none() | st.floats(0.5, 1e18)),
            ),
            ScramCredentialRecord(owner=owner, credential=self.draw(st.none() | st.just(credential))),
            FeatureLevelRecord(name="transaction.version", level=self.draw(st.integers(0, 2))),
            FeatureLevelRecord(name="metadata.version", level=self.draw(st.integers(22, 23))),
        ]
        self.add(self.draw(st.sampled_from(choices)))

    def small_things(self) -> None:
        self.epoch += 1
        next_id = 1000 * self.epoch
        choices: list[MetadataRecord] = [
            ControllerChangeRecord(controller_id=1, epoch=self.epoch),
            ProducerIdsRecord(node_id=1, broker_epoch=0, next_producer_id=next_id),
            ClusterRecord(cluster_id=f"cluster-{self.epoch}"),
        ]
        self.add(self.draw(st.sampled_from(choices)))


@st.composite
def histories(draw: st.DrawFn) -> list[MetadataRecord]:
    """A legal log from its first record."""
    history = History(draw)
    for _ in range(draw(st.integers(0, 25))):
        history.step()
    return history.records
