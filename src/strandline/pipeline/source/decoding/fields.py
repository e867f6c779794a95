"""The fields of many records at a time, as Arrow arrays. Their bytes are copied once, from the buffer to the column."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from strandline.errors import InvalidRecord
from strandline.pipeline.source.decoding.numbers import ONE, ZERO, Numbers, array_of, int64, read_varints
from strandline.pipeline.source.schema import HEADERS

_NO_BYTES: Final = int64(-1)
_HALF: Final = int64(32)


class RecordFields(NamedTuple):
    """Columns with one element for each record."""

    timestamp_deltas: Numbers
    offset_deltas: Numbers
    keys: Any
    values: Any
    headers: Any
    """None if they were not asked for."""


class _Bytes(NamedTuple):
    """Where byte strings lie; a length of -1 stands for null."""

    begins: Numbers
    lengths: Numbers
    ends: Numbers


def read_fields(data: bytes, starts: Sequence[int], sizes: Sequence[int], *, include_headers: bool) -> RecordFields:
    """The fields of the records that begin at `starts` and have these sizes. Raises InvalidRecord."""
    buffer = pa.py_buffer(data)
    content = pa.Array.from_buffers(pa.uint8(), len(data), [None, buffer])
    begins = array_of(starts)
    record_ends = pc.add(begins, array_of(sizes))
    timestamps = read_varints(content, pc.add(begins, ONE))  # behind the attributes, which are unused
    offsets = read_varints(content, timestamps.next)
    keys = _read_bytes(content, offsets.next)
    values = _read_bytes(content, keys.ends)
    counts = read_varints(content, values.ends)
    # Positions only rise: if the last is inside its record, all are, and the columns can be taken from the buffer.
    if include_headers:
        headers, ends = _read_headers(content, buffer, counts.values, counts.next, record_ends)
        is_whole = pc.all(pc.equal(ends, record_ends))
    else:
        headers = None
        is_whole = pc.all(pc.less_equal(counts.next, record_ends))
    if not is_whole.as_py():
        raise InvalidRecord("A record of the batch does not end where its length says.")
    return RecordFields(timestamps.values, offsets.values, _column(buffer, keys), _column(buffer, values), headers)


def _read_bytes(content: Numbers, at: Numbers) -> _Bytes:
    """Byte strings that follow their lengths."""
    lengths = read_varints(content, at)
    if len(at) and not -1 <= pc.min(lengths.values).as_py() <= pc.max(lengths.values).as_py() <= len(content):
        raise InvalidRecord("A field of a record is longer than its batch.")
    ends = pc.add(lengths.next, pc.max_element_wise(lengths.values, ZERO))
    return _Bytes(lengths.next, lengths.values, ends)


def _column(buffer: pa.Buffer, found: _Bytes, kind: Any = None) -> Any:
    """The byte strings as a column of their own.

    An Arrow column of bytes has no gaps. So the buffer is first described as a column that alternates between fields
    and the gaps behind them; taking every other element of it copies the fields at the speed of memory.
    """
    kind = kind or pa.binary()
    count = len(found.begins)
    if count == 0 or pc.max(found.lengths).as_py() < 0:
        return pa.nulls(count, kind)
    bounds = pc.bit_wise_or(found.begins, pc.shift_left(found.ends, _HALF)).buffers()[1]  # pairs of 32 bits each
    alternating = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, bounds, buffer])
    _, offsets, data = alternating.take(_even(count)).buffers()
    present = pc.greater(found.lengths, _NO_BYTES)
    validity = None if pc.all(present).as_py() else present.buffers()[1]
    return pa.Array.from_buffers(kind, count, [validity, offsets, data])


def _even(count: int) -> Any:
    """0, 2, 4 and so on."""
    return _many_even(max(1 << (count - 1).bit_length(), 1024)).slice(0, count)


@lru_cache(maxsize=32)
def _many_even(count: int) -> Any:
    return pa.array(range(0, 2 * count, 2), pa.int32())


def _read_headers(
    content: Numbers, buffer: pa.Buffer, counts: Numbers, at: Numbers, record_ends: Numbers
) -> tuple[Any, Numbers]:
    """The column of headers, and the positions behind them. Records without headers have null, as in Spark's source.

    The first header of all records is read, then the second of those that have two, and so on.
    """
    room = pc.subtract(record_ends, at)
    if not pc.all(pc.and_(pc.greater_equal(counts, ZERO), pc.less_equal(counts, room))).as_py():
        raise InvalidRecord("A record claims more headers than it has bytes.")
    rounds = pc.max(counts).as_py() or 0
    keys, values = [], []
    for number in range(rounds):
        is_concerned = pc.greater(counts, int64(number))
        key = _read_bytes(content, at.filter(is_concerned))
        if pc.min(key.lengths).as_py() < 0:
            raise InvalidRecord("A header of a record has no key.")
        value = _read_bytes(content, key.ends)
        at = pc.replace_with_mask(at, is_concerned, value.ends)
        keys.append(key)
        values.append(value)
    if not pc.all(pc.less_equal(at, record_ends)).as_py():
        raise InvalidRecord("The headers of a record do not end where its length says.")
    return _headers_column(buffer, counts, keys, values), at


def _headers_column(buffer: pa.Buffer, counts: Numbers, keys: list[_Bytes], values: list[_Bytes]) -> Any:
    if not keys:
        return pa.nulls(len(counts), HEADERS)
    # Positions rise from record to record, and from header to header.
    by_record = pc.array_sort_indices(pa.concat_arrays([key.begins for key in keys]))
    key_column = _column(buffer, _in_order(keys, by_record), pa.string())
    value_column = _column(buffer, _in_order(values, by_record))
    pairs = pa.StructArray.from_arrays([key_column, value_column], fields=list(HEADERS.value_type))
    ends = pc.cumulative_sum(counts)
    offsets = pa.concat_arrays([array_of([0]), ends]).cast(pa.int32())
    has_some = pc.greater(counts, ZERO)
    validity = None if pc.all(has_some).as_py() else has_some.buffers()[1]
    return pa.Array.from_buffers(HEADERS, len(counts), [validity, offsets.buffers()[1]], children=[pairs])


def _in_order(parts: list[_Bytes], order: Any) -> _Bytes:
    return _Bytes._make(pa.concat_arrays(column).take(order) for column in zip(*parts, strict=True))
