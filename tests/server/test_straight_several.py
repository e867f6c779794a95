"""Requests with several partitions on the straight path: each partition is decided by itself, in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from strandline.errors import StrandlineError, UnknownTopicOrPartition
from strandline.hybrid.partitions import Partitions
from strandline.hybrid.remote.topics import TieredTopics
from strandline.model import GROUP_METADATA_TOPIC, TopicPartition
from strandline.replication import Partition
from strandline.server.straight_several import IN_ITS_PLACE, PartitionRoutes
from strandline.wire.api import ApiKey
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.produce_codec import ProduceAnswer
from strandline.wire.produce_places import find_topics
from strandline.wire.registry import decode_response, encode_request, read_request_header
from tests.replication.conftest import NODE, TOPIC_ID, Fixture, batch, image
from tests.replication.conftest import fixture as fixture
from tests.replication.test_append_now import STATES, size_on_disk, transactional
from tests.replication.test_partition import append

VERSION = 9


def partition_of(fixture: Fixture, number: int, topic: str = "topic") -> Partition:
    """A partition whose log has begun its segment and its epoch, and that knows producer 5."""
    name = TopicPartition(topic, number)
    log = fixture.logs.get_or_create(name, TOPIC_ID, fixture.config())
    partition = Partition(name, TOPIC_ID, log, node_id=NODE, writer=fixture.writer)
    partition.follow(image())
    append(partition, batch(b"first", producer_id=5, sequence=0))
    return partition


def served(*replicas: Partition) -> Partitions:
    def missing(topic: str, partition: int) -> StrandlineError:
        return UnknownTopicOrPartition(f"{topic}-{partition}")

    partitions = Partitions(TieredTopics(), topic_name=lambda _: "topic", why_missing=missing)
    for replica in replicas:
        partitions.replica_changed(replica)
    return partitions


def serve(
    routes: PartitionRoutes, records: Sequence[tuple[int, memoryview]], topic: str = "topic"
) -> tuple[bytes | None, list[ProduceAnswer]]:
    data = [PartitionProduceData(index=index, records=bytes(one)) for index, one in records]
    request = ProduceRequest(acks=-1, timeout_ms=5, topic_data=[TopicProduceData(name=topic, partition_data=data)])
    frame = memoryview(bytearray(encode_request(ApiKey.PRODUCE, VERSION, 3, "client", request)))
    topics_at = find_topics(frame, read_request_header(frame)[1], VERSION)
    answer, begun, done = routes.serve(frame, topics_at, len(frame), VERSION, 3)
    assert done == (len(records) if answer is not None else len(begun)) or (answer, begun, done) == IN_ITS_PLACE
    return answer, begun


def ends(*replicas: Partition) -> list[int]:
    return [replica.log.reserved_end for replica in replicas]


def success(offset: int) -> ProduceAnswer:
    return ProduceAnswer(0, offset, -1, 0)


async def test_every_partition_is_written_and_answered(fixture: Fixture) -> None:
    replicas = [partition_of(fixture, number) for number in range(3)]
    partitions = served(*replicas)
    routes = PartitionRoutes(partitions)
    append(replicas[1], transactional(1))
    batches = [
        (2, batch(b"a", b"b")),
        (0, batch(b"c", producer_id=5, sequence=1)),
        (1, transactional(2)),
        (2, batch(b"d")),
    ]
    answer, begun = serve(routes, batches)
    assert answer is not None
    assert begun == []
    number, response = decode_response(ApiKey.PRODUCE, VERSION, memoryview(answer)[4:])
    (topic,) = response.responses
    rows = [(row.index, row.error_code, row.base_offset, row.log_start_offset) for row in topic.partition_responses]
    assert (number, rows) == (3, [(2, 0, 1, 0), (0, 0, 1, 0), (1, 0, 2, 0), (2, 0, 3, 0)])
    assert [replica.log.high_watermark for replica in replicas] == [2, 3, 4]
    totals = partitions.traffic["topic"].totals()
    assert (totals.produce_requests, totals.messages_in) == (4, 5)
    assert totals.bytes_in == sum(len(records) for _, records in batches)


@pytest.mark.parametrize("change", STATES, ids=lambda change: change.__name__)
async def test_those_before_one_that_goes_the_general_way_keep_their_answers(
    fixture: Fixture, change: Callable[[Partition], None]
) -> None:
    first, second, third = replicas = [partition_of(fixture, number) for number in range(3)]
    partitions = served(*replicas)
    routes = PartitionRoutes(partitions)
    change(second)
    before = ends(second, third), size_on_disk(second), size_on_disk(third)
    assert serve(routes, [(0, batch(b"a")), (1, batch(b"b")), (2, batch(b"c"))]) == (None, [success(1)])
    assert (ends(second, third), size_on_disk(second), size_on_disk(third)) == before
    assert ends(first) == [2]
    assert partitions.traffic["topic"].totals().produce_requests == 1, "the general path counts the others"
    assert serve(routes, [(1, batch(b"b")), (0, batch(b"a"))]) == (None, [])
    assert ends(first) == [2], "what follows must not overtake it"
    second.log.appender.abandon()  # else the log could not be closed


async def test_a_batch_that_is_refused_holds_up_those_behind_it(fixture: Fixture) -> None:
    replicas = [partition_of(fixture, number) for number in range(2)]
    routes = PartitionRoutes(served(*replicas))
    gap, next_one = batch(b"x", producer_id=5, sequence=3), batch(b"x", producer_id=5, sequence=1)
    assert serve(routes, [(0, next_one), (1, gap), (1, batch(b"y"))]) == (None, [success(1)])
    assert ends(*replicas) == [2, 1]


@pytest.mark.parametrize("unknown", [7, -1])
async def test_nothing_is_written_if_one_partition_is_not_known(fixture: Fixture, unknown: int) -> None:
    replica = partition_of(fixture, 0)
    routes = PartitionRoutes(served(replica))
    assert serve(routes, [(0, batch(b"a")), (unknown, batch(b"b"))]) == (None, [])
    assert ends(replica) == [1]


async def test_who_may_write_to_internal_topics_is_not_decided_here(fixture: Fixture) -> None:
    replica = partition_of(fixture, 0, GROUP_METADATA_TOPIC)
    routes = PartitionRoutes(served(replica))
    assert serve(routes, [(0, batch(b"a")), (0, batch(b"b"))], GROUP_METADATA_TOPIC) == (None, [])
    assert ends(replica) == [1]


async def test_a_partition_that_comes_instead_of_another_is_found(fixture: Fixture) -> None:
    old, other = partition_of(fixture, 0), partition_of(fixture, 1)
    partitions = served(old)
    routes = PartitionRoutes(partitions)
    assert serve(routes, [(0, batch(b"a"))])[0] is not None
    partitions.replica_removed(old, is_deleted=True)
    new = Partition(TopicPartition("topic", 0), TOPIC_ID, other.log, node_id=NODE, writer=fixture.writer)
    new.follow(image())
    partitions.replica_changed(new)
    assert serve(routes, [(0, batch(b"b"))])[0] is not None
    assert ends(old, new) == [2, 2]
