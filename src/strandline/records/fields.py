"""Fields of records in `__consumer_offsets` and `__remote_log_metadata`: what both topics have in common.

Here: numbers, ids, tagged fields. The length prefixes of texts, bytes and arrays differ between the two; their readers
are in `coordinators` and `remote`. The fields of requests are in `wire`, which reads them without objects.
"""

from __future__ import annotations

from struct import Struct
from typing import Final
from uuid import UUID

from strandline.errors import CorruptMessage

I16: Final = Struct(">h")
I32: Final = Struct(">i")
I64: Final = Struct(">q")
_VARINT_SHIFTS: Final = range(0, 35, 7)


class FieldReader:
    """Reads fields one after the other. Raises CorruptMessage when the bytes end too early or make no sense."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes | memoryview, position: int = 0) -> None:
        self.data, self.position = bytes(data), position

    def take(self, size: int) -> bytes:
        end = self.position + size
        if size < 0 or end > len(self.data):
            raise self._cut(size)
        start, self.position = self.position, end
        return self.data[start:end]

    def unpack(self, layout: Struct) -> tuple[int, ...]:
        """Numbers of fixed size."""
        start = self.position
        end = start + layout.size
        if end > len(self.data):
            raise self._cut(layout.size)
        self.position = end
        return layout.unpack_from(self.data, start)

    def _cut(self, size: int) -> CorruptMessage:
        left = len(self.data) - self.position
        return CorruptMessage(f"A field of {size} bytes at position {self.position} is cut: {left} bytes are left.")

    def i8(self) -> int:
        value = self.take(1)[0]
        return value - 256 if value > 127 else value

    def i16(self) -> int:
        return self.unpack(I16)[0]

    def i32(self) -> int:
        return self.unpack(I32)[0]

    def i64(self) -> int:
        return self.unpack(I64)[0]

    def uvarint(self) -> int:
        """An unsigned varint of at most five bytes."""
        if self.position < len(self.data) and (byte := self.data[self.position]) < 0x80:
            self.position += 1  # most varints have one byte
            return byte
        value = 0
        for shift in _VARINT_SHIFTS:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise CorruptMessage(f"A varint before position {self.position} has more than five bytes.")

    def uuid(self) -> UUID:
        return UUID(bytes=self.take(16))

    def text(self, size: int) -> str:
        """`size` bytes of UTF-8."""
        try:
            return self.take(size).decode("utf-8")
        except UnicodeDecodeError as error:
            raise CorruptMessage(f"A string is not UTF-8: {error}.") from error

    def expect(self, count: int, element_size: int = 1) -> int:
        """`count`, if that many elements of at least this size fit into the bytes that are left."""
        if count * element_size > len(self.data) - self.position:
            left = len(self.data) - self.position
            raise CorruptMessage(f"An array of {count} elements does not fit into the {left} bytes that are left.")
        return count

    def tags(self) -> dict[int, bytes]:
        """The tagged fields at the end of a structure."""
        if self.data[self.position : self.position + 1] == b"\x00":
            self.position += 1
            return {}
        return {self.uvarint(): self.take(self.uvarint()) for _ in range(self.uvarint())}

    def end(self) -> None:
        """Check that no bytes are left."""
        if self.position != len(self.data):
            raise CorruptMessage(f"{len(self.data) - self.position} bytes follow the last field.")


def write_uvarint(out: bytearray, value: int) -> None:
    """An unsigned varint."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
