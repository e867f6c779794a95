"""Records of `__share_group_state`: those of Apache Kafka are read, and written again byte for byte."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.coordinators.fields import FieldWriter
from strandline.coordinators.share_states import DeliveryBatch, DeliveryState, SharePartitionKey, ShareState
from strandline.coordinators.share_states.schemas import (
    ShareUpdateValue,
    read_record,
    snapshot_record,
    tombstone,
    update_record,
)
from strandline.errors import CorruptMessage
from strandline.model import coordinator_partition, uuid_from_text
from tests.golden import kafka_classic as kafka_classic
from tests.golden import read_json

KEY = SharePartitionKey("pay", UUID(int=7), 3)


def _bytes(found: dict[str, Any]) -> bytes:
    return base64.b64decode(found["b64"]) if "b64" in found else found["s"].encode()


def _records(kafka_classic: Path) -> Iterator[tuple[int, bytes, bytes]]:
    """The records whose value is in the golden data as a whole."""
    for partition in range(2):
        path = kafka_classic / "expected" / "classic" / "records" / f"__share_group_state-{partition}.json"
        for segment in read_json(path)["segments"]:
            for batch in segment["batches"]:
                for record in batch["records"]:
                    if "sha256" not in record["value"]:
                        yield partition, _bytes(record["key"]), _bytes(record["value"])


def test_records_of_kafka_are_written_again_byte_for_byte(kafka_classic: Path) -> None:
    kinds = []
    for partition, key, value in _records(kafka_classic):
        found = read_record(key, value)
        assert found is not None
        who, change = found
        assert who == SharePartitionKey("fx-share", uuid_from_text("znTrLlVPSZa1BAumJUnH0g"), who.partition)
        assert coordinator_partition(who.coordinator_key, 2) == partition
        assert isinstance(change, ShareState | ShareUpdateValue)
        again = snapshot_record(who, change) if isinstance(change, ShareState) else update_record(who, change)
        assert again == (key, value)
        kinds.append((type(change), who.partition))
    assert kinds == [(ShareState, 0), (ShareUpdateValue, 0), (ShareState, 1), (ShareUpdateValue, 1)]


_BATCHES = st.lists(
    st.builds(
        DeliveryBatch,
        st.integers(0, 2**62),
        st.integers(0, 2**62),
        st.sampled_from(list(DeliveryState)),
        st.integers(0, 32767),
    ),
    max_size=9,
).map(tuple)
_I32 = st.integers(-1, 2**31 - 1)
_I64 = st.integers(-1, 2**62)
_KEYS = st.builds(SharePartitionKey, st.text(max_size=20), st.uuids(), st.integers(0, 2**31 - 1))


@given(
    _KEYS,
    st.builds(
        ShareState,
        snapshot_epoch=_I32,
        state_epoch=_I32,
        leader_epoch=_I32,
        start_offset=_I64,
        delivery_complete_count=_I32,
        batches=_BATCHES,
        created_ms=_I64,
        written_ms=_I64,
    ),
)
def test_a_snapshot_that_is_written_is_read(key: SharePartitionKey, state: ShareState) -> None:
    assert read_record(*snapshot_record(key, state)) == (key, state)


@given(
    _KEYS,
    st.builds(
        ShareUpdateValue,
        snapshot_epoch=_I32,
        leader_epoch=_I32,
        start_offset=_I64,
        delivery_complete_count=_I32,
        batches=_BATCHES,
    ),
)
def test_an_update_that_is_written_is_read(key: SharePartitionKey, update: ShareUpdateValue) -> None:
    assert read_record(*update_record(key, update)) == (key, update)


def test_a_snapshot_without_a_value_is_a_tombstone() -> None:
    assert read_record(*tombstone(KEY)) == (KEY, None)


def test_records_of_types_to_come_are_left_out() -> None:
    assert read_record(FieldWriter(2).string("pay").done(), b"") is None


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (FieldWriter(1).done(), "has version 1"),
        (FieldWriter(0).i32(0).done(), "is cut"),
        (
            FieldWriter(0).i32(0).i32(0).i64(0).varint(2).i64(1).i64(2).i8(3).i16(1).tags({}).tags({}).done(),
            "cannot be in state 3",
        ),
    ],
)
def test_damaged_values_are_refused(value: bytes, why: str) -> None:
    key, _ = update_record(KEY, ShareUpdateValue(snapshot_epoch=0, leader_epoch=0, start_offset=0))
    with pytest.raises(CorruptMessage, match=why):
        read_record(key, value)
