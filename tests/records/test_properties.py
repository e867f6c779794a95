"""What holds for every batch, whatever its records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import CorruptMessage, InvalidRecord, StrandlineError
from strandline.records import (
    BatchLimits,
    Codec,
    Header,
    Record,
    TimestampType,
    build_batch,
    crc_matches,
    iter_headers,
    read_header,
    read_records,
    stamp,
    stamp_log_append_time,
    validate_produced,
)
from strandline.records.record import read_raw_records
from strandline.records.varint import read_varint, varint_size, write_varint
from tests.records.strategies import codecs, record_lists

NOW = 1_700_000_000_000


@given(record_lists(holes=True), codecs, st.integers(0, 2**40), st.integers(-1, 2**31 - 1))
def test_what_is_built_is_read(records: list[Record], codec: Codec, base: int, epoch: int) -> None:
    records = [record._replace(offset=record.offset + base) for record in records]
    batch = build_batch(records, base_offset=base, codec=codec, leader_epoch=epoch, producer_id=7, base_sequence=3)
    header = read_header(batch)
    assert read_records(batch) == records
    assert crc_matches(batch, 0, header)
    assert (header.size, header.codec, header.leader_epoch) == (len(batch), codec, epoch)
    assert (header.base_offset, header.last_offset) == (base, records[-1].offset)
    assert header.max_timestamp == max(record.timestamp for record in records)


@given(record_lists(), codecs, st.integers(0, 2**62), st.integers(0, 2**31 - 1))
def test_stamping_keeps_records_and_checksum(records: list[Record], codec: Codec, base: int, epoch: int) -> None:
    batch = build_batch(records, codec=codec)
    stamp(batch, 0, base, epoch)
    header = read_header(batch)
    assert (header.base_offset, header.leader_epoch) == (base, epoch)
    assert crc_matches(batch, 0, header)
    assert read_records(batch) == [record._replace(offset=record.offset + base) for record in records]


@given(record_lists(), codecs, st.integers(0, 2**41))
def test_append_time_replaces_every_timestamp(records: list[Record], codec: Codec, now: int) -> None:
    batch = build_batch(records, codec=codec)
    stamp_log_append_time(batch, 0, now)
    header = read_header(batch)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert crc_matches(batch, 0, header)
    assert read_records(batch) == [record._replace(timestamp=now) for record in records]
    before = bytes(batch)
    stamp_log_append_time(batch, 0, now)
    assert batch == before


@given(st.lists(record_lists(), min_size=1, max_size=3), codecs)
def test_a_cut_never_yields_a_wrong_batch(batches: list[list[Record]], codec: Codec) -> None:
    encoded = [bytes(build_batch(records, codec=codec)) for records in batches]
    whole = b"".join(encoded)
    ends = [sum(map(len, encoded[: count + 1])) for count in range(len(encoded))]
    for cut in range(len(whole) + 1):
        found = list(iter_headers(whole[:cut]))
        assert len(found) == sum(end <= cut for end in ends)
        assert all(whole[position : position + header.size] in encoded for position, header in found)


@given(record_lists(), codecs, st.data())
def test_a_flipped_bit_is_noticed(records: list[Record], codec: Codec, data: st.DataObject) -> None:
    batch = build_batch(records, codec=codec)
    # The broker writes base offset and leader epoch; the checksum does not cover them.
    positions = [*range(8, 12), *range(16, len(batch))]
    position = data.draw(st.sampled_from(positions))
    batch[position] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises((CorruptMessage, InvalidRecord)):
        validate_produced(memoryview(batch), limits=BatchLimits(after_max_ms=2**62), now_ms=NOW)


@given(record_lists(), codecs, st.data())
def test_damaged_records_never_crash_the_reader(records: list[Record], codec: Codec, data: st.DataObject) -> None:
    batch = build_batch(records, codec=codec)
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(21, len(batch) - 1))] = data.draw(st.integers(0, 255))
    try:
        read = read_records(batch)
    except StrandlineError:
        return
    assert len(read) == read_header(batch).record_count


@given(st.binary(max_size=200))
def test_noise_is_refused_with_an_error_of_ours(noise: bytes) -> None:
    with pytest.raises(StrandlineError):
        validate_produced(memoryview(noise), limits=BatchLimits(), now_ms=NOW)


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints(value: int) -> None:
    output = bytearray()
    write_varint(output, value)
    assert len(output) == varint_size(value)
    assert read_varint(bytes(output), 0) == (value, len(output))


@pytest.mark.parametrize("value", [2**62 - 1, 2**62, -(2**62), -(2**62) - 1, 2**63 - 1, -(2**63)])
def test_numbers_at_the_edge_of_64_bits(value: int) -> None:
    """Compiled, numbers have 64 bits, and those of the tenth byte fit only once the sign is where it belongs."""
    output = bytearray()
    write_varint(output, value)
    assert read_varint(bytes(output), 0) == (value, len(output))
    record = Record(0, 0, b"key", None)
    batch = build_batch([record, record._replace(offset=1, timestamp=value)])
    assert [one.timestamp for one in read_records(batch)] == [0, value]


def test_a_number_of_more_than_ten_bytes_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="ten bytes"):
        read_varint(b"\xff" * 11, 0)


def test_a_size_of_more_than_nine_bytes_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="nine bytes"):
        read_raw_records(b"\xff" * 11, 1)


def test_a_size_that_would_leave_64_bits_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="claims"):
        read_raw_records(b"\xfe" + b"\xff" * 7 + b"\x7f", 1)
    body = b"\x20\x00\x00\x00" + b"\xfe" + b"\xff" * 7 + b"\x7f"
    with pytest.raises(InvalidRecord, match="cut"):
        read_raw_records(body + bytes(17 - len(body)), 1)


@given(st.binary(max_size=6))
def test_header_keys_that_are_not_text_survive(key: bytes) -> None:
    record = Record(0, NOW, b"k", b"v", (Header(key.decode("utf-8", "surrogateescape"), b"x"),))
    batch = build_batch([record])
    assert key in bytes(batch)
    assert read_records(batch) == [record]
