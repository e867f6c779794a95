"""Decisions of this broker beside those of Apache Kafka 4.3.1: the same records for the same history, byte for byte."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any, Final

from strandline.coordinators.groups.schemas import read_key
from strandline.coordinators.groups.share.schemas import ShareRecordKey
from strandline.coordinators.groups.states import GroupState
from strandline.coordinators.runtime import KeyValue
from tests.coordinators.groups.partitioned_topics import topic_image
from tests.coordinators.groups.share.share_world import ShareWorld
from tests.coordinators.groups.test_schemas import golden_records

TOPIC: Final = uuid.UUID("ce74eb2e-554f-4996-b504-0ba62549c7d2")
MEMBER: Final = "QRoJcxisTf6YVmj4x-0aTA"
CLIENT: Final[dict[str, Any]] = {"client_id": "fx-java-share", "client_host": "/127.0.0.1"}
JOINED_AT, ASSIGNED_AT = 1794771082505, 1794771088094


def kafkas_records(kafka_classic: Path) -> list[KeyValue]:
    return [record for record in golden_records(kafka_classic) if isinstance(read_key(record[0]), ShareRecordKey)]


def world_like_kafkas() -> ShareWorld:
    world = ShareWorld({"other": 1})
    world.topics.put(topic_image("fx-logappend", 2, TOPIC))
    world.clock.move(JOINED_AT / 1000 - world.clock.now_ms() / 1000)
    assert world.clock.now_ms() == JOINED_AT
    return world


def test_a_member_joins_and_is_assigned_what_has_state(kafka_classic: Path) -> None:
    world = world_like_kafkas()
    joined = world.join(MEMBER, "fx-logappend", group_id="fx-share", **CLIENT)
    assert (joined.member_epoch, joined.assignment, joined.heartbeat_interval_ms) == (2, {}, 5000)
    assert [(one.state_epoch, one.partitions) for one in world.creations] == [(2, {TOPIC: frozenset({0, 1})})]
    world.create_states()
    world.clock.move((ASSIGNED_AT - JOINED_AT) / 1000)
    told = world.beat(MEMBER, group_id="fx-share", **CLIENT)
    assert (told.member_epoch, told.assignment) == (3, {TOPIC: frozenset({0, 1})})
    assert world.records == kafkas_records(kafka_classic)


def test_a_group_that_kafka_kept_goes_on(kafka_classic: Path) -> None:
    world = world_like_kafkas()
    world.log.records = kafkas_records(kafka_classic)
    world.restart()
    described = world.group("fx-share").described_share_group()
    assert (described.epoch, described.target_epoch, described.state) == (3, 3, GroupState.STABLE)
    (member,) = described.members
    assert (member.member_id, member.client_id, member.topics) == (MEMBER, "fx-java-share", ("fx-logappend",))
    written = len(world.records)
    assert world.beat(MEMBER, group_id="fx-share", **CLIENT).assignment is None
    assert world.records[written:] == []  # the hash of its topics is the same: nothing has to be assigned anew
    world.let_time_pass(46)
    assert world.group("fx-share").state is GroupState.EMPTY
