"""Variable-length integers of the record format: zig-zag, seven bits per byte, least significant first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.errors import InvalidRecord

if TYPE_CHECKING:
    from mypy_extensions import i64  # a machine integer in compiled code; plain Python does not load it

_LAST_SHIFT: Final = 63
FAR: Final = 1 << 61  # no legal value is as far from zero, and it is quick to compare with

# The loop stands in both `read_more` and `read_long` on purpose: one that called the other would cost a call, and a
# tuple, for each number of several bytes. A change of one belongs into the other.


def read_varint(data: bytes, position: i64) -> tuple[i64, i64]:
    """(value, next position). Raises InvalidRecord if it has more than ten bytes, IndexError if the data ends."""
    byte: i64 = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    return read_long(data, position + 1, byte)


def read_more(data: bytes, position: i64, first: i64) -> tuple[i64, i64]:
    """Go on after a first byte of 0x80 or more, for sizes: (unsigned value, still in zig-zag form; next position).

    Raises InvalidRecord if it has more than nine bytes, which no size needs.
    """
    value = first & 0x7F
    shift: i64 = 7
    while shift < _LAST_SHIFT:
        byte: i64 = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise InvalidRecord("A size in a record has more than nine bytes.")


def read_long(data: bytes, position: i64, first: i64) -> tuple[i64, i64]:
    """Go on after a first byte of 0x80 or more, for any number of 64 bits: (value, next position)."""
    value = first & 0x7F
    shift: i64 = 7
    while shift < _LAST_SHIFT:
        byte: i64 = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
    # The tenth byte has the highest bit, for which there is no room beside the sign: it is put where it ends up.
    last: i64 = data[position]
    if last >= 0x80:
        raise InvalidRecord("A number in a record has more than ten bytes.")
    return (value >> 1 | (last & 1) << 62) ^ -(value & 1), position + 1


def write_varint(output: bytearray, value: int) -> None:
    """Append a number of up to 64 bits, signed."""
    value = (value << 1) ^ (value >> 63)
    while value > 0x7F:
        output.append(value & 0x7F | 0x80)
        value >>= 7
    output.append(value)


def varint_size(value: int) -> int:
    """How many bytes `write_varint` appends for `value`."""
    value = (value << 1) ^ (value >> 63)
    return max(1, (value.bit_length() + 6) // 7)


def in_64_bits(value: int) -> int:
    """What a sum or difference of two numbers of 64 bits is in Kafka, where it wraps around."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
