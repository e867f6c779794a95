"""Primitive types: what is written is read again, and what cannot be is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.wire import primitives as p

Write = Callable[[bytearray, Any], None]
Read = Callable[[memoryview, int], tuple[Any, int]]

TEXTS: list[tuple[Write, Read]] = [
    (p.write_string, p.read_string),
    (p.write_compact_string, p.read_compact_string),
    (p.write_nullable_string, p.read_nullable_string),
    (p.write_compact_nullable_string, p.read_compact_nullable_string),
]
BLOBS: list[tuple[Write, Read]] = [
    (p.write_bytes, p.read_bytes),
    (p.write_compact_bytes, p.read_compact_bytes),
    (p.write_nullable_bytes, p.read_nullable_bytes),
    (p.write_compact_nullable_bytes, p.read_compact_nullable_bytes),
]
ARRAYS: list[tuple[Write, Callable[[memoryview, int, int], tuple[int, int]]]] = [
    (p.write_array_length, p.read_array_length),
    (p.write_compact_array_length, p.read_compact_array_length),
    (p.write_array_length, p.read_nullable_array_length),
    (p.write_compact_array_length, p.read_compact_nullable_array_length),
]


def round_trip(write: Write, read: Read, value: Any) -> Any:
    out = bytearray(b"before")
    write(out, value)
    end = len(out)
    result, position = read(memoryview(out + b"after"), 6)
    assert position == end
    return result


@pytest.mark.parametrize(("write", "read"), TEXTS)
@given(value=st.text())
def test_strings_come_back(write: Write, read: Read, value: str) -> None:
    assert round_trip(write, read, value) == value


@pytest.mark.parametrize(("write", "read"), BLOBS)
@given(value=st.binary())
def test_bytes_come_back(write: Write, read: Read, value: bytes) -> None:
    assert round_trip(write, read, value) == value


@pytest.mark.parametrize(("write", "read"), [*TEXTS[2:], *BLOBS[2:]])
def test_null_comes_back_where_it_is_allowed(write: Write, read: Read) -> None:
    assert round_trip(write, read, None) is None


@pytest.mark.parametrize(("nullable", "plain"), [(2, 0), (3, 1)])
@pytest.mark.parametrize("kind", [TEXTS, BLOBS], ids=["text", "bytes"])
def test_null_is_refused_where_it_is_not_allowed(kind: list[tuple[Write, Read]], nullable: int, plain: int) -> None:
    out = bytearray()
    kind[nullable][0](out, None)
    with pytest.raises(p.MalformedRequest, match="null"):
        kind[plain][1](memoryview(out), 0)


@pytest.mark.parametrize(("write", "read"), [*TEXTS, *BLOBS])
def test_a_length_beyond_the_end_is_refused(write: Write, read: Read) -> None:
    out = bytearray()
    write(out, "four" if (write, read) in TEXTS else b"four")
    with pytest.raises(p.MalformedRequest, match="do"):
        read(memoryview(out)[:-1], 0)


def test_a_string_longer_than_the_protocol_allows_is_refused_both_ways() -> None:
    with pytest.raises(ValueError, match="longer than the protocol allows"):
        p.write_string(bytearray(), "x" * 32768)
    out = bytearray()
    p.write_compact_bytes(out, b"x" * 32768)
    with pytest.raises(p.MalformedRequest):
        p.read_compact_string(memoryview(out), 0)


def test_bytes_that_are_no_text_become_replacement_characters() -> None:
    assert p.read_string(memoryview(b"\x00\x03a\xe9b"), 0) == ("a\ufffdb", 5)
    out = bytearray()
    p.write_string(out, "a\ud800b")
    assert out == b"\x00\x03a?b"


@given(st.integers(0, 0xFFFFFFFF))
def test_varints_come_back(value: int) -> None:
    assert round_trip(p.write_uvarint, p.read_uvarint, value) == value


def test_a_varint_of_six_bytes_is_refused() -> None:
    with pytest.raises(p.MalformedRequest, match="varint"):
        p.read_uvarint(memoryview(b"\x80\x80\x80\x80\x80\x00"), 0)


@pytest.mark.parametrize(("write", "read"), ARRAYS)
def test_array_lengths_are_bounded_by_the_bytes_left(
    write: Write, read: Callable[[memoryview, int, int], tuple[int, int]]
) -> None:
    out = bytearray()
    write(out, 5)
    position = len(out)
    assert read(memoryview(out + b"x" * 10), 0, 2) == (5, position)
    with pytest.raises(p.MalformedRequest, match="array of 5"):
        read(memoryview(out + b"x" * 9), 0, 2)


@pytest.mark.parametrize(("write", "read"), ARRAYS[2:])
def test_a_null_array(write: Write, read: Callable[[memoryview, int, int], tuple[int, int]]) -> None:
    out = bytearray()
    write(out, -1)
    assert read(memoryview(out), 0, 1) == (-1, len(out))


@pytest.mark.parametrize(("write", "read"), ARRAYS[:2])
def test_a_null_array_where_none_is_allowed(
    write: Write, read: Callable[[memoryview, int, int], tuple[int, int]]
) -> None:
    out = bytearray()
    write(out, -1)
    with pytest.raises(p.MalformedRequest, match="null"):
        read(memoryview(out), 0, 1)


@pytest.mark.parametrize(
    ("write", "read_length"),
    [(p.write_numbers, p.read_array_length), (p.write_compact_numbers, p.read_compact_array_length)],
)
@given(values=st.lists(st.integers(-(2**31), 2**31 - 1), max_size=20))
def test_numbers_come_back(
    write: Callable[[bytearray, list[int], str], None],
    read_length: Callable[[memoryview, int, int], tuple[int, int]],
    values: list[int],
) -> None:
    out = bytearray()
    write(out, values, "i")
    count, position = read_length(memoryview(out), 0, 4)
    assert p.read_numbers(memoryview(out), position, count, "i") == (values, len(out))


def test_unknown_tagged_fields_are_skipped() -> None:
    out = bytearray(b"\x02")
    p.write_tagged_field(out, 3, bytearray(b"abc"))
    p.write_tagged_field(out, 300, bytearray())
    assert p.skip_tags(memoryview(out + b"rest"), 0) == len(out)


def test_a_tagged_field_beyond_the_end_is_refused() -> None:
    with pytest.raises(p.MalformedRequest, match="Tagged field 1"):
        p.skip_tags(memoryview(b"\x01\x01\x05abc"), 0)
