"""Records of `__consumer_offsets`: Kafka's bytes, every version, damage."""

from __future__ import annotations

import base64
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.coordinators.fields import FieldWriter
from strandline.coordinators.groups.consumer.schemas import (
    ConsumerRecordKey,
    ConsumerRecordType,
    read_consumer_value,
    write_consumer_value,
)
from strandline.coordinators.groups.modern.records import write_record_key
from strandline.coordinators.groups.schemas import (
    GroupKey,
    GroupValue,
    MemberValue,
    OffsetKey,
    OffsetValue,
    UnknownKey,
    read_group_value,
    read_key,
    read_offset_value,
    write_group_key,
    write_group_value,
    write_offset_key,
    write_offset_value,
)
from strandline.coordinators.groups.share.schemas import ShareRecordKey
from strandline.errors import CorruptMessage
from tests.golden import read_json

TOPIC_ID = uuid.UUID("31627a14-74df-458c-baee-3cf065d7aa49")


def test_an_offset_commit_has_kafkas_bytes() -> None:
    key = OffsetKey("my-group", "topic", 7)
    value = OffsetValue(offset=55, leader_epoch=3, metadata="", commit_timestamp=1700000000000, topic_id=TOPIC_ID)
    assert write_offset_key(key).hex() == "000100086d792d67726f75700005746f70696300000007"
    assert write_offset_value(value).hex() == (
        "0004000000000000003700000003010000018bcfe5680001001031627a1474df458cbaee3cf065d7aa49"
    )
    assert read_key(write_offset_key(key)) == key
    assert read_offset_value(write_offset_value(value)) == value


def golden_records(kafka_classic: Path) -> list[tuple[bytes, bytes | None]]:
    """Keys and values in Kafka's own `__consumer_offsets`, markers left out."""
    found = []
    for partition in range(3):
        described = read_json(kafka_classic / f"expected/classic/records/__consumer_offsets-{partition}.json")
        for segment in described["segments"]:
            for batch in segment["batches"]:
                if not batch["control"]:
                    found += [(_bytes(r["key"]) or b"", _bytes(r["value"])) for r in batch["records"]]
    return found


def _bytes(described: dict[str, Any] | None) -> bytes | None:
    if described is None:
        return None
    return base64.b64decode(described["b64"]) if "b64" in described else str(described["s"]).encode()


def test_what_kafka_wrote_is_written_the_same(kafka_classic: Path) -> None:
    kinds, consumer_kinds = set(), set()
    for raw_key, raw_value in golden_records(kafka_classic):
        key = read_key(raw_key)
        kinds.add(type(key))
        if isinstance(key, OffsetKey):
            assert write_offset_key(key) == raw_key
            assert raw_value is None or write_offset_value(read_offset_value(raw_value)) == raw_value
        elif isinstance(key, GroupKey):
            assert write_group_key(key.group_id) == raw_key
            assert raw_value is None or write_group_value(read_group_value(raw_value)) == raw_value
        elif isinstance(key, ConsumerRecordKey):
            consumer_kinds.add(key.kind)
            assert write_record_key(key) == raw_key
            if raw_value is not None:
                value = read_consumer_value(key.kind, raw_value)
                assert value is not None
                assert write_consumer_value(value) == raw_value
    assert kinds == {OffsetKey, GroupKey, ConsumerRecordKey, ShareRecordKey}
    assert consumer_kinds == set(ConsumerRecordType) - {ConsumerRecordType.PARTITION_METADATA}


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_older_offset_commits_are_read(version: int) -> None:
    writer = FieldWriter(version).i64(7)
    if version == 3:
        writer.i32(5)
    writer.string("m").i64(1000)
    if version == 1:
        writer.i64(2000)
    value = read_offset_value(writer.done())
    assert value == OffsetValue(
        offset=7,
        leader_epoch=5 if version == 3 else -1,
        metadata="m",
        commit_timestamp=1000,
        expire_timestamp=2000 if version == 1 else -1,
    )


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_every_version_of_a_group_is_read(version: int) -> None:
    writer = FieldWriter(version)

    def string(value: str | None) -> None:
        if version < 4:
            writer.string(value)
        elif value is None:
            writer.varint(0)
        else:
            writer.compact_string(value)

    def blob(value: bytes) -> None:
        if version < 4:
            writer.blob(value)
        else:
            writer.compact_string(value.decode())

    string("consumer")
    writer.i32(3)
    string("range")
    string("m-1")
    if version >= 2:
        writer.i64(99)
    _ = writer.varint(2) if version >= 4 else writer.i32(1)
    string("m-1")
    if version >= 3:
        string(None)
    string("client")
    string("/host")
    if version >= 1:
        writer.i32(60000)
    writer.i32(10000)
    blob(b"sub")
    blob(b"assigned")
    if version >= 4:
        writer.varint(0).varint(0)
    value = read_group_value(writer.done())
    assert value == GroupValue(
        protocol_type="consumer",
        generation=3,
        protocol="range",
        leader="m-1",
        state_timestamp=99 if version >= 2 else -1,
        members=(
            MemberValue(
                member_id="m-1",
                client_id="client",
                client_host="/host",
                rebalance_timeout_ms=60000 if version >= 1 else 10000,
                session_timeout_ms=10000,
                subscription=b"sub",
                assignment=b"assigned",
            ),
        ),
    )


def test_a_legacy_offset_key_is_read() -> None:
    raw = FieldWriter(0).string("g").string("t").i32(1).done()
    assert read_key(raw) == OffsetKey("g", "t", 1)


def test_unknown_record_types_are_named_not_refused() -> None:
    assert read_key(FieldWriter(17).string("anything").done()) == UnknownKey(17)


@pytest.mark.parametrize("version", [-1, 5])
def test_a_version_from_the_future_is_refused(version: int) -> None:
    with pytest.raises(CorruptMessage, match=f"version {version}"):
        read_offset_value(FieldWriter(version).i64(1).done())


TEXT = st.text(max_size=20).filter(lambda text: text.isprintable())
OFFSETS = st.builds(
    OffsetValue,
    offset=st.integers(0, 2**63 - 1),
    leader_epoch=st.integers(-1, 2**31 - 1),
    metadata=TEXT,
    commit_timestamp=st.integers(0, 2**63 - 1),
    expire_timestamp=st.integers(-1, 2**63 - 1),
    topic_id=st.uuids(),
)
MEMBERS = st.builds(
    MemberValue,
    member_id=TEXT,
    group_instance_id=st.none() | TEXT,
    client_id=TEXT,
    client_host=TEXT,
    rebalance_timeout_ms=st.integers(0, 2**31 - 1),
    session_timeout_ms=st.integers(0, 2**31 - 1),
    subscription=st.binary(max_size=30),
    assignment=st.binary(max_size=30),
)
GROUPS = st.builds(
    GroupValue,
    protocol_type=TEXT,
    generation=st.integers(0, 2**31 - 1),
    protocol=st.none() | TEXT,
    leader=st.none() | TEXT,
    state_timestamp=st.integers(-1, 2**63 - 1),
    members=st.lists(MEMBERS, max_size=3).map(tuple),
)


@given(OFFSETS)
def test_offsets_survive_a_round_trip(value: OffsetValue) -> None:
    assert read_offset_value(write_offset_value(value)) == value


@given(TEXT, TEXT, st.integers(0, 2**31 - 1))
def test_keys_of_offsets_survive_a_round_trip(group_id: str, topic: str, partition: int) -> None:
    key = OffsetKey(group_id, topic, partition)
    raw = write_offset_key(key)
    assert read_key(raw) == read_key(memoryview(raw)) == key
    for size in range(len(raw)):
        with pytest.raises(CorruptMessage):
            read_key(raw[:size])


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (FieldWriter(1).string(None).string("t").i32(0).done(), "null"),
        (FieldWriter(1).string("g").string(None).i32(0).done(), "null"),
        (FieldWriter(1).i16(1).raw(b"\xff").string("t").i32(0).done(), "not UTF-8"),
        (FieldWriter(1).string("g").i16(1).raw(b"\xff").i32(0).done(), "not UTF-8"),
    ],
)
def test_keys_of_offsets_that_make_no_sense(raw: bytes, why: str) -> None:
    with pytest.raises(CorruptMessage, match=why):
        read_key(raw)


def test_offsets_in_one_topic_share_its_name_and_id() -> None:
    """A coordinator keeps a million of them."""
    keys = [read_key(write_offset_key(OffsetKey(f"g{number}", "orders", number))) for number in range(2)]
    values = [
        read_offset_value(write_offset_value(OffsetValue(offset=number, commit_timestamp=1, topic_id=TOPIC_ID)))
        for number in range(2)
    ]
    assert isinstance(keys[0], OffsetKey)
    assert isinstance(keys[1], OffsetKey)
    assert keys[0].topic is keys[1].topic
    assert values[0].topic_id is values[1].topic_id


PLAIN = write_offset_value(OffsetValue(offset=55, leader_epoch=3, commit_timestamp=1700000000000, topic_id=TOPIC_ID))


def _outcome(raw: bytes) -> OffsetValue | None:
    try:
        return read_offset_value(raw)
    except CorruptMessage:
        return None


@given(st.integers(0, len(PLAIN) - 1), st.integers(0, 255))
def test_a_value_of_the_usual_size_is_read_as_any_other(position: int, byte: int) -> None:
    """Which has a byte more, that nobody looks at. The usual size alone does not make a usual value."""
    changed = PLAIN[:position] + bytes([byte]) + PLAIN[position + 1 :]
    assert _outcome(changed) in (None, _outcome(changed + b"\x00"))


@given(GROUPS)
def test_groups_survive_a_round_trip(value: GroupValue) -> None:
    assert read_group_value(write_group_value(value)) == value


@given(GROUPS, st.data())
def test_a_record_cut_short_is_corrupt(value: GroupValue, data: st.DataObject) -> None:
    raw = write_group_value(value)
    cut = raw[: data.draw(st.integers(0, len(raw) - 1))]
    with pytest.raises(CorruptMessage):
        read_group_value(cut)


@given(st.binary(max_size=80))
def test_nonsense_is_corrupt_and_nothing_worse(data: bytes) -> None:
    for read in (read_key, read_offset_value, read_group_value):
        try:
            read(data)
        except CorruptMessage:
            continue
