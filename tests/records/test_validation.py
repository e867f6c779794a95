"""The rules for produced batches, with the error each broken rule gives."""

from __future__ import annotations

from collections.abc import Callable
from struct import pack_into
from typing import Any

import pytest

from strandline.config.topic import TopicConfig
from strandline.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    StrandlineError,
    UnsupportedCompressionType,
)
from strandline.model import INT64_MAX
from strandline.records import (
    BatchLimits,
    Codec,
    ControlType,
    EndTransactionMarker,
    Produced,
    Record,
    TimestampType,
    build_batch,
    build_marker,
    check_codec_of_version,
    crc_matches,
    read_header,
    read_records,
    stamp,
    validate_internal,
    validate_produced,
)
from strandline.records.batch import renew_crc

NOW = 1_700_000_000_000
HOUR = 3_600_000
RECORDS = [Record(i, NOW + i, b"key", b"value") for i in range(3)]
APPEND_TIME = BatchLimits(timestamp_type=TimestampType.LOG_APPEND_TIME)


def validate(batch: bytes | bytearray, limits: BatchLimits | None = None) -> Produced:
    return validate_produced(memoryview(batch), limits=limits or BatchLimits(), now_ms=NOW)


def patched(position: int, layout: str, value: int, **options: Any) -> bytearray:
    """A good batch with one field changed and a checksum that fits again."""
    batch = build_batch(RECORDS, **options)
    pack_into(layout, batch, position, value)
    renew_crc(batch, 0)
    return batch


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("timestamp_type", list(TimestampType))
def test_timestamps_beyond_64_bits_wrap_around_as_in_kafka(codec: Codec, timestamp_type: TimestampType) -> None:
    batch = patched(27, ">q", INT64_MAX - 1)
    assert [record.timestamp for record in read_records(batch)] == [INT64_MAX - 1, INT64_MAX, -INT64_MAX - 1]
    limits = BatchLimits(codec=Codec.LZ4, timestamp_type=timestamp_type)
    if timestamp_type is TimestampType.CREATE_TIME:
        with pytest.raises(InvalidTimestamp):
            validate(batch, limits)
    else:
        assert {record.timestamp for record in read_records(validate(batch, limits).buffer)} == {NOW}
    timestamps = [INT64_MAX, -INT64_MAX - 1, 0]
    built = build_batch([Record(i, timestamp, None, b"") for i, timestamp in enumerate(timestamps)], codec=codec)
    assert [record.timestamp for record in read_records(built)] == timestamps


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("is_transactional", [False, True])
def test_a_good_batch_passes_untouched(codec: Codec, is_transactional: bool) -> None:
    batch = build_batch(
        RECORDS, codec=codec, producer_id=4, producer_epoch=0, base_sequence=9, is_transactional=is_transactional
    )
    before = bytes(batch)
    produced = validate(batch)
    assert produced.buffer.obj is batch
    assert produced.buffer == before
    assert produced.header == read_header(before)


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: b"", InvalidRecord, "one whole record batch"),
        (lambda: build_batch(RECORDS)[:40], InvalidRecord, "one whole record batch"),
        (lambda: build_batch(RECORDS)[:-1], InvalidRecord, "one whole record batch"),
        (lambda: build_batch(RECORDS) * 2, InvalidRecord, "only one record batch"),
        (lambda: patched(16, ">b", 1), InvalidRecord, "old format 1"),
        (lambda: patched(16, ">b", 3), CorruptMessage, "unknown magic 3"),
        (lambda: patched(0, ">q", 5), InvalidRecord, "base offset"),
        (lambda: bytes(build_batch(RECORDS)[:-1]) + b"!", CorruptMessage, "checksum"),
        (lambda: patched(23, ">i", -2), InvalidRecord, "range of offsets"),
        (lambda: patched(57, ">i", 0), InvalidRecord, "hold 0 records"),
        (lambda: patched(57, ">i", -3), InvalidRecord, "hold -3 records"),
        (lambda: patched(57, ">i", 2), InvalidRecord, "claims 2 records"),
        (lambda: patched(23, ">i", 7), InvalidRecord, "claims 3 records"),
        (lambda: patched(22, ">B", 0x20), InvalidRecord, "control records"),
        (lambda: build_batch(RECORDS, producer_id=1, producer_epoch=0), InvalidRecord, "sequence number -1"),
        (lambda: patched(22, ">B", 0x08), InvalidTimestamp, "LogAppendTime"),
        (lambda: patched(22, ">B", 0x05), UnsupportedCompressionType, "number 5"),
        (lambda: build_batch([Record(0, NOW, None, bytes(1_048_588))]), MessageTooLarge, "max.message.bytes"),
    ],
)
def test_a_broken_rule_has_its_error(
    make: Callable[[], bytes | bytearray], error: type[StrandlineError], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        validate(make())


def test_the_size_is_judged_before_the_checksum() -> None:
    batch = build_batch([Record(0, NOW, None, bytes(2000))])
    batch[-5] ^= 1
    with pytest.raises(MessageTooLarge):
        validate(batch, BatchLimits(max_message_bytes=1000))


@pytest.mark.parametrize("tail", [b"", b"x", b"x" * 16, bytes(build_batch(RECORDS)[:-1])])
def test_an_incomplete_second_batch_is_cut_off(tail: bytes) -> None:
    batch = build_batch(RECORDS)
    assert validate(bytes(batch) + tail).buffer == batch


def test_nonsense_behind_the_batch_is_refused() -> None:
    with pytest.raises(CorruptMessage):
        validate(bytes(build_batch(RECORDS)) + b"x" * 17)


def test_a_batch_without_a_producer_may_have_any_sequence() -> None:
    assert validate(build_batch(RECORDS, base_sequence=0)).header.base_sequence == 0


def test_a_timestamp_too_far_ahead() -> None:
    records = [Record(0, NOW, None, b"a"), Record(1, NOW + HOUR + 1, None, b"b")]
    with pytest.raises(InvalidTimestamp) as caught:
        validate(build_batch(records))
    assert [error.batch_index for error in caught.value.record_errors] == [1]
    assert str(NOW + HOUR) in caught.value.record_errors[0].message
    validate(build_batch(records), BatchLimits(after_max_ms=HOUR + 1))


def test_a_header_that_exaggerates_its_newest_timestamp_is_corrected() -> None:
    produced = validate(patched(35, ">q", NOW + 2 * HOUR))
    assert produced.header.max_timestamp == NOW + 2
    assert crc_matches(produced.buffer, 0, produced.header)


@pytest.mark.parametrize("codec", list(Codec))
def test_a_timestamp_too_old(codec: Codec) -> None:
    limits = BatchLimits(before_max_ms=HOUR)
    records = [Record(0, NOW - HOUR, None, b"a"), Record(1, NOW - HOUR - 1, None, b"b"), Record(2, -1, None, b"c")]
    with pytest.raises(InvalidTimestamp) as caught:
        validate(build_batch(records, codec=codec), limits)
    assert [error.batch_index for error in caught.value.record_errors] == [1]
    validate(build_batch(records[:1], codec=codec), limits)


@pytest.mark.parametrize("codec", list(Codec))
def test_a_compacted_topic_needs_keys(codec: Codec) -> None:
    limits = BatchLimits(is_compacted=True)
    validate(build_batch(RECORDS, codec=codec), limits)
    records = [*RECORDS, Record(3, NOW, None, b"v"), Record(4, NOW + 2 * HOUR, b"k", b"v"), Record(5, NOW, None, b"v")]
    with pytest.raises(InvalidRecord, match="3 records were refused") as caught:
        validate(build_batch(records, codec=codec), limits)
    assert [error.batch_index for error in caught.value.record_errors] == [3, 4, 5]


def test_append_time_is_stamped_into_the_buffer() -> None:
    batch = build_batch([Record(0, NOW + 5 * HOUR, None, b"v")], codec=Codec.LZ4)
    produced = validate(batch, APPEND_TIME)
    assert produced.buffer.obj is batch
    assert produced.header.max_timestamp == NOW
    assert crc_matches(batch, 0, produced.header)
    assert [record.timestamp for record in read_records(batch)] == [NOW]


def test_a_read_only_buffer_is_copied_before_it_is_stamped() -> None:
    batch = bytes(build_batch(RECORDS))
    produced = validate(batch, APPEND_TIME)
    assert produced.header.max_timestamp == NOW
    assert read_header(batch).max_timestamp == NOW + 2


@pytest.mark.parametrize("source", list(Codec))
@pytest.mark.parametrize("target", list(Codec))
def test_the_topic_decides_the_codec(source: Codec, target: Codec) -> None:
    batch = build_batch(
        RECORDS, codec=source, producer_id=3, producer_epoch=1, base_sequence=5, is_transactional=True, leader_epoch=-1
    )
    header, produced = read_header(batch), validate(batch, BatchLimits(codec=target))
    assert produced.header.codec is target
    assert (produced.buffer.obj is batch) == (source is target)
    assert crc_matches(produced.buffer, 0, produced.header)
    assert read_records(produced.buffer) == RECORDS
    for name in ("producer_id", "producer_epoch", "base_sequence", "record_count", "base_timestamp", "max_timestamp"):
        assert getattr(produced.header, name) == getattr(header, name)
    assert produced.header.is_transactional


def test_recompression_under_append_time() -> None:
    limits = BatchLimits(codec=Codec.ZSTD, timestamp_type=TimestampType.LOG_APPEND_TIME)
    produced = validate(build_batch(RECORDS), limits)
    assert produced.header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert {record.timestamp for record in read_records(produced.buffer)} == {NOW}


def test_a_batch_may_grow_too_large_by_recompression() -> None:
    batch = build_batch([Record(0, NOW, None, bytes(5000))], codec=Codec.ZSTD)
    with pytest.raises(MessageTooLarge):
        validate(batch, BatchLimits(codec=Codec.NONE, max_message_bytes=4000))


def test_offsets_with_holes_are_closed_when_records_are_read() -> None:
    records = [RECORDS[0], RECORDS[1]._replace(offset=2), RECORDS[2]._replace(offset=2)]
    produced = validate(build_batch(records), BatchLimits(is_compacted=True))
    assert [record.offset for record in read_records(produced.buffer)] == [0, 1, 2]


def test_records_that_do_not_match_the_count_are_found_when_they_are_read() -> None:
    batch = build_batch(RECORDS)
    pack_into(">i", batch, 57, 2)
    pack_into(">i", batch, 23, 1)
    renew_crc(batch, 0)
    with pytest.raises(InvalidRecord, match="bytes too many"):
        validate(batch, BatchLimits(is_compacted=True))


def test_a_coordinator_may_write_markers() -> None:
    marker = build_marker(EndTransactionMarker(ControlType.ABORT, 0), producer_id=1, producer_epoch=0, timestamp_ms=NOW)
    for limits in (BatchLimits(is_compacted=True), APPEND_TIME):
        produced = validate_internal(memoryview(marker), limits=limits, now_ms=NOW + 1)
        assert produced.buffer == marker


def test_a_coordinators_records_get_the_append_time_of_the_topic() -> None:
    batch = build_batch(RECORDS)
    assert validate_internal(memoryview(batch), limits=APPEND_TIME, now_ms=NOW + 9).header.max_timestamp == NOW + 9


def test_a_coordinators_batch_is_checked_for_size_and_damage() -> None:
    batch = build_batch(RECORDS)
    with pytest.raises(MessageTooLarge):
        validate_internal(memoryview(batch), limits=BatchLimits(max_message_bytes=70), now_ms=NOW)
    batch[-1] ^= 1
    with pytest.raises(CorruptMessage):
        validate_internal(memoryview(batch), limits=BatchLimits(), now_ms=NOW)


def test_a_validated_batch_can_be_stamped() -> None:
    produced = validate(build_batch(RECORDS))
    stamp(produced.buffer, 0, 77, 4)
    assert [record.offset for record in read_records(produced.buffer)] == [77, 78, 79]


def test_zstd_needs_a_recent_produce_request() -> None:
    header = read_header(build_batch(RECORDS, codec=Codec.ZSTD))
    check_codec_of_version(header.attributes, 7)
    check_codec_of_version(read_header(build_batch(RECORDS, codec=Codec.LZ4)).attributes, 3)
    with pytest.raises(UnsupportedCompressionType):
        check_codec_of_version(header.attributes, 6)


def test_limits_of_a_topic() -> None:
    assert BatchLimits.of(TopicConfig()) == BatchLimits()
    limits = BatchLimits.of(
        TopicConfig(
            cleanup_policy=("compact", "delete"),
            compression_type="zstd",
            compression_zstd_level=7,
            message_timestamp_type="LogAppendTime",
            max_message_bytes=500,
        )
    )
    assert (limits.codec, limits.level, limits.is_compacted) == (Codec.ZSTD, 7, True)
    assert (limits.timestamp_type, limits.max_message_bytes) == (TimestampType.LOG_APPEND_TIME, 500)
    assert not limits.header_is_enough
    assert BatchLimits.of(TopicConfig(compression_type="uncompressed")).codec is Codec.NONE
