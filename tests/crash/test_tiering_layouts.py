"""Random logs on two brokers: clients of each read the same bytes before, during and after their conversion."""

from __future__ import annotations

import itertools
import random  # noqa: TID251 - the seed makes it the same in each run
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from strandline.pipeline.client import TieringClient
from strandline.records import Codec, Record, build_batch
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.clients.drivers import ConfluentDriver
from tests.clients.switching import HYBRID, described_state, switch
from tests.clients.tiering import alter
from tests.clients.two_brokers import BrokerCluster, running_cluster
from tests.crash.converting import SETTINGS, Logs, Partition, is_converted, read_log
from tests.moments import T0
from tests.pipeline.world import Pipeline
from tests.postgres import postgres, postgres_url
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
PARTITIONS = [(topic, number) for topic in TOPICS for number in range(2)]


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
        return bytes(build_batch(records, codec=codec, producer_id=producer, producer_epoch=0, base_sequence=sequence))

    def _send(self, client: Client, where: Partition, data: bytes) -> int:
        rows = [PartitionProduceData(index=where[1], records=data)]
        topics = [TopicProduceData(name=where[0], partition_data=rows)]
        request = ProduceRequest(acks=-1, timeout_ms=20_000, topic_data=topics)

        def send() -> tuple[int] | None:
            answer = client.request(ApiKey.PRODUCE, request, version=12)
            found = answer.responses[0].partition_responses[0]
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
    assert answer.topics[0].partitions[0].error_code == 0


def make_topics(cluster: BrokerCluster, writers: Writers) -> None:
    """One of them has a part from the time when it was classic."""
    for topic, config in TOPICS.items():
        cluster.create(topic, partitions=2, via=1, config=config)
    for one in PARTITIONS:
        writers.write(one, cluster.leaders(one[0], 1)[one[1]], writers.chance.randrange(4, 9))
    switch(cluster.admin(1), "switched")
    wait_until(lambda: described_state(cluster.admin(1), "switched") == HYBRID, within=60, what="the switch")
    alter(cluster.admin(1), "switched", {"local.retention.ms": "-1"})


def restart(cluster: BrokerCluster, *node_ids: int) -> None:
    """They lead in other epochs then."""
    for node_id in node_ids:
        cluster.brokers[node_id].restart()
    cluster.wait_alive(1, 2)
    for topic in TOPICS:
        cluster.wait_led(topic, 2)


def read_all(cluster: BrokerCluster, node_id: int) -> Logs:
    """From one broker; but what was written before a switch is the leader's alone."""

    def whom(topic: str, partition: int) -> int:
        return cluster.leaders(topic, node_id)[partition] if topic == "switched" else node_id

    return {one: read_log(cluster.brokers[whom(*one)].bootstrap, *one) for one in PARTITIONS}


def test_random_logs_are_the_same_before_during_and_after_conversion(cluster: BrokerCluster) -> None:
    chance = random.Random(SEED)
    writers = Writers(cluster, chance)
    make_topics(cluster, writers)
    for turn in range(2):
        for one, node_id in itertools.product(PARTITIONS, (1, 2, 1)):
            writers.write(one, node_id, chance.randrange(1, 4))
        delete_before(cluster, PARTITIONS[turn], chance.randrange(5, 25))
        if turn == 0:
            restart(cluster, 2)
        before = read_all(cluster, 1)
        assert read_all(cluster, 2) == before
        for step in conversion_steps(cluster):
            assert read_all(cluster, chance.randrange(1, 3)) == before, step
        assert read_all(cluster, 1) == read_all(cluster, 2) == before
    restart(cluster, 1, 2)
    assert read_all(cluster, 1) == read_all(cluster, 2) == before
    assert len(ConfluentDriver().consume(cluster.bootstrap, "created", 5, partition=1, offset=30)) == 5


def conversion_steps(cluster: BrokerCluster) -> Iterator[str]:
    """Convert everything; the name of each step that is done."""
    topics = tuple(TOPICS)
    with TieringClient(cluster.bootstrap) as client:
        for topic in topics:
            client.trigger(topic)
        pipeline = Pipeline(client, topics)
        for file in list(pipeline.claim(max_files=1000)):
            assert not pipeline.record([file], pipeline.write_splits(file)).refused
        yield "split"
        while chains := pipeline.begin():
            yield "begun"
            for chain in chains:
                for built in pipeline.build(chain):
                    pipeline.commit(chain[0].partition, built)
                yield f"{chain[0].partition} committed"
    assert is_converted(cluster.bootstrap, *topics)
