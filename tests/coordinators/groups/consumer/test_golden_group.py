"""Decisions of this broker beside those of Apache Kafka 4.3.1: the same records for the same history, byte for byte."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any, Final

from strandline.coordinators.groups.consumer.schemas import ConsumerRecordKey, RegularExpressionValue
from strandline.coordinators.groups.schemas import read_key
from strandline.coordinators.runtime import KeyValue
from tests.coordinators.groups.consumer.consumer_world import ConsumerWorld, replay
from tests.coordinators.groups.partitioned_topics import topic_image
from tests.coordinators.groups.test_schemas import golden_records

CODECS = uuid.UUID("d2ac2a49-d2c3-43d3-89c2-a9c5b6f73a78")
EPOCHS = uuid.UUID("113d5915-0419-4ca2-b44e-de815a4664db")
CLIENT: Final[dict[str, Any]] = {"client_id": "fx-java-consumer", "client_host": "/127.0.0.1"}
FIELDS: Final[dict[str, Any]] = {**CLIENT, "rebalance_timeout_ms": 300_000}


def records_of(kafka_classic: Path, group_id: str) -> list[KeyValue]:
    found: list[KeyValue] = []
    for raw_key, raw_value in golden_records(kafka_classic):
        key = read_key(raw_key)
        if isinstance(key, ConsumerRecordKey) and key.group_id == group_id:
            found.append((raw_key, raw_value))
    return found


def world_like_kafkas(group_id: str) -> ConsumerWorld:
    world = ConsumerWorld({"other": 1}, group_consumer_assignment_interval_ms=1000)
    world.topics.put(topic_image("fx-codecs", 3, CODECS))
    world.topics.put(topic_image("fx-epochs", 2, EPOCHS))
    world.group = replay([], group_id)
    return world


def test_two_members_that_join_one_after_the_other(kafka_classic: Path) -> None:
    kafkas = records_of(kafka_classic, "fx-consumer-live")
    first, second = "smjV5eBGQqqkSmUfFAwYSQ", "xnqLI1yAQ5S0kT8I60b0uQ"
    world = world_like_kafkas("fx-consumer-live")
    start = world.now_ms = 0x1A1E0B13AC0
    world.join(first, "fx-codecs", **FIELDS)
    joined = world.join(second, "fx-codecs", **FIELDS)
    assert (joined.member_epoch, joined.assignment) == (2, {})
    world.now_ms = 0x1A1E0B13EBD
    assert world.now_ms > start + 1000
    told = world.beat(first, owned={CODECS: frozenset({0, 1, 2})}, **CLIENT)
    assert told.assignment == {CODECS: frozenset({0, 1})}
    world.beat(first, owned={CODECS: frozenset({0, 1})}, **CLIENT)
    world.beat(second, owned={}, **CLIENT)
    assert sorted(world.log, key=repr) == sorted(kafkas, key=repr)
    # Kafka writes the targets of a new assignment in the order of a hash table; all else is in the same order.
    assert [record for record in world.log if record[0][1] != 7] == [record for record in kafkas if record[0][1] != 7]


def test_a_member_that_joins_and_leaves(kafka_classic: Path) -> None:
    kafkas = records_of(kafka_classic, "fx-consumer-empty")
    world = world_like_kafkas("fx-consumer-empty")
    world.now_ms = 0x1A1E0AFBA5D
    world.join("rHzHvLWvTtKHt-tNmR3x-g", "fx-codecs", **FIELDS)
    world.leave("rHzHvLWvTtKHt-tNmR3x-g")
    assert world.log == kafkas


def test_a_static_member(kafka_classic: Path) -> None:
    kafkas = records_of(kafka_classic, "fx-consumer-static")
    world = world_like_kafkas("fx-consumer-static")
    world.now_ms = 0x1A1E0B13AC1
    world.join("pBPBZlyiS6OWh0Kl0-XX0g", "fx-codecs", instance_id="instance-1", **FIELDS)
    assert world.log == kafkas


def test_the_hash_of_two_topics_is_kafkas(kafka_classic: Path) -> None:
    """And everything that Kafka wrote about a group with a regular expression is understood."""
    kafkas = records_of(kafka_classic, "fx-consumer-regex")
    group = replay(kafkas, "fx-consumer-regex")
    world = world_like_kafkas("fx-consumer-regex")
    assert group.topics() == {"fx-codecs", "fx-epochs"}
    assert world.hashes.of_topics(group.topics(), world.topics.image) == group.metadata_hash
    assert group.expressions == {
        "fx-(codecs|epochs)": RegularExpressionValue(
            topics=("fx-codecs", "fx-epochs"), version=0x28C, timestamp_ms=0x1A1E0B166F4
        )
    }
    assert group.epoch == group.target_epoch == 2
