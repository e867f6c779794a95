"""Varints of many records at a time, and numbers that many records share: over Arrow arrays, without a loop."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from strandline.errors import InvalidRecord

# Arrow has no stubs with the functions of `compute`.
Numbers = Any

_LOW: Final = pa.scalar(0x7F, pa.uint8())
_HIGH: Final = pa.scalar(0x80, pa.uint8())
_MAX_BYTES: Final = 10


def int64(value: int) -> Any:
    """A number for calculations with arrays."""
    return pa.scalar(value, pa.int64())


ZERO: Final = int64(0)
ONE: Final = int64(1)


class ReadNumbers(NamedTuple):
    """Numbers, and the positions behind them."""

    values: Numbers
    next: Numbers


def array_of(numbers: Sequence[int]) -> Numbers:
    """Numbers of 64 bits."""
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(array("q", numbers))])


def repeated(values: Sequence[int], ends: Sequence[int]) -> Numbers:
    """Each value again and again, up to its end, exclusive: ends rise, and are counted from the first element on."""
    runs = pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), array_of(values))
    return pc.run_end_decode(runs)


def read_varints(data: Numbers, at: Numbers) -> ReadNumbers:
    """The varints at these positions of `data` (bytes as an array). Raises InvalidRecord."""
    try:
        first = data.take(at)
        if len(first) == 0 or pc.max(first).as_py() < 0x80:
            return ReadNumbers(_unzigzag(first.cast(pa.int64())), pc.add(at, ONE))
        return _read_long(data, at, first)
    except pa.ArrowIndexError:
        raise InvalidRecord("A record of the batch is cut.") from None


def _read_long(data: Numbers, at: Numbers, byte: Numbers) -> ReadNumbers:
    """Goes on for all of them until the last has ended; those that have ended stay where they are."""
    value = pc.bit_wise_and(byte, _LOW).cast(pa.int64())
    goes_on = pc.greater_equal(byte, _HIGH)
    for size in range(1, _MAX_BYTES):
        at = pc.add(at, goes_on.cast(pa.int8()))
        byte = data.take(at)
        part = pc.shift_left(pc.bit_wise_and(byte, _LOW).cast(pa.int64()), int64(7 * size))
        value = pc.if_else(goes_on, pc.bit_wise_or(value, part), value)
        goes_on = pc.and_(goes_on, pc.greater_equal(byte, _HIGH))
        if not pc.any(goes_on).as_py():
            return ReadNumbers(_unzigzag(value), pc.add(at, ONE))
    raise InvalidRecord("A number in a record has more than ten bytes.")


def _unzigzag(coded: Numbers) -> Numbers:
    half = pc.shift_right(coded.view(pa.uint64()), pa.scalar(1, pa.uint64())).view(pa.int64())
    return pc.bit_wise_xor(half, pc.negate(pc.bit_wise_and(coded, ONE)))
