"""Requests about classic and diskless partitions at once, in bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strandline.records import iter_headers, read_records
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from strandline.wire.messages.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from strandline.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from tests.broker import BrokerProcess, running_broker
from tests.wirelevel.raw import (
    FETCH_VERSION,
    LIST_OFFSETS_VERSION,
    PRODUCE_VERSION,
    RawConnection,
    batch,
    connected,
    create_topic,
    end_offset,
    produce,
)

LIMIT = 50_000_000


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("mixed") / "data") as broker:
        yield broker


@pytest.fixture
def raw(own: BrokerProcess) -> Iterator[RawConnection]:
    with connected(own.bootstrap) as opened:
        yield opened


@pytest.fixture
def topics(raw: RawConnection, unique_name: Callable[[], str]) -> tuple[str, str]:
    """A classic topic and a diskless one."""
    classic, diskless = unique_name(), unique_name()
    create_topic(raw, classic, partitions=2)
    create_topic(raw, diskless, partitions=2, diskless_enable="true")
    return classic, diskless


def produce_all(
    raw: RawConnection, *batches: tuple[str, int, bytes], acks: int = -1, transactional_id: str | None = None
) -> list[PartitionProduceResponse]:
    """One request with a batch for each of these partitions; the answers in the order of the request."""
    topics: dict[str, list[PartitionProduceData]] = {}
    for topic, partition, records in batches:
        topics.setdefault(topic, []).append(PartitionProduceData(index=partition, records=records))
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=name, partition_data=data) for name, data in topics.items()],
    )
    response = raw.call(ApiKey.PRODUCE, PRODUCE_VERSION, request)
    found = {(topic.name, row.index): row for topic in response.responses for row in topic.partition_responses}
    return [found[topic, partition] for topic, partition, _ in batches]


def fetch(
    raw: RawConnection,
    *wanted: tuple[str, int, int],
    wait_ms: int = 5000,
    min_bytes: int = 1,
    max_bytes: int = LIMIT,
    epoch: int = -1,
    last_epoch: int = -1,
    isolation: int = 0,
) -> dict[tuple[str, int], PartitionData]:
    """One sessionless request for (topic, partition, offset) each."""
    topics: dict[str, list[FetchPartition]] = {}
    for topic, partition, offset in wanted:
        entry = FetchPartition(
            partition=partition,
            fetch_offset=offset,
            partition_max_bytes=max_bytes,
            current_leader_epoch=epoch,
            last_fetched_epoch=last_epoch,
        )
        topics.setdefault(topic, []).append(entry)
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation,
        topics=[FetchTopic(topic=name, partitions=entries) for name, entries in topics.items()],
    )
    response = raw.call(ApiKey.FETCH, FETCH_VERSION, request)
    return {(topic.topic, row.partition_index): row for topic in response.responses for row in topic.partitions}


def values(row: PartitionData) -> list[tuple[int, bytes | None]]:
    data = row.records or b""
    return [
        (record.offset, record.value)
        for position, header in iter_headers(data)
        for record in read_records(data[position : position + header.size])
    ]


def test_one_request_writes_to_both_kinds(raw: RawConnection, topics: tuple[str, str]) -> None:
    classic, diskless = topics
    answers = produce_all(
        raw,
        (classic, 0, batch(b"a")),
        (diskless, 1, batch(b"b", b"c")),
        (diskless, 0, batch(b"d")),
        (classic, 1, batch(b"e")),
    )
    assert [(row.error_code, row.base_offset, row.log_start_offset) for row in answers] == [(0, 0, 0)] * 4
    assert [row.base_offset for row in produce_all(raw, (diskless, 1, batch(b"f")), (classic, 0, batch(b"g")))] == [
        2,
        1,
    ]
    found = fetch(raw, (classic, 0, 0), (diskless, 1, 0), (diskless, 0, 0), (classic, 1, 0))
    assert values(found[classic, 0]) == [(0, b"a"), (1, b"g")]
    assert values(found[diskless, 1]) == [(0, b"b"), (1, b"c"), (2, b"f")]
    assert values(found[diskless, 0]) == [(0, b"d")]
    assert values(found[classic, 1]) == [(0, b"e")]
    assert {row.high_watermark for row in found.values()} == {1, 2, 3}


def test_a_refusal_of_one_partition_does_not_hide_the_others(raw: RawConnection, topics: tuple[str, str]) -> None:
    classic, diskless = topics
    damaged = bytearray(batch(b"damaged"))
    damaged[-1] ^= 1
    answers = produce_all(
        raw,
        (classic, 0, bytes(damaged)),
        (classic, 1, batch(b"good")),
        (diskless, 0, bytes(damaged)),
        (diskless, 1, batch(b"good")),
        (diskless, 7, batch(b"nowhere")),
    )
    assert [row.error_code for row in answers] == [
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.NONE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert end_offset(raw, diskless, 0) == (0, 0)
    assert end_offset(raw, diskless, 1) == (0, 1)


def test_transactions_that_nobody_knows_are_refused_as_on_classic_topics(
    raw: RawConnection, topics: tuple[str, str]
) -> None:
    (found,) = raw.call(
        ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=1, coordinator_keys=["t"])
    ).coordinators
    assert found.error_code == 0
    records = batch(b"x", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    answers = produce_all(raw, (topics[0], 0, records), (topics[1], 0, records), transactional_id="t")
    assert [row.error_code for row in answers] == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
    (answer,) = produce_all(raw, (topics[1], 0, records))
    assert answer.error_code == ErrorCode.INVALID_TXN_STATE
    assert end_offset(raw, topics[1]) == (0, 0)


def test_sequences_of_an_idempotent_producer(raw: RawConnection, topics: tuple[str, str]) -> None:
    diskless = topics[1]

    def send(sequence: int, *, epoch: int = 1) -> tuple[int, int]:
        records = batch(b"x", producer_id=77, producer_epoch=epoch, base_sequence=sequence)
        return produce(raw, diskless, records)[:2]

    assert [send(0), send(1), send(2)] == [(0, 0), (0, 1), (0, 2)]
    assert send(1) == (0, 1), "a duplicate has the offset of the first time"
    assert send(9)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(3, epoch=0)[0] == ErrorCode.INVALID_PRODUCER_EPOCH
    assert end_offset(raw, diskless) == (0, 3)


def test_a_long_poll_over_both_kinds_is_woken_by_either(
    own: BrokerProcess, raw: RawConnection, topics: tuple[str, str]
) -> None:
    classic, diskless = topics
    for offset, (topic, other) in enumerate(((diskless, classic), (classic, diskless))):
        with connected(own.bootstrap) as writer:
            timer = threading.Timer(0.2, produce, (writer, topic, batch(b"news")))
            timer.start()
            found = fetch(raw, (topic, 0, 0), (other, 0, offset), wait_ms=20_000)
            timer.join()
        assert values(found[topic, 0]) == [(0, b"news")]
        assert values(found[other, 0]) == []


def test_min_bytes_counts_both_kinds(own: BrokerProcess, raw: RawConnection, topics: tuple[str, str]) -> None:
    classic, diskless = topics
    with connected(own.bootstrap) as writer:
        produce(writer, diskless, batch(b"x" * 600))
        timer = threading.Timer(0.2, produce, (writer, classic, batch(b"y" * 600)))
        timer.start()
        found = fetch(raw, (diskless, 0, 0), (classic, 0, 0), wait_ms=20_000, min_bytes=1000)
        timer.join()
    assert [len(values(row)) for row in found.values()] == [1, 1]


def test_a_poll_that_finds_too_little_answers_when_its_time_is_over(
    raw: RawConnection, topics: tuple[str, str]
) -> None:
    diskless = topics[1]
    produce(raw, diskless, batch(b"little"))
    row = fetch(raw, (diskless, 0, 0), wait_ms=100, min_bytes=100_000)[diskless, 0]
    assert values(row) == [(0, b"little")]
    row = fetch(raw, (diskless, 0, 1), wait_ms=100)[diskless, 0]
    assert (values(row), row.high_watermark, row.log_start_offset) == ([], 1, 0)


def test_leader_epochs_are_checked(raw: RawConnection, topics: tuple[str, str]) -> None:
    for topic in topics:
        assert fetch(raw, (topic, 0, 0), wait_ms=0, epoch=0)[topic, 0].error_code == ErrorCode.NONE
        newer = fetch(raw, (topic, 0, 0), wait_ms=0, epoch=5)[topic, 0]
        assert newer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert fetch(raw, (topic, 0, 0), wait_ms=0, last_epoch=0)[topic, 0].error_code == ErrorCode.NONE
    classic, diskless = (fetch(raw, (topic, 0, 0), wait_ms=0, last_epoch=5)[topic, 0] for topic in topics)
    assert (classic.error_code, classic.diverging_epoch.epoch) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    # The epoch may be that of a record which another broker with newer metadata has committed.
    assert (diskless.error_code, diskless.diverging_epoch.epoch) == (ErrorCode.NONE, -1)


def test_the_ends_of_an_empty_log_have_the_epoch_of_its_leader(raw: RawConnection, topics: tuple[str, str]) -> None:
    for topic in topics:
        for special in (-1, -2):
            asked = [ListOffsetsPartition(partition_index=0, timestamp=special)]
            request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=asked)])
            [row] = raw.call(ApiKey.LIST_OFFSETS, LIST_OFFSETS_VERSION, request).topics[0].partitions
            assert (row.error_code, row.offset, row.leader_epoch) == (0, 0, 0)


def test_the_end_of_an_epoch_is_the_end_of_the_log(raw: RawConnection, topics: tuple[str, str]) -> None:
    for topic in topics:
        produce(raw, topic, batch(b"a", b"b"))
        asked = [OffsetForLeaderPartition(partition=0, leader_epoch=epoch) for epoch in (0, 3)]
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=asked)])
        known, unknown = raw.call(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, request).topics[0].partitions
        assert (known.leader_epoch, known.end_offset) == (0, 2)
        assert (unknown.leader_epoch, unknown.end_offset) == (-1, -1)


def test_read_committed_sees_everything(raw: RawConnection, topics: tuple[str, str]) -> None:
    diskless = topics[1]
    produce(raw, diskless, batch(b"x"))
    row = fetch(raw, (diskless, 0, 0), isolation=1)[diskless, 0]
    assert (row.last_stable_offset, row.high_watermark, row.aborted_transactions) == (1, 1, [])
    assert values(row) == [(0, b"x")]


def test_offsets_outside_the_log(raw: RawConnection, topics: tuple[str, str]) -> None:
    diskless = topics[1]
    produce(raw, diskless, batch(b"x"))
    for offset in (-5, 2, 1000):
        assert fetch(raw, (diskless, 0, offset))[diskless, 0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE, offset


def test_a_large_answer_of_many_batches_arrives_whole(raw: RawConnection, topics: tuple[str, str]) -> None:
    """More views than one system call takes, and more bytes than a socket holds."""
    diskless = topics[1]
    for number in range(1500):
        raw.send(
            ApiKey.PRODUCE,
            PRODUCE_VERSION,
            ProduceRequest(
                acks=-1,
                timeout_ms=10_000,
                topic_data=[
                    TopicProduceData(
                        name=diskless,
                        partition_data=[PartitionProduceData(index=0, records=batch(b"%06d" % number * 400))],
                    )
                ],
            ),
        )
        if number >= 32:
            raw.receive(ApiKey.PRODUCE, PRODUCE_VERSION)
    for _ in range(32):
        raw.receive(ApiKey.PRODUCE, PRODUCE_VERSION)
    found = values(fetch(raw, (diskless, 0, 0))[diskless, 0])
    assert found == [(number, b"%06d" % number * 400) for number in range(1500)]


def test_a_restarted_broker_reads_what_it_has_to_ask_for(tmp_path: Path, unique_name: Callable[[], str]) -> None:
    """Nothing is in memory: the database and the object store are asked, beside classic partitions."""
    names = [unique_name() for _ in range(3)]
    with running_broker(tmp_path / "data") as broker:
        with connected(broker.bootstrap) as raw:
            create_topic(raw, names[0])
            for name in names[1:]:
                create_topic(raw, name, diskless_enable="true")
            for name in names:
                for number in range(20):
                    assert produce(raw, name, batch(b"%d" % number))[:2] == (0, number)
        broker.restart()
        with connected(broker.bootstrap) as raw:
            expected = [(number, b"%d" % number) for number in range(20)]
            for wait_ms in (0, 1000):
                found = fetch(raw, *((name, 0, 0) for name in names), wait_ms=wait_ms, min_bytes=10_000)
                assert [found[name, 0].error_code for name in names] == [0] * 3
                assert [values(found[name, 0]) for name in names] == [expected] * 3
            end = fetch(raw, *((name, 0, 20) for name in names), wait_ms=0)
            assert [(row.high_watermark, row.error_code) for row in end.values()] == [(20, 0)] * 3
