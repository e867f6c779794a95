"""The decoder gives, as columns, exactly what the reader of `records` gives record by record."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.conversion_api.values import PlannedRow
from strandline.errors import CorruptMessage, InvalidRecord
from strandline.pipeline.source.decoding import Decoder, Wanted
from strandline.pipeline.source.decoding import decoder as decoder_module
from strandline.pipeline.source.schema import arrow_schema
from strandline.records import (
    Codec,
    Header,
    Record,
    TimestampType,
    build_batch,
    read_records,
)

EVERYTHING = Wanted(start=0, end=1 << 62)

texts = st.none() | st.binary(max_size=200) | st.just(b"x" * 70_000)
headers = st.lists(st.builds(Header, st.text(max_size=80), st.none() | st.binary(max_size=150)), max_size=4).map(tuple)
times = st.integers(-1, 1 << 41) | st.just(1_700_000_000_000)


@st.composite
def batches(draw: st.DrawFn) -> list[bytes]:
    """Batches of one log: all codecs and kinds of times, records of equal and of different sizes, gaps."""
    offset, found = draw(st.integers(0, 1 << 40)), []
    for _ in range(draw(st.integers(1, 4))):
        offset += draw(st.integers(0, 3))
        first = offset
        if draw(st.booleans()):
            shape = (draw(st.none() | st.binary(max_size=9)), draw(texts), draw(headers))
            shapes = [shape] * draw(st.integers(1, 200))
        else:
            shapes = draw(st.lists(st.tuples(texts, texts, headers), min_size=1, max_size=30))
        records = []
        for key, value, some in shapes:
            records.append(Record(offset, draw(times) if len(shapes) < 40 else offset, key, value, some))
            offset += 1 if len(shapes) > 40 else draw(st.integers(1, 3))
        found.append(
            bytes(
                build_batch(
                    records,
                    base_offset=first,
                    codec=draw(st.sampled_from(Codec)),
                    timestamp_type=draw(st.sampled_from(TimestampType)),
                    max_timestamp=max(record.timestamp for record in records),
                    last_offset=offset,
                )
            )
        )
        offset += 1
    return found


def decoded(
    data: list[bytes], wanted: Wanted = EVERYTHING, *, page_bytes: int = 1 << 20, row: PlannedRow | None = None
) -> list[Any]:
    """Every row, as a dictionary."""
    decoder = Decoder("orders", 3, wanted, include_headers=True, page_bytes=page_bytes)
    found = [page for piece in data for page in decoder.feed(piece, row=row, name="the object")]
    found += decoder.finish()
    for page in found:
        page.validate(full=True)
        assert page.schema.equals(arrow_schema(include_headers=True))
    return [row for page in found for row in page.to_pylist()]


def expected(data: list[bytes]) -> list[dict[str, Any]]:
    """The same, by the reader of `records`."""
    return [
        {
            "key": record.key,
            "value": record.value,
            "topic": "orders",
            "partition": 3,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "timestampType": batch[22] >> 3 & 1,
            "headers": [{"key": key, "value": value} for key, value in record.headers] or None,
        }
        for batch in data
        for record in read_records(batch)
    ]


def with_milliseconds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "timestamp": round(row["timestamp"].timestamp() * 1000)} for row in rows]


@given(batches(), st.sampled_from([1, 5000, 1 << 20]), st.booleans())
def test_every_record_of_every_batch(data: list[bytes], page_bytes: int, is_joined: bool) -> None:
    pieces = [b"".join(data)] if is_joined else data
    assert with_milliseconds(decoded(pieces, page_bytes=page_bytes)) == expected(data)


@given(batches(), st.data())
def test_only_the_wanted_offsets_and_times(data: list[bytes], draw: st.DataObject) -> None:
    every = expected(data)
    offsets, moments = [row["offset"] for row in every], sorted(row["timestamp"] for row in every)
    start, end = sorted(draw.draw(st.tuples(st.sampled_from(offsets), st.sampled_from(offsets))))
    first, last = sorted(draw.draw(st.tuples(st.sampled_from(moments), st.sampled_from(moments))))
    wanted = Wanted(start=start, end=end, min_timestamp=first, max_timestamp=last)
    assert with_milliseconds(decoded([b"".join(data)], wanted)) == [
        row for row in every if start <= row["offset"] < end and first <= row["timestamp"] <= last
    ]


@given(batches(), st.data())
def test_bytes_that_come_again_count_once(data: list[bytes], draw: st.DataObject) -> None:
    """Segments may overlap: what one has, the next does not give again."""
    again = draw.draw(st.integers(0, len(data)))
    assert with_milliseconds(decoded([*data[:again], *data])) == expected(data)


def test_a_row_gives_batches_their_offsets_and_times() -> None:
    """Batches of a WAL object are as producers sent them; the row says where they are in the log, and since when."""
    records = [Record(number, 7, b"k", b"v", ()) for number in range(3)]
    data = bytes(build_batch(records)) * 2
    row = PlannedRow(100, 105, 0, len(data), 1, 5000, 5000, 0)
    found = with_milliseconds(decoded([data], row=row))
    assert [one["offset"] for one in found] == list(range(100, 106))
    assert {(one["timestamp"], one["timestampType"]) for one in found} == {(5000, 1)}
    created = with_milliseconds(decoded([data], row=row._replace(timestamp_type=0, log_append_time_ms=-1)))
    assert {(one["timestamp"], one["timestampType"]) for one in created} == {(7, 0)}


def test_control_batches_are_left_out() -> None:
    record = bytes(build_batch([Record(0, 1, None, b"v", ())]))
    marker = bytes(
        build_batch([Record(1, 1, b"\0\0\0\0", b"", ())], base_offset=1, is_control=True, is_transactional=True)
    )
    assert [row["offset"] for row in decoded([record + marker])] == [0]


def test_without_headers_there_is_no_such_column() -> None:
    batch = bytes(build_batch([Record(0, 1, None, b"v", (Header("a", b"b"),))]))
    decoder = Decoder("orders", 0, EVERYTHING, include_headers=False)
    found = [*decoder.feed(batch, name="the object"), *decoder.finish()]
    assert pa.Table.from_batches(found).column_names[-1] == "timestampType"


def test_a_damaged_batch_is_named() -> None:
    batch = build_batch([Record(0, 1, None, b"v" * 50, ())])
    batch[-20] ^= 1
    with pytest.raises(CorruptMessage, match=r"the object, byte 0: .* checksum"):
        decoded([bytes(batch)])


@pytest.mark.parametrize("position", range(61, 75))
@pytest.mark.parametrize("byte", [0x00, 0x01, 0x7F, 0xFF])
def test_nonsense_inside_a_batch_is_an_error_and_never_read(position: int, byte: int) -> None:
    """The checksum is right: a client has sent it so."""
    from strandline.records.batch import renew_crc

    batch = build_batch([Record(number, number, b"key", b"v" * 5, ()) for number in range(2)])
    batch[position] = byte
    renew_crc(batch, 0)
    try:
        theirs: object = expected([bytes(batch)])
    except InvalidRecord:
        theirs = None
    if theirs is None:
        with pytest.raises(InvalidRecord):
            decoded([bytes(batch)])
    else:
        assert with_milliseconds(decoded([bytes(batch)])) == theirs


def rarely_wanted(count: int) -> list[tuple[bytes, PlannedRow]]:
    """Large chunks, in each of which one small batch is new."""
    old = bytes(build_batch([Record(0, 1000, None, b"o" * 100_000)]))
    new = bytes(build_batch([Record(0, 5000, b"key", b"new")]))
    size = len(old) + len(new)
    return [(old + new, PlannedRow(2 * number, 2 * number + 1, 0, size, 0, 0, 5000, 0)) for number in range(count)]


def test_what_is_too_old_is_not_kept() -> None:
    chunks = rarely_wanted(50)
    wanted = Wanted(start=0, end=1 << 62, min_timestamp=5000)
    decoder = Decoder("orders", 0, wanted, include_headers=False, page_bytes=200_000)
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        for data, row in chunks:
            assert list(decoder.feed(bytes(bytearray(data)), row=row, name="the object")) == []
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held + pa.total_allocated_bytes() - before < 100_000
    (page,) = decoder.finish()
    assert page.column("offset").to_pylist() == [row.last_offset for _, row in chunks]
    assert set(page.column("value").to_pylist()) == {b"new"}


def test_a_page_is_bounded_by_the_bytes_that_it_keeps() -> None:
    """Without a filter on time as well: the rest of a chunk may be control batches."""
    record = bytes(build_batch([Record(0, 1, None, b"v", ())]))
    marker = Record(0, 1, b"\0\0\0\0", b"x" * 50_000, ())
    control = bytes(build_batch([marker], is_control=True, is_transactional=True))
    size = len(record) + len(control)
    decoder = Decoder("orders", 0, EVERYTHING, include_headers=False, page_bytes=100_000)
    pages: list[Any] = []
    for number in range(20):
        row = PlannedRow(2 * number, 2 * number + 1, 0, size, 0, 0, 1, 0)
        pages += decoder.feed(record + control, row=row, name="the object")
    pages += decoder.finish()
    assert [offset for page in pages for offset in page.column("offset").to_pylist()] == list(range(0, 40, 2))
    assert max(page.num_rows for page in pages) == 3, "as many as have 200,000 bytes around them"


@pytest.mark.parametrize("kind", TimestampType)
def test_times_that_spark_cannot_hold_become_the_last_or_the_first(kind: TimestampType) -> None:
    most = (2**63 - 1) // 1000
    times = [0, -1, most, most + 1, 2**62, 2**63 - 1, -most, -most - 1, -(2**62)]
    data = [
        bytes(
            build_batch([Record(offset, time, None, b"v")], base_offset=offset, timestamp_type=kind, max_timestamp=time)
        )
        for offset, time in enumerate(times)
    ]
    decoder = Decoder("orders", 0, EVERYTHING, include_headers=False)
    pages = [page for one in data for page in decoder.feed(one, name="the object")]
    (page,) = [*pages, *decoder.finish()]
    micros = page.column("timestamp").cast(pa.int64()).to_pylist()
    assert micros == [1000 * min(max(time, -most), most) for time in times]


def test_an_error_of_arrow_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes")

    monkeypatch.setattr(decoder_module, "read_fields", refuse)
    with pytest.raises(InvalidRecord, match=r"orders-3 from offset 0 to 0 cannot be .*: array cannot contain more"):
        decoded([bytes(build_batch([Record(0, 1, None, b"v", ())]))])
