"""Where the records of a batch begin. The only step of decoding that looks at one record after the other.

A record says only how long it is, so its successor is found through it. Records of the same length are passed over
together: if a record has n bytes and the byte n further is the same length again, that is the next record, and so on.
Slices of bytes with a step find such a run without a loop.
"""

from __future__ import annotations

from typing import Final

from strandline.errors import InvalidRecord
from strandline.records.varint import read_more

# A run this short is not worth looking for: records of different lengths follow. So many are then read one by one.
_SHORT_RUN: Final = 8
_SINGLY: Final = 64


def find_records(data: bytes, position: int, end: int, count: int, *, starts: list[int], sizes: list[int]) -> None:
    """Append where each of `count` records begins behind its length, and its length.

    Raises InvalidRecord if the bytes from `position` to `end` do not hold exactly these records.
    """
    begin, left = position, count
    try:
        while left > 0:
            position, taken = _take_run(data, position, left, starts, sizes)
            left -= taken
            if taken < _SHORT_RUN and left > 0:
                singly = min(left, _SINGLY)
                position = _take_singly(data, position, singly, starts, sizes)
                left -= singly
    except IndexError:
        raise InvalidRecord("A record of the batch is cut.") from None
    if left < 0 or position != end:
        raise InvalidRecord(
            f"The batch claims {count} records in {end - begin} bytes; they end {position - end} bytes off its end."
        )


def _take_run(data: bytes, position: int, left: int, starts: list[int], sizes: list[int]) -> tuple[int, int]:
    """All records from `position` on that are as long as the first. Next position, and how many there are."""
    start, size = _length(data, position)
    stride = start - position + size
    run = left
    for at in range(position, start):
        same = data[at : at + stride * run : stride]
        run = len(same) - len(same.lstrip(same[:1]))
    run = max(run, 1)
    starts.extend(range(start, start + stride * run, stride))
    sizes.extend([size] * run)
    return position + stride * run, run


def _take_singly(data: bytes, position: int, count: int, starts: list[int], sizes: list[int]) -> int:
    add_start, add_size = starts.append, sizes.append
    for _ in range(count):
        size = data[position]
        if size < 0x80:  # without a call: this is the loop of records of different lengths
            position += 1
        elif data[position + 1] < 0x80:
            size = size & 0x7F | data[position + 1] << 7
            position += 2
        else:
            size, position = read_more(data, position + 1, size)
        if size & 1:
            raise InvalidRecord("A record of the batch has a negative length.")
        size >>= 1
        add_start(position)
        add_size(size)
        position += size
    return position


def _length(data: bytes, position: int) -> tuple[int, int]:
    """Where the record begins behind its length, and the length."""
    first = data[position]
    if first < 0x80:
        coded, start = first, position + 1
    else:
        coded, start = read_more(data, position + 1, first)
    if coded & 1:
        raise InvalidRecord("A record of the batch has a negative length.")
    return start, coded >> 1
