"""The primitive types of Kafka's protocol, read from a memoryview and written to a bytearray.

Readers take `(buffer, position)` and return `(value, position)`. Lengths are compared with the bytes that are left
before anything is allocated. Readers raise MalformedRequest, or one of DECODING_FAILURES when the buffer ends inside a
number; the public `read_*` functions of the generated modules turn the latter into MalformedRequest.

A "legacy" string or array carries its length as a number of fixed size, a "compact" one (KIP-482) as a varint of
length plus one, where zero stands for null.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import UUID

INT16: Final = struct.Struct(">h")
INT32: Final = struct.Struct(">i")

# Replica lists are short, and there is one for every partition: their layouts are compiled once.
_SHORT_LAYOUTS: Final = {code: tuple(struct.Struct(f">{count}{code}") for count in range(9)) for code in "bhHiq"}

MAX_STRING_LENGTH: Final = 0x7FFF
# For all arrays of one request together. A request that names every partition of the largest cluster has half as many.
MAX_ELEMENTS: Final = 400_000
# Kafka's varint of 32 bits: five bytes at most, seven bits each.
_LAST_VARINT_SHIFT: Final = 28


class MalformedRequest(ValueError):
    """The bytes are no message of the announced kind and version. The sender is disconnected."""


DECODING_FAILURES: Final = (struct.error, IndexError, OverflowError)


def truncated(message: str) -> MalformedRequest:
    """The error for bytes that end in the middle of `message`."""
    return MalformedRequest(f"{message} ends before its last field.")


def null_error(name: str) -> MalformedRequest:
    """The error for a null where this version of the message allows none."""
    return MalformedRequest(f"Field {name} may not be null in this version.")


# Reading


def read_uvarint(buffer: memoryview, position: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits."""
    byte = buffer[position]
    position += 1
    if byte < 0x80:
        return byte, position
    value = byte & 0x7F
    shift = 7
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFF, position
        if shift == _LAST_VARINT_SHIFT:
            raise MalformedRequest("A varint is longer than five bytes.")
        shift += 7


def _text(buffer: memoryview, position: int, length: int) -> tuple[str, int]:
    end = position + length
    if end > len(buffer) or length > MAX_STRING_LENGTH:
        raise MalformedRequest(
            f"A string of {length} bytes does not fit into the {len(buffer) - position} bytes that are left."
        )
    # As in Kafka, bytes that are not UTF-8 become replacement characters: a client id in Latin-1 is no reason to
    # disconnect.
    return str(buffer[position:end], "utf-8", "replace"), end


def read_string(buffer: memoryview, position: int) -> tuple[str, int]:
    """A legacy string that is not null."""
    (length,) = INT16.unpack_from(buffer, position)
    if length < 0:
        raise null_error("string")
    return _text(buffer, position + 2, length)


def read_nullable_string(buffer: memoryview, position: int) -> tuple[str | None, int]:
    """A legacy string or null."""
    (length,) = INT16.unpack_from(buffer, position)
    if length < 0:
        return None, position + 2
    return _text(buffer, position + 2, length)


def read_compact_string(buffer: memoryview, position: int) -> tuple[str, int]:
    """A compact string that is not null."""
    length, position = read_uvarint(buffer, position)
    if length == 0:
        raise null_error("string")
    return _text(buffer, position, length - 1)


def read_compact_nullable_string(buffer: memoryview, position: int) -> tuple[str | None, int]:
    """A compact string or null."""
    length, position = read_uvarint(buffer, position)
    if length == 0:
        return None, position
    return _text(buffer, position, length - 1)


def _bytes(buffer: memoryview, position: int, length: int) -> tuple[bytes, int]:
    end = position + length
    if end > len(buffer):
        raise MalformedRequest(f"{length} bytes do not fit into {len(buffer) - position} bytes.")
    return bytes(buffer[position:end]), end


def read_bytes(buffer: memoryview, position: int) -> tuple[bytes, int]:
    """Legacy bytes that are not null."""
    (length,) = INT32.unpack_from(buffer, position)
    if length < 0:
        raise null_error("bytes")
    return _bytes(buffer, position + 4, length)


def read_nullable_bytes(buffer: memoryview, position: int) -> tuple[bytes | None, int]:
    """Legacy bytes or null."""
    (length,) = INT32.unpack_from(buffer, position)
    if length < 0:
        return None, position + 4
    return _bytes(buffer, position + 4, length)


def read_compact_bytes(buffer: memoryview, position: int) -> tuple[bytes, int]:
    """Compact bytes that are not null."""
    length, position = read_uvarint(buffer, position)
    if length == 0:
        raise null_error("bytes")
    return _bytes(buffer, position, length - 1)


def read_compact_nullable_bytes(buffer: memoryview, position: int) -> tuple[bytes | None, int]:
    """Compact bytes or null."""
    length, position = read_uvarint(buffer, position)
    if length == 0:
        return None, position
    return _bytes(buffer, position, length - 1)


def read_uuid(buffer: memoryview, position: int) -> tuple[UUID, int]:
    """Sixteen bytes."""
    raw, position = _bytes(buffer, position, 16)
    return UUID(bytes=raw), position


# One counter for all readers: reading a message never waits, so messages are read one at a time.
_elements_left = [sys.maxsize]


@contextmanager
def at_most(elements: int) -> Iterator[None]:
    """Inside the block, all arrays together may have this many elements.

    An element of two bytes becomes an object of a hundred: without a limit, a hundred well-formed megabytes would hold
    up the broker for minutes.
    """
    _elements_left[0] = elements
    try:
        yield
    finally:
        _elements_left[0] = sys.maxsize


def _check_array(buffer: memoryview, position: int, count: int, element_size: int) -> None:
    if count * element_size > len(buffer) - position:
        raise MalformedRequest(f"An array of {count} elements does not fit into {len(buffer) - position} bytes.")
    _elements_left[0] -= count
    if _elements_left[0] < 0:
        raise MalformedRequest("The arrays of the message have too many elements.")


def read_nullable_array_length(buffer: memoryview, position: int, element_size: int) -> tuple[int, int]:
    """The length of a legacy array, -1 for null. `element_size` is the least an element can take, at least 1."""
    (count,) = INT32.unpack_from(buffer, position)
    position += 4
    if count < 0:
        return -1, position
    _check_array(buffer, position, count, element_size)
    return count, position


def read_array_length(buffer: memoryview, position: int, element_size: int) -> tuple[int, int]:
    """The length of a legacy array that is not null."""
    count, position = read_nullable_array_length(buffer, position, element_size)
    if count < 0:
        raise null_error("array")
    return count, position


def read_compact_nullable_array_length(buffer: memoryview, position: int, element_size: int) -> tuple[int, int]:
    """The length of a compact array, -1 for null."""
    count, position = read_uvarint(buffer, position)
    _check_array(buffer, position, count - 1, element_size)
    return count - 1, position


def read_compact_array_length(buffer: memoryview, position: int, element_size: int) -> tuple[int, int]:
    """The length of a compact array that is not null."""
    count, position = read_uvarint(buffer, position)
    if count == 0:
        raise null_error("array")
    _check_array(buffer, position, count - 1, element_size)
    return count - 1, position


def read_numbers(buffer: memoryview, position: int, count: int, code: str) -> tuple[list[int], int]:
    """`count` numbers of the struct format `code`, in one go. Their length has been checked with the array's."""
    layout = _SHORT_LAYOUTS[code][count] if count < 9 else struct.Struct(f">{count}{code}")
    return list(layout.unpack_from(buffer, position)), position + layout.size


def read_tag(buffer: memoryview, position: int) -> tuple[int, int, int]:
    """The head of a tagged field: its tag, where its value starts, and where the next field starts."""
    tag, position = read_uvarint(buffer, position)
    size, position = read_uvarint(buffer, position)
    end = position + size
    if end > len(buffer):
        raise MalformedRequest(f"Tagged field {tag} of {size} bytes does not fit into {len(buffer) - position} bytes.")
    return tag, position, end


def skip_tags(buffer: memoryview, position: int) -> int:
    """Pass over a section of tagged fields of which we know none."""
    count, position = read_uvarint(buffer, position)
    for _ in range(count):
        _, _, position = read_tag(buffer, position)
    return position


# Writing


def write_uvarint(out: bytearray, value: int) -> None:
    """An unsigned varint."""
    if value < 0x80:
        out.append(value)
        return
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _encoded(value: str) -> bytes:
    raw = value.encode("utf-8", "replace")
    if len(raw) > MAX_STRING_LENGTH:
        raise ValueError(f"A string of {len(raw)} bytes is longer than the protocol allows ({MAX_STRING_LENGTH}).")
    return raw


def write_string(out: bytearray, value: str) -> None:
    """A legacy string."""
    raw = _encoded(value)
    out += INT16.pack(len(raw))
    out += raw


def write_nullable_string(out: bytearray, value: str | None) -> None:
    """A legacy string or null."""
    if value is None:
        out += b"\xff\xff"
    else:
        write_string(out, value)


def write_compact_string(out: bytearray, value: str) -> None:
    """A compact string."""
    raw = _encoded(value)
    write_uvarint(out, len(raw) + 1)
    out += raw


def write_compact_nullable_string(out: bytearray, value: str | None) -> None:
    """A compact string or null."""
    if value is None:
        out.append(0)
    else:
        write_compact_string(out, value)


def write_bytes(out: bytearray, value: bytes | bytearray | memoryview) -> None:
    """Legacy bytes."""
    out += INT32.pack(len(value))
    out += value


def write_nullable_bytes(out: bytearray, value: bytes | bytearray | memoryview | None) -> None:
    """Legacy bytes or null."""
    if value is None:
        out += b"\xff\xff\xff\xff"
    else:
        write_bytes(out, value)


def write_compact_bytes(out: bytearray, value: bytes | bytearray | memoryview) -> None:
    """Compact bytes."""
    write_uvarint(out, len(value) + 1)
    out += value


def write_compact_nullable_bytes(out: bytearray, value: bytes | bytearray | memoryview | None) -> None:
    """Compact bytes or null."""
    if value is None:
        out.append(0)
    else:
        write_compact_bytes(out, value)


def write_array_length(out: bytearray, count: int) -> None:
    """The length of a legacy array, -1 for null."""
    out += INT32.pack(count)


def write_compact_array_length(out: bytearray, count: int) -> None:
    """The length of a compact array, -1 for null."""
    write_uvarint(out, count + 1)


def _packed(values: list[int], code: str) -> bytes:
    count = len(values)
    if count < 9:
        return _SHORT_LAYOUTS[code][count].pack(*values)
    return struct.pack(f">{count}{code}", *values)


def write_numbers(out: bytearray, values: list[int], code: str) -> None:
    """A legacy array of numbers of the struct format `code`."""
    out += INT32.pack(len(values))
    out += _packed(values, code)


def write_compact_numbers(out: bytearray, values: list[int], code: str) -> None:
    """A compact array of numbers of the struct format `code`."""
    write_uvarint(out, len(values) + 1)
    out += _packed(values, code)


def write_tagged_field(out: bytearray, tag: int, value: bytearray) -> None:
    """A tagged field whose value is encoded already."""
    write_uvarint(out, tag)
    write_uvarint(out, len(value))
    out += value
