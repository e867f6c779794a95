"""Messages of add partitions to txn. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_array_length,
    read_compact_array_length,
    read_compact_string,
    read_numbers,
    read_string,
    read_tag,
    read_uvarint,
    skip_tags,
    truncated,
    write_array_length,
    write_compact_array_length,
    write_compact_numbers,
    write_compact_string,
    write_numbers,
    write_string,
    write_tagged_field,
    write_uvarint,
)
from strandline.wire.structure import Structure

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")
_INT64 = Struct(">q")
_INT64_INT16 = Struct(">qh")
_INT64_INT16_BOOL = Struct(">qh?")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AddPartitionsToTxnTopic(Structure):
    """Versions 0 to 5."""

    name: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AddPartitionsToTxnTransaction(Structure):
    """Versions 4 to 5."""

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    verify_only: bool = False
    topics: list[AddPartitionsToTxnTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AddPartitionsToTxnRequest(Structure):
    """Versions 0 to 5."""

    v3_and_below_transactional_id: str = ""  # up to version 3
    v3_and_below_producer_id: int = 0  # up to version 3
    v3_and_below_producer_epoch: int = 0  # up to version 3
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field(default_factory=list)  # up to version 3
    transactions: list[AddPartitionsToTxnTransaction] = field(default_factory=list)  # from version 4 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AddPartitionsToTxnPartitionResult(Structure):
    """Versions 0 to 5."""

    partition_index: int = 0
    partition_error_code: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AddPartitionsToTxnTopicResult(Structure):
    """Versions 0 to 5."""

    name: str = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AddPartitionsToTxnResult(Structure):
    """Versions 4 to 5."""

    transactional_id: str = ""
    topic_results: list[AddPartitionsToTxnTopicResult] = field(default_factory=list)
    transaction_start_ms: int = -1


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AddPartitionsToTxnResponse(Structure):
    """Versions 0 to 5."""

    throttle_time_ms: int = 0
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field(default_factory=list)  # up to version 3
    error_code: int = 0  # from version 4 on
    results_by_transaction: list[AddPartitionsToTxnResult] = field(default_factory=list)  # from version 4 on


def _read_add_partitions_to_txn_topic(
    buffer: memoryview, position: int, version: int
) -> tuple[AddPartitionsToTxnTopic, int]:
    flexible = version >= 3
    name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 4) if flexible else read_array_length(buffer, position, 4)
    )
    partitions, position = read_numbers(buffer, position, count, "i")
    if flexible:
        position = skip_tags(buffer, position)
    return AddPartitionsToTxnTopic(name=name, partitions=partitions), position


def _write_add_partitions_to_txn_topic(out: bytearray, message: AddPartitionsToTxnTopic, version: int) -> None:
    flexible = version >= 3
    if flexible:
        write_compact_string(out, message.name)
    else:
        write_string(out, message.name)
    if flexible:
        write_compact_numbers(out, message.partitions, "i")
    else:
        write_numbers(out, message.partitions, "i")
    if flexible:
        out += b"\x00"


def _read_add_partitions_to_txn_transaction(
    buffer: memoryview, position: int, version: int
) -> tuple[AddPartitionsToTxnTransaction, int]:
    transactional_id, position = read_compact_string(buffer, position)
    producer_id, producer_epoch, verify_only = _INT64_INT16_BOOL.unpack_from(buffer, position)
    position += 11
    count, position = read_compact_array_length(buffer, position, 2)
    topics: list[AddPartitionsToTxnTopic] = []
    for _ in range(count):
        add_partitions_to_txn_topic, position = _read_add_partitions_to_txn_topic(buffer, position, version)
        topics.append(add_partitions_to_txn_topic)
    position = skip_tags(buffer, position)
    return AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        verify_only=verify_only,
        topics=topics,
    ), position


def _write_add_partitions_to_txn_transaction(
    out: bytearray, message: AddPartitionsToTxnTransaction, version: int
) -> None:
    write_compact_string(out, message.transactional_id)
    out += _INT64_INT16_BOOL.pack(message.producer_id, message.producer_epoch, message.verify_only)
    write_compact_array_length(out, len(message.topics))
    for add_partitions_to_txn_topic in message.topics:
        _write_add_partitions_to_txn_topic(out, add_partitions_to_txn_topic, version)
    out += b"\x00"


def _read_add_partitions_to_txn_request(
    buffer: memoryview, position: int, version: int
) -> tuple[AddPartitionsToTxnRequest, int]:
    flexible = version >= 3
    v3_and_below_transactional_id: str = ""
    v3_and_below_producer_id: int = 0
    v3_and_below_producer_epoch: int = 0
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = []
    if version <= 3:
        v3_and_below_transactional_id, position = (
            read_compact_string(buffer, position) if flexible else read_string(buffer, position)
        )
        v3_and_below_producer_id, v3_and_below_producer_epoch = _INT64_INT16.unpack_from(buffer, position)
        position += 10
        count, position = (
            read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
        )
        v3_and_below_topics = []
        for _ in range(count):
            add_partitions_to_txn_topic, position = _read_add_partitions_to_txn_topic(buffer, position, version)
            v3_and_below_topics.append(add_partitions_to_txn_topic)
    transactions: list[AddPartitionsToTxnTransaction] = []
    if version >= 4:
        count, position = (
            read_compact_array_length(buffer, position, 13) if flexible else read_array_length(buffer, position, 13)
        )
        transactions = []
        for _ in range(count):
            add_partitions_to_txn_transaction, position = _read_add_partitions_to_txn_transaction(
                buffer, position, version
            )
            transactions.append(add_partitions_to_txn_transaction)
    if flexible:
        position = skip_tags(buffer, position)
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=v3_and_below_transactional_id,
        v3_and_below_producer_id=v3_and_below_producer_id,
        v3_and_below_producer_epoch=v3_and_below_producer_epoch,
        v3_and_below_topics=v3_and_below_topics,
        transactions=transactions,
    ), position


def _write_add_partitions_to_txn_request(out: bytearray, message: AddPartitionsToTxnRequest, version: int) -> None:
    flexible = version >= 3
    if version <= 3:
        if flexible:
            write_compact_string(out, message.v3_and_below_transactional_id)
        else:
            write_string(out, message.v3_and_below_transactional_id)
        out += _INT64_INT16.pack(message.v3_and_below_producer_id, message.v3_and_below_producer_epoch)
        if flexible:
            write_compact_array_length(out, len(message.v3_and_below_topics))
        else:
            write_array_length(out, len(message.v3_and_below_topics))
        for add_partitions_to_txn_topic in message.v3_and_below_topics:
            _write_add_partitions_to_txn_topic(out, add_partitions_to_txn_topic, version)
    if version >= 4:
        if flexible:
            write_compact_array_length(out, len(message.transactions))
        else:
            write_array_length(out, len(message.transactions))
        for add_partitions_to_txn_transaction in message.transactions:
            _write_add_partitions_to_txn_transaction(out, add_partitions_to_txn_transaction, version)
    if flexible:
        out += b"\x00"


def read_add_partitions_to_txn_request(
    buffer: memoryview, position: int, version: int
) -> tuple[AddPartitionsToTxnRequest, int]:
    """Read a AddPartitionsToTxnRequest. Raises MalformedRequest."""
    try:
        return _read_add_partitions_to_txn_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("AddPartitionsToTxnRequest") from error


def write_add_partitions_to_txn_request(out: bytearray, message: AddPartitionsToTxnRequest, version: int) -> None:
    """Append a AddPartitionsToTxnRequest to `out`."""
    _write_add_partitions_to_txn_request(out, message, version)


def _read_add_partitions_to_txn_partition_result(
    buffer: memoryview, position: int, version: int
) -> tuple[AddPartitionsToTxnPartitionResult, int]:
    flexible = version >= 3
    partition_index, partition_error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    if flexible:
        position = skip_tags(buffer, position)
    return AddPartitionsToTxnPartitionResult(
        partition_index=partition_index, partition_error_code=partition_error_code
    ), position


def _write_add_partitions_to_txn_partition_result(
    out: bytearray, message: AddPartitionsToTxnPartitionResult, version: int
) -> None:
    flexible = version >= 3
    out += _INT32_INT16.pack(message.partition_index, message.partition_error_code)
    if flexible:
        out += b"\x00"


def _read_add_partitions_to_txn_topic_result(
    buffer: memoryview, position: int, version: int
) -> tuple[AddPartitionsToTxnTopicResult, int]:
    flexible = version >= 3
    name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 6) if flexible else read_array_length(buffer, position, 6)
    )
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = []
    for _ in range(count):
        add_partitions_to_txn_partition_result, position = _read_add_partitions_to_txn_partition_result(
            buffer, position, version
        )
        results_by_partition.append(add_partitions_to_txn_partition_result)
    if flexible:
        position = skip_tags(buffer, position)
    return AddPartitionsToTxnTopicResult(name=name, results_by_partition=results_by_partition), position


def _write_add_partitions_to_txn_topic_result(
    out: bytearray, message: AddPartitionsToTxnTopicResult, version: int
) -> None:
    flexible = version >= 3
    if flexible:
        write_compact_string(out, message.name)
    else:
        write_string(out, message.name)
    if flexible:
        write_compact_array_length(out, len(message.results_by_partition))
    else:
        write_array_length(out, len(message.results_by_partition))
    for add_partitions_to_txn_partition_result in message.results_by_partition:
        _write_add_partitions_to_txn_partition_result(out, add_partitions_to_txn_partition_result, version)
    if flexible:
        out += b"\x00"


def _read_add_partitions_to_txn_result(
    buffer: memoryview, position: int, version: int
) -> tuple[AddPartitionsToTxnResult, int]:
    transactional_id, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 2)
    topic_results: list[AddPartitionsToTxnTopicResult] = []
    for _ in range(count):
        add_partitions_to_txn_topic_result, position = _read_add_partitions_to_txn_topic_result(
            buffer, position, version
        )
        topic_results.append(add_partitions_to_txn_topic_result)
    transaction_start_ms: int = -1
    count, position = read_uvarint(buffer, position)
    for _ in range(count):
        tag, position, end = read_tag(buffer, position)
        if tag == 10000:
            (transaction_start_ms,) = _INT64.unpack_from(buffer, position)
            position += 8
        position = end
    return AddPartitionsToTxnResult(
        transactional_id=transactional_id, topic_results=topic_results, transaction_start_ms=transaction_start_ms
    ), position


def _write_add_partitions_to_txn_result(out: bytearray, message: AddPartitionsToTxnResult, version: int) -> None:
    write_compact_string(out, message.transactional_id)
    write_compact_array_length(out, len(message.topic_results))
    for add_partitions_to_txn_topic_result in message.topic_results:
        _write_add_partitions_to_txn_topic_result(out, add_partitions_to_txn_topic_result, version)
    tagged = bytearray()
    count = 0
    if message.transaction_start_ms != -1:
        value = bytearray()
        value += _INT64.pack(message.transaction_start_ms)
        write_tagged_field(tagged, 10000, value)
        count += 1
    write_uvarint(out, count)
    out += tagged


def _read_add_partitions_to_txn_response(
    buffer: memoryview, position: int, version: int
) -> tuple[AddPartitionsToTxnResponse, int]:
    flexible = version >= 3
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = []
    if version <= 3:
        count, position = (
            read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
        )
        results_by_topic_v3_and_below = []
        for _ in range(count):
            add_partitions_to_txn_topic_result, position = _read_add_partitions_to_txn_topic_result(
                buffer, position, version
            )
            results_by_topic_v3_and_below.append(add_partitions_to_txn_topic_result)
    error_code: int = 0
    results_by_transaction: list[AddPartitionsToTxnResult] = []
    if version >= 4:
        (error_code,) = _INT16.unpack_from(buffer, position)
        position += 2
        count, position = (
            read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
        )
        results_by_transaction = []
        for _ in range(count):
            add_partitions_to_txn_result, position = _read_add_partitions_to_txn_result(buffer, position, version)
            results_by_transaction.append(add_partitions_to_txn_result)
    if flexible:
        position = skip_tags(buffer, position)
    return AddPartitionsToTxnResponse(
        throttle_time_ms=throttle_time_ms,
        results_by_topic_v3_and_below=results_by_topic_v3_and_below,
        error_code=error_code,
        results_by_transaction=results_by_transaction,
    ), position


def _write_add_partitions_to_txn_response(out: bytearray, message: AddPartitionsToTxnResponse, version: int) -> None:
    flexible = version >= 3
    out += _INT32.pack(message.throttle_time_ms)
    if version <= 3:
        if flexible:
            write_compact_array_length(out, len(message.results_by_topic_v3_and_below))
        else:
            write_array_length(out, len(message.results_by_topic_v3_and_below))
        for add_partitions_to_txn_topic_result in message.results_by_topic_v3_and_below:
            _write_add_partitions_to_txn_topic_result(out, add_partitions_to_txn_topic_result, version)
    if version >= 4:
        out += _INT16.pack(message.error_code)
        if flexible:
            write_compact_array_length(out, len(message.results_by_transaction))
        else:
            write_array_length(out, len(message.results_by_transaction))
        for add_partitions_to_txn_result in message.results_by_transaction:
            _write_add_partitions_to_txn_result(out, add_partitions_to_txn_result, version)
    if flexible:
        out += b"\x00"


def read_add_partitions_to_txn_response(
    buffer: memoryview, position: int, version: int
) -> tuple[AddPartitionsToTxnResponse, int]:
    """Read a AddPartitionsToTxnResponse. Raises MalformedRequest."""
    try:
        return _read_add_partitions_to_txn_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("AddPartitionsToTxnResponse") from error


def write_add_partitions_to_txn_response(out: bytearray, message: AddPartitionsToTxnResponse, version: int) -> None:
    """Append a AddPartitionsToTxnResponse to `out`."""
    _write_add_partitions_to_txn_response(out, message, version)
