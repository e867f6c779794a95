"""The field types of the records of `__remote_log_metadata`: Kafka's compact types (KIP-482)."""

from __future__ import annotations

from strandline.errors import CorruptMessage
from strandline.records.fields import FieldReader, write_uvarint


class CompactReader(FieldReader):
    """Strings, bytes and arrays with their length plus one as a varint; 0 is null."""

    __slots__ = ()

    def string(self) -> str:
        size = self.uvarint() - 1
        if size < 0:
            raise CorruptMessage("A string is null where null is not allowed.")
        return self.text(size)

    def nullable_bytes(self) -> bytes | None:
        size = self.uvarint() - 1
        return None if size < 0 else self.take(size)

    def array_length(self, element_size: int) -> int:
        """The length of an array whose elements have at least `element_size` bytes."""
        count = self.uvarint() - 1
        if count < 0:
            raise CorruptMessage("An array is null where null is not allowed.")
        return self.expect(count, element_size)


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
