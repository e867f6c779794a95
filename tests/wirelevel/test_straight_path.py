"""Requests that look like one before take the straight path. It must make no difference, but for the time they take.

One connection sends all requests for one topic, many of them at once; each request for the other topic has a connection
of its own, which has seen none before and so takes the general path. Answers and logs have to be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strandline.records import Codec, Record, build_batch
from strandline.wire.api import ApiKey
from strandline.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.registry import decode_response, encode_request
from tests.broker import BrokerProcess, running_broker
from tests.moments import T0
from tests.wirelevel.raw import LENGTH, Closed, RawConnection, connected, create_topic

VERSIONS = range(6, 14)
FIRST_FLEXIBLE = 9
NO_ID = UUID(int=0)
LARGE = 300_000  # written by a thread: what follows must not overtake it


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("straight") / "data") as running:
        yield running


class Step(NamedTuple):
    """One request, for whatever topic."""

    version: int
    acks: int
    client_id: str
    batches: dict[int, bytes]
    """By partition."""
    tags: bytes = b"\x00"
    """How the request ends in flexible versions."""

    def frame(self, topic: str, topic_id: UUID, correlation_id: int) -> bytes:
        data = [PartitionProduceData(index=index, records=records) for index, records in self.batches.items()]
        request = ProduceRequest(
            acks=self.acks,
            timeout_ms=5000,
            topic_data=[TopicProduceData(name=topic, topic_id=topic_id, partition_data=data)],
        )
        frame = encode_request(ApiKey.PRODUCE, self.version, correlation_id, self.client_id, request)
        if self.version >= FIRST_FLEXIBLE:
            frame = frame[:-1] + self.tags
        return LENGTH.pack(len(frame)) + frame


def batch_of(
    count: int, codec: Codec, producer: int, sequence: int, flaw: str, *, epoch: int = 0, size: int = 100
) -> bytes:
    timestamp = 2 * T0 if flaw == "future" else T0
    records = [Record(index, timestamp, b"key", b"v" * size) for index in range(count)]
    batch = build_batch(records, codec=codec)
    if producer >= 0:
        batch = build_batch(records, codec=codec, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
    match flaw:
        case "checksum":
            batch[-1] ^= 1
        case "offset":
            batch[7] = 1
        case "magic":
            batch[16] = 1
        case "cut":
            return bytes(batch[:-5])
        case "two":
            return bytes(2 * batch)
    return bytes(batch)


FLAWS = ("", "", "", "", "", "", "checksum", "offset", "magic", "future", "cut", "two")
BATCHES = st.builds(
    batch_of,
    st.integers(1, 3),
    st.sampled_from((Codec.NONE, Codec.NONE, Codec.ZSTD)),
    st.sampled_from((-1, -1, 7, 8)),
    st.integers(0, 6),
    st.sampled_from(FLAWS),
    epoch=st.sampled_from((0, 0, 0, 1)),
    size=st.sampled_from((10, 100, 100, 100, 20_000, LARGE)),
)
PARTITIONS = st.sampled_from(((0,), (0,), (0,), (1,), (0, 1)))


@st.composite
def bursts(draw: st.DrawFn) -> list[list[Step]]:
    """Requests that are sent together. Most of an example begin alike, as those of one producer do."""
    usual = draw(st.sampled_from(VERSIONS))
    steps = st.builds(
        lambda version, acks, client_id, partitions, batch, tags: Step(
            version, acks, client_id, {partition: batch for partition in partitions}, tags
        ),
        st.sampled_from((usual, usual, usual, 8)),
        st.sampled_from((-1, -1, -1, 1)),
        st.sampled_from(("one", "one", "one", "another one")),
        PARTITIONS,
        BATCHES,
        st.sampled_from((b"\x00", b"\x00", b"\x00", b"\x01\x63\x02ab")),
    )
    return draw(st.lists(st.lists(steps, min_size=1, max_size=5), min_size=2, max_size=8))


def topic_with_id(connection: RawConnection, name: str) -> UUID:
    create_topic(connection, name, partitions=2)
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
    (found,) = connection.call(ApiKey.METADATA, 12, request).topics
    topic_id: UUID = found.topic_id
    return topic_id


def answer_of(connection: RawConnection, version: int) -> object:
    """What the answer says, but for the name of its topic, which error messages repeat."""
    try:
        _, response = decode_response(ApiKey.PRODUCE, version, memoryview(connection.receive_frame()))
    except Closed:
        return "closed"
    return [
        (
            row.index,
            row.error_code,
            row.base_offset,
            row.log_append_time_ms,
            row.log_start_offset,
            [error.batch_index for error in row.record_errors],
        )
        for topic in response.responses
        for row in topic.partition_responses
    ]


def log_of(broker: BrokerProcess, topic: str, partition: int) -> bytes:
    return Path(broker.data_dir, "logs", f"{topic}-{partition}", f"{0:020}.log").read_bytes()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(bursts=bursts())
def test_it_makes_no_difference(
    broker: BrokerProcess, unique_name: Callable[[], str], bursts: list[list[Step]]
) -> None:
    straight, general = unique_name(), unique_name()
    answers = []
    with connected(broker.bootstrap) as one:
        straight_id, general_id = topic_with_id(one, straight), topic_with_id(one, general)
        for burst in [[ordinary(burst[0].version)] for burst in bursts] + bursts:
            one.send_bytes(b"".join(step.frame(straight, straight_id, number) for number, step in enumerate(burst)))
            answers += [(step, answer_of(one, step.version)) for step in burst]
    for step, answer in answers:
        with connected(broker.bootstrap) as another:
            another.send_bytes(step.frame(general, general_id, 0))
            assert answer_of(another, step.version) == answer
    for partition in (0, 1):
        assert log_of(broker, straight, partition) == log_of(broker, general, partition)


def ordinary(version: int = 9, acks: int = -1) -> Step:
    return Step(version, acks, "one", {0: batch_of(1, Codec.NONE, -1, 0, "")})


@pytest.mark.parametrize("version", [7, 9, 12])
def test_a_topic_that_was_created_again_is_another_topic(
    broker: BrokerProcess, unique_name: Callable[[], str], version: int
) -> None:
    topic = unique_name()
    with connected(broker.bootstrap) as connection:
        create_topic(connection, topic)
        for _ in range(2):
            for offset in range(3):
                connection.send_bytes(ordinary(version).frame(topic, NO_ID, offset))
                assert f"0, {offset}, -1, 0" in str(answer_of(connection, version))
            deleted = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=20_000)
            assert connection.call(ApiKey.DELETE_TOPICS, 6, deleted).responses[0].error_code == 0
            connection.send_bytes(ordinary(version).frame(topic, NO_ID, 9))
            assert "(0, 3, -1" in str(answer_of(connection, version))  # UNKNOWN_TOPIC_OR_PARTITION
            create_topic(connection, topic)


def test_the_id_of_a_topic_that_was_created_again_is_not_known_any_more(
    broker: BrokerProcess, unique_name: Callable[[], str]
) -> None:
    topic = unique_name()
    with connected(broker.bootstrap) as connection:
        first_id = topic_with_id(connection, topic)
        for offset in range(3):
            connection.send_bytes(ordinary(13).frame(topic, first_id, offset))
            assert f"(0, 0, {offset}, -1, 0" in str(answer_of(connection, 13))
        deleted = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=20_000)
        assert connection.call(ApiKey.DELETE_TOPICS, 6, deleted).responses[0].error_code == 0
        second_id = topic_with_id(connection, topic)
        for _ in range(2):
            connection.send_bytes(ordinary(13).frame(topic, first_id, 9))
            assert "(0, 100, -1" in str(answer_of(connection, 13))  # UNKNOWN_TOPIC_ID
        connection.send_bytes(ordinary(13).frame(topic, second_id, 9))
        assert "(0, 0, 0, -1, 0" in str(answer_of(connection, 13))


def test_requests_without_an_answer_lie_between_others(broker: BrokerProcess, unique_name: Callable[[], str]) -> None:
    topic = unique_name()
    with connected(broker.bootstrap) as connection:
        create_topic(connection, topic)
        acks = [-1, -1, 0, -1, 0, 0, 1, -1]
        frames = [ordinary(acks=wanted).frame(topic, NO_ID, number) for number, wanted in enumerate(acks)]
        connection.send_bytes(b"".join(frames))
        answered = [connection.receive(ApiKey.PRODUCE, 9) for wanted in acks if wanted]
    offsets = [(number, one.responses[0].partition_responses[0].base_offset) for number, one in answered]
    assert offsets == [(number, number) for number, wanted in enumerate(acks) if wanted]


def test_a_client_that_reads_late_gets_every_answer(broker: BrokerProcess, unique_name: Callable[[], str]) -> None:
    topic, count = unique_name(), 20_000
    step = ordinary()
    with connected(broker.bootstrap, receive_buffer=4096) as connection:
        create_topic(connection, topic)
        connection.socket.setblocking(False)
        waiting, answers = memoryview(b"".join(step.frame(topic, NO_ID, n) for n in range(count))), 0
        sent = 0
        while sent < len(waiting):  # until the broker does not take more, since nobody reads its answers
            try:
                sent += connection.socket.send(waiting[sent : sent + 65536])
            except BlockingIOError:
                break
        connection.socket.settimeout(20)
        while answers < count:
            number, response = connection.receive(ApiKey.PRODUCE, 9)
            assert (number, response.responses[0].partition_responses[0].base_offset) == (answers, answers)
            answers += 1
            if sent < len(waiting):
                sent += connection.socket.send(waiting[sent : sent + 1000])
    assert log_of(broker, topic, 0).count(b"key") == count


def test_a_request_that_is_cut_inside_its_tags_writes_nothing(
    broker: BrokerProcess, unique_name: Callable[[], str]
) -> None:
    topic = unique_name()
    with connected(broker.bootstrap) as connection:
        create_topic(connection, topic)
        for number in range(2):
            connection.send_bytes(ordinary().frame(topic, NO_ID, number))
            connection.receive_frame()
        connection.send_bytes(ordinary()._replace(tags=b"\x01").frame(topic, NO_ID, 2))
        connection.wait_closed()
    assert log_of(broker, topic, 0).count(b"key") == 2


def test_an_answer_never_overtakes_one_that_waits(broker: BrokerProcess, unique_name: Callable[[], str]) -> None:
    classic, diskless = unique_name(), unique_name()
    with connected(broker.bootstrap) as connection:
        create_topic(connection, classic)
        create_topic(connection, diskless, diskless_enable="true")
        for number in range(60):
            topic = diskless if number % 3 == 2 else classic  # two in a row, so that the straight path is taken
            connection.send_bytes(ordinary().frame(topic, NO_ID, number))
        assert [connection.receive(ApiKey.PRODUCE, 9)[0] for _ in range(60)] == list(range(60))
