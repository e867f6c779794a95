"""Every batch and record of every segment that Kafka 4.3.1 wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from strandline.records import BatchHeader, Codec, Record, build_batch, crc_matches, iter_headers, read_records
from strandline.records.batch import CURRENT_MAGIC, TimestampType
from strandline.records.control import ControlType, control_type_of, marker_of
from tests.golden import matches, read_json


def golden_batches(root: Path) -> Iterator[tuple[bytes, BatchHeader, dict[str, Any]]]:
    for description in sorted((root / "expected/classic/records").glob("*.json")):
        partition = read_json(description)
        for segment in partition["segments"]:
            data = (root / "classic" / partition["dir"] / segment["file"]).read_bytes()
            found = list(iter_headers(data))
            assert [position for position, _ in found] == [batch["position"] for batch in segment["batches"]]
            assert sum(header.size for _, header in found) == len(data)
            for (position, header), expected in zip(found, segment["batches"], strict=True):
                yield data[position : position + header.size], header, expected


def test_headers(kafka_classic: Path) -> None:
    seen = 0
    for batch, header, expected in golden_batches(kafka_classic):
        seen += 1
        assert crc_matches(batch, 0, header)
        assert header.magic == expected["magic"] == CURRENT_MAGIC
        assert header.size == expected["size"]
        assert header.crc == expected["crc"]
        assert header.base_offset == expected["base_offset"]
        assert header.last_offset == expected["last_offset"]
        assert header.leader_epoch == expected["partition_leader_epoch"]
        assert header.attributes == expected["attributes"]
        assert header.codec.name.lower() == expected["codec"]
        assert header.timestamp_type.name.replace("_", "") == expected["timestamp_type"].upper()
        assert header.base_timestamp == expected["base_timestamp"]
        assert header.max_timestamp == expected["max_timestamp"]
        assert header.producer_id == expected["producer_id"]
        assert header.producer_epoch == expected["producer_epoch"]
        assert header.base_sequence == expected["base_sequence"]
        assert header.last_sequence == expected["last_sequence"]
        assert header.is_transactional is expected["transactional"]
        assert header.is_control is expected["control"]
        assert header.delete_horizon_ms == expected.get("delete_horizon_ms")
        assert header.record_count == expected["count"]
    assert seen > 1300


def test_records(kafka_classic: Path) -> None:
    seen = 0
    for batch, header, expected in golden_batches(kafka_classic):
        records = read_records(batch)
        assert len(records) == len(expected["records"])
        for record, fields in zip(records, expected["records"], strict=True):
            seen += 1
            assert_record(record, header, fields)
    assert seen > 4500


def assert_record(record: Record, header: BatchHeader, expected: dict[str, Any]) -> None:
    assert record.offset == expected["offset"]
    assert record.timestamp == expected["ts"]
    assert matches(record.key, expected["key"])
    assert matches(record.value, expected["value"])
    headers = expected.get("headers", [])
    assert len(record.headers) == len(headers)
    for (key, value), (expected_key, expected_value) in zip(record.headers, headers, strict=True):
        assert key == expected_key
        assert matches(value, expected_value)
    if header.is_control:
        control_type = control_type_of(record.key)
        assert control_type.name == expected["control_type"]
        if control_type in (ControlType.ABORT, ControlType.COMMIT):
            marker = marker_of(record)
            assert marker is not None
            assert marker.coordinator_epoch == expected["coordinator_epoch"]


def test_uncompressed_batches_are_built_again_byte_for_byte(kafka_classic: Path) -> None:
    rebuilt = 0
    for batch, header, _ in golden_batches(kafka_classic):
        if header.codec is not Codec.NONE:
            continue
        rebuilt += 1
        assert rebuild(batch, header) == batch
    assert rebuilt > 1000


def rebuild(batch: bytes, header: BatchHeader) -> bytearray:
    plain = bytearray(batch)
    plain[22] &= ~0x08  # under LogAppendTime records would show the broker's time instead of their own
    return build_batch(
        read_records(plain),
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        timestamp_type=header.timestamp_type,
        max_timestamp=header.max_timestamp if header.timestamp_type is TimestampType.LOG_APPEND_TIME else None,
        delete_horizon_ms=header.delete_horizon_ms,
        last_offset=header.last_offset,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
    )
