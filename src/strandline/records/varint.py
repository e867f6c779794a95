"""Variable-length integers of the record format: zig-zag, seven bits per byte, least significant first."""

from __future__ import annotations

from typing import Final

from strandline.errors import InvalidRecord

_MAX_BYTES: Final = 10


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """(value, next position). Raises InvalidRecord if it has more than ten bytes, IndexError if the data ends."""
    byte = data[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    value, position = read_more(data, position, byte)
    return (value >> 1) ^ -(value & 1), position


def read_more(data: bytes, position: int, first: int) -> tuple[int, int]:
    """Go on after a first byte of 0x80 or more: (unsigned value, still in zig-zag form; next position)."""
    value = first & 0x7F
    shift = 7
    while shift < 7 * _MAX_BYTES:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise InvalidRecord("A number in a record has more than ten bytes.")


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
