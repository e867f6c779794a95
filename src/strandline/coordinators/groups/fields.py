"""Fields of the records in `__consumer_offsets`: Kafka's primitive types, plain and compact."""

from __future__ import annotations

import struct
import uuid
from typing import Final

from strandline.errors import CorruptMessage, InvalidRequest

LONGEST_STRING: Final = 32767

_I16: Final = struct.Struct(">h")
_I32: Final = struct.Struct(">i")
_I64: Final = struct.Struct(">q")


class FieldReader:
    """Reads one key or value from its beginning. Raises CorruptMessage when the bytes end too early."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = bytes(data)
        self._position = 0

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if size < 0 or end > len(self._data):
            raise CorruptMessage(
                f"a group record has {len(self._data)} bytes, too few for a field of {size} at {self._position}"
            )
        start, self._position = self._position, end
        return self._data[start:end]

    def i16(self) -> int:
        return int(_I16.unpack(self._take(2))[0])

    def i32(self) -> int:
        return int(_I32.unpack(self._take(4))[0])

    def i64(self) -> int:
        return int(_I64.unpack(self._take(8))[0])

    def varint(self) -> int:
        """An unsigned varint of at most five bytes."""
        value = 0
        for shift in range(0, 35, 7):
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise CorruptMessage("a length in a group record is not a valid varint")

    def nullable_bytes(self, *, compact: bool) -> bytes | None:
        size = self.varint() - 1 if compact else self.i32()
        return None if size < 0 else self._take(size)

    def blob(self, *, compact: bool) -> bytes:
        return self.nullable_bytes(compact=compact) or b""

    def nullable_string(self, *, compact: bool = False) -> str | None:
        size = self.varint() - 1 if compact else self.i16()
        if size < 0:
            return None
        try:
            return self._take(size).decode("utf-8")
        except UnicodeDecodeError as error:
            raise CorruptMessage(f"a string in a group record is not UTF-8: {error}") from error

    def string(self, *, compact: bool = False) -> str:
        value = self.nullable_string(compact=compact)
        if value is None:
            raise CorruptMessage("a string in a group record is null where the schema forbids it")
        return value

    def array_length(self, *, compact: bool) -> int:
        size = self.varint() - 1 if compact else self.i32()
        if size > len(self._data) - self._position:
            raise CorruptMessage(f"a group record announces {size} elements in fewer bytes")
        return max(size, 0)

    def tags(self) -> dict[int, bytes]:
        """The tagged fields at the end of a flexible struct."""
        return {self.varint(): self._take(self.varint()) for _ in range(self.varint())}


class FieldWriter:
    """Builds one key or value, field by field. Raises InvalidRequest for a text too long for the format."""

    __slots__ = ("_out",)

    def __init__(self, type_or_version: int) -> None:
        self._out = bytearray(_I16.pack(type_or_version))

    def i16(self, value: int) -> FieldWriter:
        self._out += _I16.pack(value)
        return self

    def i32(self, value: int) -> FieldWriter:
        self._out += _I32.pack(value)
        return self

    def i64(self, value: int) -> FieldWriter:
        self._out += _I64.pack(value)
        return self

    def varint(self, value: int) -> FieldWriter:
        while value >= 0x80:
            self._out.append(value & 0x7F | 0x80)
            value >>= 7
        self._out.append(value)
        return self

    def string(self, value: str | None) -> FieldWriter:
        if value is None:
            return self.i16(-1)
        raw = value.encode("utf-8")
        if len(raw) > LONGEST_STRING:
            raise InvalidRequest(f"a text of {len(raw)} bytes cannot be stored with a group; {LONGEST_STRING} can")
        self.i16(len(raw))
        self._out += raw
        return self

    def compact_string(self, value: str) -> FieldWriter:
        raw = value.encode("utf-8")
        self.varint(len(raw) + 1)
        self._out += raw
        return self

    def blob(self, value: bytes) -> FieldWriter:
        self.i32(len(value))
        self._out += value
        return self

    def uuid_tag(self, tag: int, value: uuid.UUID) -> FieldWriter:
        """A tag section that holds one UUID."""
        self.varint(1).varint(tag).varint(16)
        self._out += value.bytes
        return self

    def done(self) -> bytes:
        return bytes(self._out)
