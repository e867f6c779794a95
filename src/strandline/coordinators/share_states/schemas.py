"""Keys and values of `__share_group_state`, byte for byte as Apache Kafka writes them.

A snapshot (key type 0) holds the whole state of a share partition, an update (key type 1) what has changed since. The
values have version 0, compact types and tagged fields; a snapshot without a value is a tombstone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from strandline.coordinators.fields import CoordinatorFieldReader, FieldWriter
from strandline.coordinators.runtime import KeyValue
from strandline.coordinators.share_states.values import (
    NO_COUNT,
    DeliveryBatch,
    DeliveryState,
    SharePartitionKey,
    ShareState,
)
from strandline.errors import CorruptMessage
from strandline.model import LeaderEpoch, Offset
from strandline.records.fields import I32, I64, FieldReader

_SNAPSHOT: Final = 0
_UPDATE: Final = 1
_VERSION: Final = 0
_COMPLETE_COUNT: Final = 0
_BATCH_SIZE: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareUpdateValue:
    """What an update record says."""

    snapshot_epoch: int
    leader_epoch: LeaderEpoch
    start_offset: Offset
    delivery_complete_count: int = NO_COUNT
    batches: tuple[DeliveryBatch, ...] = ()


def snapshot_record(key: SharePartitionKey, state: ShareState) -> KeyValue:
    writer = FieldWriter(_VERSION).i32(state.snapshot_epoch).i32(state.state_epoch).i32(state.leader_epoch)
    writer.i64(state.start_offset).i64(state.created_ms).i64(state.written_ms)
    return _key(_SNAPSHOT, key), _end(writer, state.batches, state.delivery_complete_count)


def update_record(key: SharePartitionKey, update: ShareUpdateValue) -> KeyValue:
    writer = FieldWriter(_VERSION).i32(update.snapshot_epoch).i32(update.leader_epoch).i64(update.start_offset)
    return _key(_UPDATE, key), _end(writer, update.batches, update.delivery_complete_count)


def tombstone(key: SharePartitionKey) -> KeyValue:
    return _key(_SNAPSHOT, key), None


def kind_of(record: KeyValue) -> str:
    """What a record is, in a word."""
    key, value = record
    if value is None:
        return "tombstone"
    return "snapshot" if CoordinatorFieldReader(key).i16() == _SNAPSHOT else "update"


def read_record(
    key: bytes | memoryview, value: bytes | memoryview | None
) -> tuple[SharePartitionKey, ShareState | ShareUpdateValue | None] | None:
    """What a record says; None for one of a type of a newer version. Raises CorruptMessage."""
    reader = CoordinatorFieldReader(key)
    kind = reader.i16()
    if kind not in (_SNAPSHOT, _UPDATE):
        return None
    who = SharePartitionKey(reader.string(), reader.uuid(), reader.i32())
    if value is None:
        return who, None
    fields = CoordinatorFieldReader(value)
    version = fields.i16()
    if version != _VERSION:
        raise CorruptMessage(f"The state of a share partition has version 0; this record has version {version}.")
    return who, _read_snapshot(fields) if kind == _SNAPSHOT else _read_update(fields)


def _key(kind: int, key: SharePartitionKey) -> bytes:
    high, low = (I64.unpack(half)[0] for half in (key.topic_id.bytes[:8], key.topic_id.bytes[8:]))
    return FieldWriter(kind).string(key.group_id).i64(high).i64(low).i32(key.partition).done()


def _end(writer: FieldWriter, batches: tuple[DeliveryBatch, ...], complete_count: int) -> bytes:
    writer.array_length(len(batches), compact=True)
    for first, last, state, count in batches:
        writer.i64(first).i64(last).i8(state).i16(count).tags({})
    return writer.tags({} if complete_count == NO_COUNT else {_COMPLETE_COUNT: I32.pack(complete_count)}).done()


def _read_snapshot(fields: CoordinatorFieldReader) -> ShareState:
    snapshot_epoch, state_epoch, leader_epoch = fields.i32(), fields.i32(), fields.i32()
    start_offset, created_ms, written_ms = fields.i64(), fields.i64(), fields.i64()
    batches = _read_batches(fields)
    return ShareState(
        snapshot_epoch=snapshot_epoch,
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        created_ms=created_ms,
        written_ms=written_ms,
        batches=batches,
        delivery_complete_count=_read_complete_count(fields),
    )


def _read_update(fields: CoordinatorFieldReader) -> ShareUpdateValue:
    snapshot_epoch, leader_epoch, start_offset = fields.i32(), fields.i32(), fields.i64()
    batches = _read_batches(fields)
    return ShareUpdateValue(
        snapshot_epoch=snapshot_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        batches=batches,
        delivery_complete_count=_read_complete_count(fields),
    )


def _read_batches(fields: CoordinatorFieldReader) -> tuple[DeliveryBatch, ...]:
    return tuple(
        _read_batch(fields) for _ in range(fields.expect(fields.array_length(compact=True), element_size=_BATCH_SIZE))
    )


def _read_batch(fields: CoordinatorFieldReader) -> DeliveryBatch:
    first, last, number, count = fields.i64(), fields.i64(), fields.i8(), fields.i16()
    fields.tags()
    try:
        return DeliveryBatch(first, last, DeliveryState(number), count)
    except ValueError as error:
        raise CorruptMessage(f"The delivery of records {first} to {last} cannot be in state {number}.") from error


def _read_complete_count(fields: CoordinatorFieldReader) -> int:
    found = fields.tags().get(_COMPLETE_COUNT)
    return NO_COUNT if found is None else FieldReader(found).i32()
