"""Keys and values of `__transaction_state`, byte for byte as Apache Kafka writes them.

A key is the transactional id. A value has version 0, or 1 with compact types and tagged fields, which is written from
`transaction.version` 1 on; no value is a tombstone.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from struct import Struct
from typing import Final, NamedTuple

from strandline.coordinators.fields import CoordinatorFieldReader, FieldWriter
from strandline.coordinators.transactions.states import TransactionState
from strandline.errors import CorruptMessage
from strandline.model import NO_PRODUCER_ID, ProducerId, TimestampMs, TopicPartition
from strandline.records.fields import I16, I64, FieldReader

_KEY_TYPE: Final = 0
_FLEXIBLE: Final = 1
_PREVIOUS_PRODUCER_ID: Final = 0
_NEXT_PRODUCER_ID: Final = 1
_CLIENT_VERSION: Final = 2
_HEAD: Final = Struct(">qhib")
"""Producer id and epoch, timeout, state."""
_TIMES: Final = Struct(">qq")
_STATES: Final[Mapping[int, TransactionState]] = {state.value: state for state in TransactionState}


class TransactionValue(NamedTuple):
    """The state of one transactional id."""

    producer_id: ProducerId
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    last_update_ms: TimestampMs
    start_ms: TimestampMs
    partitions: tuple[TopicPartition, ...] = ()
    """Sorted. Kafka writes none as null while the state is Empty."""
    previous_producer_id: ProducerId = NO_PRODUCER_ID
    next_producer_id: ProducerId = NO_PRODUCER_ID
    client_version: int = 0
    """The transaction version of the client that wrote it."""


def write_key(transactional_id: str) -> bytes:
    return FieldWriter(_KEY_TYPE).string(transactional_id).done()


def read_key(data: bytes | memoryview) -> str | None:
    """The transactional id; None for a record type of a newer version. Raises CorruptMessage."""
    reader = CoordinatorFieldReader(data)
    return reader.string() if reader.i16() == _KEY_TYPE else None


def write_value(value: TransactionValue, *, version: int) -> bytes:
    compact = version >= _FLEXIBLE
    writer = FieldWriter(version).i64(value.producer_id).i16(value.producer_epoch).i32(value.timeout_ms)
    writer.i8(value.state)
    if value.state is TransactionState.EMPTY:
        writer.array_length(None, compact=compact)
    else:
        topics = [(topic, [*of_topic]) for topic, of_topic in groupby(value.partitions, key=lambda one: one.topic)]
        writer.array_length(len(topics), compact=compact)
        for topic, partitions in topics:
            writer.text(topic, compact=compact).array_length(len(partitions), compact=compact)
            for partition in partitions:
                writer.i32(partition.partition)
            if compact:
                writer.tags({})
    writer.i64(value.last_update_ms).i64(value.start_ms)
    if compact:
        tags = {}
        if value.previous_producer_id != NO_PRODUCER_ID:
            tags[_PREVIOUS_PRODUCER_ID] = I64.pack(value.previous_producer_id)
        if value.next_producer_id != NO_PRODUCER_ID:
            tags[_NEXT_PRODUCER_ID] = I64.pack(value.next_producer_id)
        if value.client_version:
            tags[_CLIENT_VERSION] = I16.pack(value.client_version)
        writer.tags(tags)
    return writer.done()


def read_value(data: bytes | memoryview) -> TransactionValue:
    """Raises CorruptMessage."""
    reader = CoordinatorFieldReader(data)
    version = reader.i16()
    if version not in (0, _FLEXIBLE):
        raise CorruptMessage(f"Transaction states have versions 0 and 1; this record has version {version}.")
    compact = version >= _FLEXIBLE
    producer_id, producer_epoch, timeout_ms, number = reader.unpack(_HEAD)
    state = _STATES.get(number)
    if state is None:
        raise CorruptMessage(f"A transaction cannot be in state {number}.")
    partitions = tuple(sorted(_read_partitions(reader, compact=compact)))
    last_update_ms, start_ms = reader.unpack(_TIMES)
    tags = reader.tags() if compact else {}
    return TransactionValue(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        timeout_ms=timeout_ms,
        state=state,
        partitions=partitions,
        last_update_ms=last_update_ms,
        start_ms=start_ms,
        previous_producer_id=_i64(tags.get(_PREVIOUS_PRODUCER_ID)),
        next_producer_id=_i64(tags.get(_NEXT_PRODUCER_ID)),
        client_version=FieldReader(tags[_CLIENT_VERSION]).i16() if _CLIENT_VERSION in tags else 0,
    )


def _read_partitions(reader: CoordinatorFieldReader, *, compact: bool) -> list[TopicPartition]:
    found: list[TopicPartition] = []
    for _ in range(reader.array_length(compact=compact)):
        topic = reader.string(compact=compact)
        found += [TopicPartition(topic, reader.i32()) for _ in range(reader.array_length(compact=compact))]
        if compact:
            reader.tags()
    return found


def _i64(tag: bytes | None) -> int:
    return NO_PRODUCER_ID if tag is None else FieldReader(tag).i64()
