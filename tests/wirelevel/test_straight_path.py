"""Requests that look like one before take the straight path. It must make no difference, but for the time they take.

One connection sends all requests for some topics, many of them at once; each request for others like them has a
connection of its own, which has seen none before and so takes the general path. Answers and logs have to be equal.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strandline.records import Codec
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.messages.produce import PartitionProduceResponse
from strandline.wire.produce_places import find_topics
from strandline.wire.registry import decode_response
from tests.broker import BrokerProcess, running_broker
from tests.wirelevel.producing import NOBODY, NOBODY_IN_TRANSACTION, OUTSIDE, TRANSACTION, Batch, Step, Topics
from tests.wirelevel.raw import Closed, RawConnection, connected, create_topic
from tests.wirelevel.transactional import RawTransactionalProducer

VERSIONS = range(6, 14)
NO_ID = UUID(int=0)
LARGE = 300_000  # written by a thread: what follows must not overtake it
NEXT = -1  # the sequence number behind all batches before it, if they were taken


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("straight") / "data") as running:
        yield running


FLAWS = (*("",) * 32, "checksum", "offset", "length", "magic", "future", "cut", "two", "header", "null")
BATCHES = st.builds(
    Batch,
    st.integers(1, 3),
    st.sampled_from((Codec.NONE, Codec.NONE, Codec.ZSTD)),
    st.sampled_from((*(NOBODY,) * 7, 7, 8, *(TRANSACTION,) * 7, OUTSIDE, NOBODY_IN_TRANSACTION)),
    st.sampled_from((*(NEXT,) * 9, 0, 1, 2, 5)),
    st.sampled_from(FLAWS),
    st.sampled_from((*(0,) * 9, 1)),
    st.sampled_from((*(100,) * 12, *(20_000,) * 7, LARGE)),
)
PLACES = st.sampled_from((("a", 0), ("a", 0), ("a", 0), ("a", 1), ("a", 1), ("b", 0), ("b", 0), ("b", 1)))
ODD_PLACES = st.sampled_from((("a", 9), ("x", 0), ("d", 0)))


def batches_of(draw: st.DrawFn) -> tuple[tuple[str, int, Batch], ...]:
    """Of one request: for one partition, or for several, any of them more than once."""
    count = draw(st.sampled_from((3, 2, 1, 4)))
    is_odd = draw(st.integers(0, 9)) == 9
    places = [draw(ODD_PLACES if is_odd and draw(st.booleans()) else PLACES) for _ in range(count)]
    if draw(st.booleans()):  # as producers send them: sorted, so that each topic is there once
        places.sort()
    return tuple((*place, draw(BATCHES)) for place in places)


@st.composite
def steps(draw: st.DrawFn, usual: int) -> Step:
    return Step(
        draw(st.sampled_from((*(usual,) * 9, 8))),
        draw(st.sampled_from((*(-1,) * 9, 1))),
        draw(st.sampled_from((*("one",) * 9, "another one"))),
        batches_of(draw),
        draw(st.sampled_from((*(b"\x00",) * 9, b"\x01\x63\x02ab"))),
        draw(st.integers(0, 9)) == 9,
    )


@st.composite
def bursts(draw: st.DrawFn) -> list[list[Step]]:
    """Requests that are sent together. Most of an example begin alike, as those of one producer do."""
    usual = draw(st.sampled_from(VERSIONS))
    drawn = draw(st.lists(st.lists(steps(usual), min_size=1, max_size=5), min_size=2, max_size=8))
    sent: Counter[tuple[str, int, int]] = Counter()
    for letter, index, batch in beginning(usual).batches:
        sent[letter, index, batch.producer] = batch.amount
    return [[in_sequence(step, sent) for step in burst] for burst in drawn]


def in_sequence(step: Step, sent: Counter[tuple[str, int, int]]) -> Step:
    """The same with numbers instead of NEXT. `sent` are the records so far by topic, partition and producer."""
    batches = []
    for letter, index, batch in step.batches:
        numbered = batch
        if batch.sequence == NEXT:
            place = (letter, index, batch.producer)
            numbered = batch._replace(sequence=sent[place])
            sent[place] += batch.amount if not batch.flaw and not batch.epoch else 0
        batches.append((letter, index, numbered))
    return step._replace(batches=tuple(batches))


def topic_with_id(connection: RawConnection, name: str, **configs: str) -> tuple[str, UUID]:
    create_topic(connection, name, partitions=2, **configs)
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
    (found,) = connection.call(ApiKey.METADATA, 12, request).topics
    return name, found.topic_id


def new_topics(connection: RawConnection, unique_name: Callable[[], str]) -> Topics:
    topics = Topics(a=topic_with_id(connection, unique_name()), b=topic_with_id(connection, unique_name()))
    topics["d"] = topic_with_id(connection, unique_name(), diskless_enable="true")
    topics["x"] = (unique_name(), UUID(int=99))
    return topics


def answer_of(connection: RawConnection, version: int, topics: Topics) -> object:
    """What the answer says, but for the names of its topics, which error messages repeat."""
    try:
        _, response = decode_response(ApiKey.PRODUCE, version, memoryview(connection.receive_frame()))
    except Closed:
        return "closed"
    return [
        (topics.letter_of(topic.name, topic.topic_id), [result_of(row) for row in topic.partition_responses])
        for topic in response.responses
    ]


def result_of(row: PartitionProduceResponse) -> tuple[object, ...]:
    return (
        row.index,
        row.error_code,
        row.base_offset,
        row.log_append_time_ms,
        row.log_start_offset,
        [error.batch_index for error in row.record_errors],
    )


def log_of(broker: BrokerProcess, topic: str, partition: int) -> bytes:
    return Path(broker.data_dir, "logs", f"{topic}-{partition}", f"{0:020}.log").read_bytes()


def transaction_in(client: Client, name: str, *sides: Topics) -> RawTransactionalProducer:
    """A producer that has begun a transaction, and may write to every classic partition."""
    producer = RawTransactionalProducer(client, name, timeout_ms=600_000).initialised()
    partitions = [(side[letter][0], partition) for side in sides for letter in "ab" for partition in (0, 1)]
    assert set(producer.add(*partitions)) == {ErrorCode.NONE}
    return producer


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(bursts=bursts())
def test_it_makes_no_difference(
    broker: BrokerProcess, client: Client, unique_name: Callable[[], str], bursts: list[list[Step]]
) -> None:
    answers = []
    with connected(broker.bootstrap) as one:
        straight, general = new_topics(one, unique_name), new_topics(one, unique_name)
        producer = transaction_in(client, unique_name(), straight, general)
        # The transaction begins in every partition, and requests for one and for several partitions become known.
        version = bursts[0][0].version
        for burst in [[beginning(version)], [ordinary(version)], [ordinary(version, places=2)], *bursts]:
            one.send_bytes(b"".join(step.frame(straight, number, producer) for number, step in enumerate(burst)))
            answers += [(step, answer_of(one, step.version, straight)) for step in burst]
    for step, answer in answers:
        with connected(broker.bootstrap) as another:
            another.send_bytes(step.frame(general, 0, producer))
            assert answer_of(another, step.version, general) == answer
    for letter in "ab":
        for partition in (0, 1):
            logs = [log_of(broker, side[letter][0], partition) for side in (straight, general)]
            assert logs[0] == logs[1]


def beginning(version: int) -> Step:
    """The first batch of the transaction in every partition."""
    first = Batch(producer=TRANSACTION)
    return Step(version, -1, "one", tuple((letter, index, first) for letter in "ab" for index in (0, 1)))


def ordinary(version: int = 9, acks: int = -1, places: int = 1) -> Step:
    return Step(version, acks, "one", tuple(("a", index, Batch()) for index in range(places)))


def only(topic: str) -> Topics:
    return Topics(a=(topic, NO_ID))


@pytest.mark.parametrize("version", [7, 9, 12])
def test_a_topic_that_was_created_again_is_another_topic(
    broker: BrokerProcess, unique_name: Callable[[], str], version: int
) -> None:
    topic = unique_name()
    with connected(broker.bootstrap) as connection:
        create_topic(connection, topic)
        for _ in range(2):
            for offset in range(3):
                connection.send_bytes(ordinary(version).frame(only(topic), offset))
                assert f"0, {offset}, -1, 0" in str(answer_of(connection, version, only(topic)))
            deleted = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=20_000)
            assert connection.call(ApiKey.DELETE_TOPICS, 6, deleted).responses[0].error_code == 0
            connection.send_bytes(ordinary(version).frame(only(topic), 9))
            assert "(0, 3, -1" in str(answer_of(connection, version, only(topic)))  # UNKNOWN_TOPIC_OR_PARTITION
            create_topic(connection, topic)


@pytest.mark.parametrize("places", [1, 2])
def test_the_id_of_a_topic_that_was_created_again_is_not_known_any_more(
    broker: BrokerProcess, unique_name: Callable[[], str], places: int
) -> None:
    topic = unique_name()
    with connected(broker.bootstrap) as connection:
        first = Topics(a=topic_with_id(connection, topic))
        for offset in range(3):
            connection.send_bytes(ordinary(13, places=places).frame(first, offset))
            assert f"(0, 0, {offset}, -1, 0" in str(answer_of(connection, 13, first))
        deleted = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=20_000)
        assert connection.call(ApiKey.DELETE_TOPICS, 6, deleted).responses[0].error_code == 0
        second = Topics(a=topic_with_id(connection, topic))
        for _ in range(2):
            connection.send_bytes(ordinary(13, places=places).frame(first, 9))
            assert "(0, 100, -1" in str(answer_of(connection, 13, first))  # UNKNOWN_TOPIC_ID
        connection.send_bytes(ordinary(13, places=places).frame(second, 9))
        assert "(0, 0, 0, -1, 0" in str(answer_of(connection, 13, second))


def test_requests_without_an_answer_lie_between_others(broker: BrokerProcess, unique_name: Callable[[], str]) -> None:
    topic = unique_name()
    with connected(broker.bootstrap) as connection:
        create_topic(connection, topic)
        acks = [-1, -1, 0, -1, 0, 0, 1, -1]
        frames = [ordinary(acks=wanted).frame(only(topic), number) for number, wanted in enumerate(acks)]
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
        waiting, answers = memoryview(b"".join(step.frame(only(topic), n) for n in range(count))), 0
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
            connection.send_bytes(ordinary().frame(only(topic), number))
            connection.receive_frame()
        connection.send_bytes(ordinary()._replace(tags=b"\x01").frame(only(topic), 2))
        connection.wait_closed()
    assert log_of(broker, topic, 0).count(b"key") == 2


def test_a_version_below_zero_writes_nothing(broker: BrokerProcess, unique_name: Callable[[], str]) -> None:
    """Also if it has nothing before its topics: so begin those of several partitions as long as none were sent."""
    topic = unique_name()
    with connected(broker.bootstrap) as connection:
        create_topic(connection, topic)
        for number in range(2):
            connection.send_bytes(ordinary(7).frame(only(topic), number))
            connection.receive_frame()
        frame = memoryview(ordinary(7).frame(only(topic), 2))[4:]
        topics_at = find_topics(frame, 10 + len("one"), 7)
        connection.send_frame(b"\x00\x00\xff\xff" + bytes(frame[4:8]) + bytes(frame[topics_at:]))
        connection.wait_closed()
    assert log_of(broker, topic, 0).count(b"key") == 2


@pytest.mark.parametrize(
    "refused_one", [Batch(flaw="length"), Batch(producer=NOBODY_IN_TRANSACTION)], ids=["length", "no producer"]
)
@pytest.mark.parametrize("places", [1, 3], ids=["one partition", "several partitions"])
def test_a_batch_with_an_impossible_header_is_refused_by_itself(
    broker: BrokerProcess, unique_name: Callable[[], str], places: int, refused_one: Batch
) -> None:
    topic, which = unique_name(), places // 2
    with connected(broker.bootstrap) as connection:
        create_topic(connection, topic, partitions=places)
        good = ordinary(places=places)
        batches = list(good.batches)
        batches[which] = ("a", which, refused_one)
        bad = good._replace(batches=tuple(batches))
        for steps in ([good], [good, bad, good]):
            connection.send_bytes(b"".join(step.frame(only(topic), 0) for step in steps))
            for step in steps:
                _, response = connection.receive(ApiKey.PRODUCE, 9)
                refused = [row.index for row in response.responses[0].partition_responses if row.error_code]
                assert refused == ([which] if step is bad else [])


def test_an_answer_never_overtakes_one_that_waits(broker: BrokerProcess, unique_name: Callable[[], str]) -> None:
    classic, diskless = unique_name(), unique_name()
    with connected(broker.bootstrap) as connection:
        create_topic(connection, classic)
        create_topic(connection, diskless, diskless_enable="true")
        for number in range(60):
            topic = diskless if number % 3 == 2 else classic  # two in a row, so that the straight path is taken
            connection.send_bytes(ordinary().frame(only(topic), number))
        assert [connection.receive(ApiKey.PRODUCE, 9)[0] for _ in range(60)] == list(range(60))


def test_a_transaction_goes_on_in_one_partition_and_begins_in_another(
    broker: BrokerProcess, client: Client, unique_name: Callable[[], str]
) -> None:
    """The first is written straight away; the other one waits for the coordinator, and the answer for both."""
    with connected(broker.bootstrap) as connection:
        topics = new_topics(connection, unique_name)
        producer = RawTransactionalProducer(client, unique_name(), is_new=True).initialised()

        def write(*places: tuple[str, int, int]) -> object:
            batches = [(letter, index, Batch(producer=TRANSACTION, sequence=at)) for letter, index, at in places]
            connection.send_bytes(Step(12, -1, "one", tuple(batches)).frame(topics, 0, producer))
            return answer_of(connection, 12, topics)

        def good(index: int, offset: int) -> tuple[object, ...]:
            return index, 0, offset, -1, 0, []

        assert write(("a", 0, 0), ("a", 1, 0)) == [("a", [good(0, 0), good(1, 0)])]
        assert write(("a", 0, 1), ("a", 1, 1)) == [("a", [good(0, 1), good(1, 1)])]
        answer = write(("a", 0, 2), ("a", 1, 2), ("b", 0, 0), ("a", 0, 3))
        assert answer == [("a", [good(0, 2), good(1, 2)]), ("b", [good(0, 0)]), ("a", [good(0, 3)])]
        assert write(("b", 0, 1), ("a", 0, 4)) == [("b", [good(0, 1)]), ("a", [good(0, 4)])]


def test_many_large_requests_are_answered_in_their_order(broker: BrokerProcess, unique_name: Callable[[], str]) -> None:
    """As Kafka's producer sends them to sixteen partitions: each is larger than what is received at once."""
    topic, partitions, requests = unique_name(), 16, 24
    batches = tuple(("a", index, Batch(size=16_000)) for index in range(partitions))
    with connected(broker.bootstrap) as connection:
        create_topic(connection, topic, partitions=partitions)
        frames = [Step(9, -1, "one", batches).frame(only(topic), number) for number in range(requests)]
        sender = threading.Thread(target=connection.send_bytes, args=(b"".join(frames),))
        sender.start()
        for number in range(requests):
            correlation_id, response = connection.receive(ApiKey.PRODUCE, 9)
            rows = response.responses[0].partition_responses
            assert (correlation_id, [(row.index, row.error_code) for row in rows]) == (
                number,
                [(index, 0) for index in range(partitions)],
            )
            assert {row.base_offset for row in rows} == {number}
        sender.join()
    assert all(log_of(broker, topic, index).count(b"key") == requests for index in range(partitions))
