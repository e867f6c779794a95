"""The types that the records of `__remote_log_metadata` are made of: Kafka's compact ones (KIP-482)."""

from __future__ import annotations

from struct import Struct
from typing import Final
from uuid import UUID

from strandline.errors import CorruptMessage

I32: Final = Struct(">i")
I64: Final = Struct(">q")
_VARINT_SHIFTS: Final = range(0, 35, 7)


class FieldReader:
    """Reads fields one after the other. Raises CorruptMessage when the bytes end too early or make no sense."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data, self.position = data, position

    def take(self, size: int) -> bytes:
        end = self.position + size
        if size < 0 or end > len(self.data):
            left = len(self.data) - self.position
            raise CorruptMessage(f"a field of {size} bytes at position {self.position}, where {left} are left")
        start, self.position = self.position, end
        return self.data[start:end]

    def unpack(self, layout: Struct) -> tuple[int, ...]:
        """Several numbers of fixed size."""
        return layout.unpack(self.take(layout.size))

    def i8(self) -> int:
        value = self.take(1)[0]
        return value - 256 if value > 127 else value

    def i32(self) -> int:
        return self.unpack(I32)[0]

    def i64(self) -> int:
        return self.unpack(I64)[0]

    def uvarint(self) -> int:
        if self.position < len(self.data) and (byte := self.data[self.position]) < 0x80:
            self.position += 1  # by far the most have one byte
            return byte
        value = 0
        for shift in _VARINT_SHIFTS:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise CorruptMessage(f"a varint of more than five bytes before position {self.position}")

    def uuid(self) -> UUID:
        return UUID(bytes=self.take(16))

    def string(self) -> str:
        raw = self.nullable_bytes()
        if raw is None:
            raise CorruptMessage("a string is null where none may be")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise CorruptMessage(f"a string is no UTF-8: {error}") from error

    def nullable_bytes(self) -> bytes | None:
        size = self.uvarint() - 1
        return None if size < 0 else self.take(size)

    def array_length(self, element_size: int) -> int:
        """The length of an array whose elements have at least so many bytes."""
        count = self.uvarint() - 1
        if count < 0 or count * element_size > len(self.data) - self.position:
            raise CorruptMessage(f"an array of {count} elements, where {len(self.data) - self.position} bytes are left")
        return count

    def tags(self) -> dict[int, bytes]:
        """The tagged fields at the end of a structure."""
        if self.data[self.position : self.position + 1] == b"\x00":
            self.position += 1
            return {}
        return {self.uvarint(): self.take(self.uvarint()) for _ in range(self.uvarint())}

    def end(self) -> None:
        """Nothing may be left."""
        if self.position != len(self.data):
            raise CorruptMessage(f"{len(self.data) - self.position} bytes too many after the last field")


def write_uvarint(out: bytearray, value: int) -> None:
    """An unsigned varint."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def write_bytes(out: bytearray, value: bytes | None) -> None:
    """Compact bytes or null."""
    if value is None:
        out.append(0)
        return
    write_uvarint(out, len(value) + 1)
    out += value


def write_string(out: bytearray, value: str) -> None:
    """A compact string."""
    write_bytes(out, value.encode("utf-8"))
