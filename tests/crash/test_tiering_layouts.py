"""Random logs on two brokers: clients read the same bytes before, during and after their conversion, from each broker."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from strandline.records import Codec, Record, build_batch
from strandline.tiering.client import TieringClient
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.clients.drivers import ConfluentDriver
from tests.clients.switching import HYBRID, described_state, switch
from tests.clients.tiering import alter
from tests.clients.two_brokers import BrokerCluster, running_cluster
from tests.crash.converting import SETTINGS, Partition, is_converted, read_log
from tests.moments import T0
from tests.postgres import postgres, postgres_url
from tests.tiering.world import Pipeline
from tests.waiting import wait_until

__all__ = ["postgres", "postgres_url"]

pytestmark = pytest.mark.timeout(240)

SEED = 12
CLASSIC = {"remote.storage.enable": "true", "internal.segment.bytes": "3000", "local.retention.bytes": "1"}
DISKLESS = {"diskless.enable": "true"}
TOPICS = {
    "created": {**DISKLESS, "local.retention.ms": "-1"},
    "stamped": {**DISKLESS, "local.retention.ms": "-1", "message.timestamp.type": "LogAppendTime"},
    "switched": {**CLASSIC, "retention.ms": "-1"},
}


@pytest.fixture
def cluster(tmp_path: Path, postgres_url: str) -> Iterator[BrokerCluster]:
    shared = {
        **SETTINGS,
        "strandline.objects.url": f"file://{tmp_path}/objects",
        "rsm.config.url": f"file://{tmp_path}/remote",
        "inkless.tiering.max.segment.bytes": "6000",
    }
    with running_cluster(tmp_path, postgres_url, settings=shared) as running:
        yield running


@dataclass
class Writers:
    """Producers with ids of their own, which send through whichever broker, some batches twice."""

    cluster: BrokerCluster
    chance: random.Random
    sequences: dict[tuple[Partition, int], int] = field(default_factory=dict)

    def write(self, where: Partition, node_id: int, batches: int) -> None:
        with Client.connect("127.0.0.1", self.cluster.brokers[node_id].port) as client:
            for _ in range(batches):
                data = self._batch(where)
                first = self._send(client, where, data)
                if self.chance.random() < 0.3:
                    again = self._send(client, where, data)
                    assert again == first, "a duplicate gets the offset of the first"

    def _batch(self, where: Partition) -> bytes:
        chance = self.chance
        records = [
            Record(number, T0 + chance.randrange(10_000), b"k" * chance.randrange(5), chance.randbytes(40))
            for number in range(chance.randrange(1, 12))
        ]
        producer = chance.randrange(1, 4)
        sequence = self.sequences.get((where, producer), 0)
        self.sequences[where, producer] = sequence + len(records)
        codec = chance.choice(list(Codec))
        return bytes(
            build_batch(records, codec=codec, producer_id=producer, producer_epoch=0, base_sequence=sequence)
        )

    def _send(self, client: Client, where: Partition, data: bytes) -> int:
        rows = [PartitionProduceData(index=where[1], records=data)]
        topics = [TopicProduceData(name=where[0], partition_data=rows)]
        request = ProduceRequest(acks=-1, timeout_ms=20_000, topic_data=topics)

        def send() -> tuple[int] | None:
            answer = client.request(ApiKey.PRODUCE, request, version=12)
            found = answer.responses[0].partition_responses[0]  # type: ignore[attr-defined]
            error = ErrorCode(found.error_code)
            assert error in (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER), found.error_message
            return (found.base_offset,) if error is ErrorCode.NONE else None

        return wait_until(send, what=f"a batch of {where}")[0]


def delete_before(cluster: BrokerCluster, where: Partition, offset: int) -> None:
    node_id = cluster.leaders(where[0], 1)[where[1]]
    rows = [DeleteRecordsPartition(partition_index=where[1], offset=offset)]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=where[0], partitions=rows)])
    with Client.connect("127.0.0.1", cluster.brokers[node_id].port) as client:
        answer = client.request(ApiKey.DELETE_RECORDS, request)
    assert answer.topics[0].partitions[0].error_code == 0  # type: ignore[attr-defined]


def test_random_logs_are_the_same_before_during_and_after_conversion(cluster: BrokerCluster) -> None:
    chance = random.Random(SEED)
    for topic, config in TOPICS.items():
        cluster.create(topic, partitions=2, via=1, config=config)
    where = [(topic, number) for topic in TOPICS for number in range(2)]
    writers = Writers(cluster, chance)
    for one in where:
        leader = cluster.leaders(one[0], 1)[one[1]]
        writers.write(one, leader, chance.randrange(4, 9))
    switch(cluster.admin(1), "switched")
    wait_until(lambda: described_state(cluster.admin(1), "switched") == HYBRID, within=60, what="the switch")
    alter(cluster.admin(1), "switched", {"local.retention.ms": "-1"})

    def read_from(node_id: int, one: Partition) -> bytes:
        """What was written before a switch is the leader's alone."""
        chosen = cluster.leaders(one[0], node_id)[one[1]] if one[0] == "switched" else node_id
        return read_log(cluster.brokers[chosen].bootstrap, *one)

    def same(expected: dict[Partition, bytes], *node_ids: int) -> None:
        for node_id in node_ids:
            for one, data in expected.items():
                assert read_from(node_id, one) == data, f"{one} of broker {node_id}"

    for turn in range(2):
        for one in where:
            for node_id in (1, 2, 1):
                writers.write(one, node_id, chance.randrange(1, 4))
        delete_before(cluster, where[turn], chance.randrange(5, 25))
        if turn == 0:
            cluster.brokers[2].restart()  # other leader epochs
            cluster.wait_alive(1, 2)
            for topic in TOPICS:
                cluster.wait_led(topic, 2)
        before = {one: read_from(1, one) for one in where}
        same(before, 2)
        convert_by_steps(cluster, lambda expected=before: same(expected, chance.randrange(1, 3)))  # type: ignore[misc]
        same(before, 1, 2)
    for broker in cluster.brokers.values():
        broker.restart()
    cluster.wait_alive(1, 2)
    same(before, 1, 2)
    count = sum(1 for _ in ConfluentDriver().consume(cluster.bootstrap, "created", 5, partition=1, offset=30))
    assert count == 5


def convert_by_steps(cluster: BrokerCluster, check: Callable[[], None]) -> None:
    """Everything, and `check` after each step of the pipeline."""
    topics = tuple(TOPICS)
    with TieringClient(cluster.bootstrap) as client:
        for topic in topics:
            client.trigger(topic)
        pipeline = Pipeline(client, topics)
        for file in list(pipeline.claim(max_files=1000)):
            assert not pipeline.record(file, pipeline.write_splits(file)).refused
        check()
        while ranges := pipeline.begin():
            check()
            for chain in ranges:
                for built in pipeline.build(chain):
                    pipeline.commit(chain[0].partition, built)
                check()
    assert is_converted(cluster.bootstrap, *topics)
