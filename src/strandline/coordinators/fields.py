"""Fields of the records in internal topics: Kafka's primitive types, plain and compact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strandline.errors import CorruptMessage, InvalidRequest
from strandline.records.fields import I16, I32, I64, FieldReader, write_uvarint

LONGEST_STRING: Final = 32767


class CoordinatorFieldReader(FieldReader):
    """Reads one key or value, or a part of the consumer protocol. Newer versions are `compact`."""

    __slots__ = ()

    def nullable_bytes(self, *, compact: bool) -> bytes | None:
        size = self.uvarint() - 1 if compact else self.i32()
        return None if size < 0 else self.take(size)

    def blob(self, *, compact: bool) -> bytes:
        return self.nullable_bytes(compact=compact) or b""

    def nullable_string(self, *, compact: bool = False) -> str | None:
        size = self.uvarint() - 1 if compact else self.i16()
        return None if size < 0 else self.text(size)

    def string(self, *, compact: bool = False) -> str:
        value = self.nullable_string(compact=compact)
        if value is None:
            raise CorruptMessage("A string is null where the schema forbids it.")
        return value

    def array_length(self, *, compact: bool) -> int:
        """The length of an array; null counts as empty."""
        return max(self.expect(self.uvarint() - 1 if compact else self.i32()), 0)


class FieldWriter:
    """Builds one key or value, field by field. Raises InvalidRequest for a string that is too long for the format."""

    __slots__ = ("_out",)

    def __init__(self, type_or_version: int | None) -> None:
        """None: a part of a value, which has no version of its own."""
        self._out = bytearray(b"" if type_or_version is None else I16.pack(type_or_version))

    def i8(self, value: int) -> FieldWriter:
        self._out += value.to_bytes(1, "big", signed=True)
        return self

    def i16(self, value: int) -> FieldWriter:
        self._out += I16.pack(value)
        return self

    def i32(self, value: int) -> FieldWriter:
        self._out += I32.pack(value)
        return self

    def i64(self, value: int) -> FieldWriter:
        self._out += I64.pack(value)
        return self

    def varint(self, value: int) -> FieldWriter:
        write_uvarint(self._out, value)
        return self

    def string(self, value: str | None) -> FieldWriter:
        if value is None:
            return self.i16(-1)
        raw = value.encode("utf-8")
        if len(raw) > LONGEST_STRING:
            raise InvalidRequest(
                f"A string of {len(raw)} bytes is longer than the {LONGEST_STRING} that a record can hold."
            )
        self.i16(len(raw))
        self._out += raw
        return self

    def compact_string(self, value: str) -> FieldWriter:
        raw = value.encode("utf-8")
        self.varint(len(raw) + 1)
        self._out += raw
        return self

    def compact_nullable_string(self, value: str | None) -> FieldWriter:
        return self.varint(0) if value is None else self.compact_string(value)

    def compact_blob(self, value: bytes) -> FieldWriter:
        return self.varint(len(value) + 1).raw(value)

    def raw(self, value: bytes) -> FieldWriter:
        """Bytes as they are: an id, or fields that were written before."""
        self._out += value
        return self

    def text(self, value: str, *, compact: bool) -> FieldWriter:
        """A string in the form of the version."""
        return self.compact_string(value) if compact else self.string(value)

    def array_length(self, length: int | None, *, compact: bool) -> FieldWriter:
        """The length of an array; None: the array is null."""
        if compact:
            return self.varint(0 if length is None else length + 1)
        return self.i32(-1 if length is None else length)

    def blob(self, value: bytes) -> FieldWriter:
        self.i32(len(value))
        self._out += value
        return self

    def tags(self, values: Mapping[int, bytes]) -> FieldWriter:
        """The tagged fields at the end of a compact structure, in the order of their numbers."""
        self.varint(len(values))
        for tag, value in sorted(values.items()):
            self.varint(tag).varint(len(value))
            self._out += value
        return self

    def done(self) -> bytes:
        return bytes(self._out)
