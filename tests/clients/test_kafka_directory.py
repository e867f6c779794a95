"""A log directory that Apache Kafka wrote: we start on it and give the answers that Kafka gave."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from strandline.wire.api import ApiKey
from strandline.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.broker import BrokerProcess, running_broker
from tests.clients.drivers import DRIVERS, Sent
from tests.golden import copy_of, matches, read_json
from tests.waiting import wait_until
from tests.wirelevel.raw import connected

LIST_OFFSETS_VERSION, OFFSET_FETCH_VERSION = 11, 9
LEVELS = ("read_uncommitted", "read_committed")
SECONDS = 30.0

# As Kafka ran: its internal topics have few partitions, nothing is cleaned or deleted while we look.
SETTINGS = {
    "node.id": "1",
    "offsets.topic.num.partitions": "3",
    "auto.create.topics.enable": "false",
    "log.segment.delete.delay.ms": "600000",
    # The members of Kafka's consumer groups do not come back: their sessions last longer than the tests.
    "group.consumer.session.timeout.ms": "3600000",
    "group.consumer.max.session.timeout.ms": "3600000",
    # The transaction that Kafka left open took too long by now: it is aborted later than the tests end.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "3600000",
}


@pytest.fixture(scope="module")
def expected(kafka_classic: Path) -> Path:
    return kafka_classic / "expected" / "classic"


@pytest.fixture(scope="module")
def broker(kafka_classic: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    home = tmp_path_factory.mktemp("adopted")
    logs = copy_of(kafka_classic / "classic", home / "logs")
    with running_broker(home / "data", {**SETTINGS, "log.dirs": str(logs)}) as running:
        yield running


def split(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)


def visible_records(broker: BrokerProcess, partitions: list[str], isolation: str) -> dict[str, list[Message]]:
    """Every record that a consumer gets, by partition."""
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "unused",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "isolation.level": isolation,
        "check.crcs": True,
    }
    found: dict[str, list[Message]] = {name: [] for name in partitions}
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(*split(name)) for name in partitions])
        at_end: set[str] = set()
        while len(at_end) < len(partitions):
            message = consumer.poll(SECONDS)
            assert message is not None, f"no end of {set(partitions) - at_end}"
            name = f"{message.topic()}-{message.partition()}"
            error = message.error()
            if error is None:
                found[name].append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                at_end.add(name)
            else:
                raise KafkaException(error)
    return found


def wrong_offsets(
    broker: BrokerProcess, answers: Mapping[str, Any], *, is_asked: Callable[[str], bool] = lambda _: True
) -> Iterator[str]:
    """Where our offsets by time are not Kafka's `answers`, which are by partition, isolation and question."""
    with connected(broker.bootstrap) as connection:
        for (name, by_isolation), (level, isolation) in itertools.product(answers.items(), enumerate(LEVELS)):
            topic, partition = split(name)
            for asked in filter(is_asked, by_isolation[isolation]):
                entry = ListOffsetsPartition(partition_index=partition, timestamp=int(asked.split()[0]))
                request = ListOffsetsRequest(
                    replica_id=-1,
                    isolation_level=level,
                    topics=[ListOffsetsTopic(name=topic, partitions=[entry])],
                    timeout_ms=5000,
                )
                response = connection.call(ApiKey.LIST_OFFSETS, LIST_OFFSETS_VERSION, request)
                [got] = response.topics[0].partitions
                answer = by_isolation[isolation][asked]
                if (got.error_code, got.offset, got.timestamp) != (0, answer["offset"], answer["timestamp"]):
                    yield f"{name} {isolation} {asked}: {got}, but Kafka says {answer}"


@pytest.mark.parametrize("isolation", LEVELS)
def test_consumers_see_what_kafkas_consumers_saw(broker: BrokerProcess, expected: Path, isolation: str) -> None:
    visible = read_json(expected / "visible_offsets.json")

    found = visible_records(broker, list(visible), isolation)

    for name, answer in visible.items():
        offsets = [offset for first, last in answer[isolation]["offsets"] for offset in range(first, last + 1)]
        assert [message.offset() for message in found[name]] == offsets, name
        records = all_records(expected, name)
        for message in found[name]:
            assert_same(message, records[message.offset() or 0], name)


def all_records(expected: Path, name: str) -> dict[int, dict[str, Any]]:
    """What Kafka says is in the files of a partition, by offset; with the timestamp type of its batch."""
    segments = read_json(expected / "records" / f"{name}.json")["segments"]
    return {record["offset"]: record for one in segments for batch in one["batches"] for record in batch["records"]}


def assert_same(message: Message, record: dict[str, Any], name: str) -> None:
    where = f"{name} at {record['offset']}"
    assert matches(message.key(), record["key"]), where
    assert matches(message.value(), record["value"]), where
    headers: Any = message.headers() or []
    assert [key for key, _ in headers] == [key for key, _ in record.get("headers", [])], where
    for (_, value), (_, described) in zip(headers, record.get("headers", []), strict=True):
        assert matches(value, described), where


def test_offsets_are_kafkas(broker: BrokerProcess, expected: Path) -> None:
    """Every special timestamp and many times, at both isolation levels."""
    answers = read_json(expected / "list_offsets.json")
    # Written to when it is taken over: offsets that Kafka stored without a topic id are stored again with one, and the
    # sessions of members end.
    others = {name: answer for name, answer in answers.items() if not name.startswith("__consumer_offsets-")}
    assert list(wrong_offsets(broker, others)) == []


def test_committed_offsets_are_kafkas(broker: BrokerProcess, expected: Path) -> None:
    """Share groups come with the protocol that made them."""
    groups = {name: group for name, group in read_json(expected / "groups.json").items() if group["type"] != "Share"}
    with connected(broker.bootstrap) as connection:
        for name, group in groups.items():

            def fetched(name: str = name) -> Any:
                asked = OffsetFetchRequestGroup(group_id=name, topics=None)
                request = OffsetFetchRequest(groups=[asked], require_stable=True)
                [answer] = connection.call(ApiKey.OFFSET_FETCH, OFFSET_FETCH_VERSION, request).groups
                return answer if answer.error_code == 0 else None

            answer = wait_until(fetched, what=f"the offsets of {name}")
            offsets = {
                f"{topic.name}-{one.partition_index}": (one.committed_offset, one.metadata or "")
                for topic in answer.topics
                for one in topic.partitions
            }
            assert offsets == {
                place: (committed["offset"], committed["metadata"] or "")
                for place, committed in group["offsets"].items()
            }, name


def test_consumer_groups_are_kafkas(broker: BrokerProcess, expected: Path) -> None:
    """Members, epochs and assignments of the groups of KIP-848, as Kafka described them."""
    kafkas = {name: group for name, group in read_json(expected / "groups.json").items() if group["type"] == "Consumer"}
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for name, future in admin.describe_consumer_groups(list(kafkas)).items():
        group, kafkas_group = future.result(SECONDS), kafkas[name]
        assert group.state.name == kafkas_group["describe_state"].upper(), name
        assert group.partition_assignor == kafkas_group["assignor"]
        members = {
            member.member_id: (
                member.group_instance_id,
                member.client_id,
                member.host,
                sorted(f"{one.topic}-{one.partition}" for one in member.assignment.topic_partitions),
            )
            for member in group.members
        }
        assert members == {
            member["member_id"]: (member["instance_id"], member["client_id"], member["host"], member["assignment"])
            for member in kafkas_group["members"]
        }
    with connected(broker.bootstrap) as connection:
        request = ConsumerGroupDescribeRequest(group_ids=list(kafkas))
        for found in connection.call(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, request).groups:
            epochs = (found.group_epoch, found.assignment_epoch)
            described = kafkas[found.group_id]
            assert epochs == (described["group_epoch"], described["target_assignment_epoch"])
            assert {member.member_id: member.member_epoch for member in found.members} == {
                member["member_id"]: member["member_epoch"] for member in described["members"]
            }


def test_topics_are_kafkas(broker: BrokerProcess, expected: Path) -> None:
    topics = read_json(expected / "topics.json")
    found = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=SECONDS).topics
    assert {name: len(topic.partitions) for name, topic in found.items()} == {
        name: topic["partitions"] for name, topic in topics.items()
    }


def test_writing_goes_on_where_kafka_stopped(kafka_classic: Path, expected: Path, tmp_path: Path) -> None:
    logs = copy_of(kafka_classic / "classic", tmp_path / "logs")
    ends = read_json(expected / "list_offsets.json")
    with running_broker(tmp_path / "data", {**SETTINGS, "log.dirs": str(logs)}) as broker:
        for topic in ("fx-empty", "fx-codecs", "fx-txn", "fx-epochs", "fx-deleterecords", "fx-preallocate"):
            end = ends[f"{topic}-0"]["read_uncommitted"]["-1 latest"]["offset"]
            for number, driver in enumerate(DRIVERS):
                assert driver.produce(broker.bootstrap, topic, [Sent(driver.name.encode())]) == [end + number], topic
        broker.kill()
        broker.start()
        for topic in ("fx-empty", "fx-codecs", "fx-txn", "fx-epochs", "fx-deleterecords", "fx-preallocate"):
            end = ends[f"{topic}-0"]["read_uncommitted"]["-1 latest"]["offset"]
            for driver in DRIVERS:
                records = driver.consume(broker.bootstrap, topic, len(DRIVERS), offset=end)
                assert [record.value for record in records] == [one.name.encode() for one in DRIVERS], topic
