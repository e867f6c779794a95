"""What consumers tell each other through the coordinator, which carries it as bytes: their partitions."""

from __future__ import annotations

from struct import Struct, error
from typing import Final

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
CONSUMER_PROTOCOL: Final = "consumer"


def assigned_partitions(protocol_type: str, assignment: bytes) -> list[tuple[str, int]]:
    """The (topic, partition) pairs of a consumer's assignment; none if the bytes are of another protocol or broken."""
    if protocol_type != CONSUMER_PROTOCOL or not assignment:
        return []
    try:
        return sorted(_read(memoryview(assignment)))
    except (error, UnicodeDecodeError):
        return []


def _read(data: memoryview) -> list[tuple[str, int]]:
    # version (int16), then an array of topic (string) and partitions (array of int32), then user data.
    pairs: list[tuple[str, int]] = []
    (topics,) = _INT32.unpack_from(data, 2)
    position = 6
    for _ in range(topics):
        (length,) = _INT16.unpack_from(data, position)
        if length < 0:
            return []
        position += 2
        topic = str(data[position : position + length], "utf-8")
        position += length
        (count,) = _INT32.unpack_from(data, position)
        position += 4
        for _ in range(count):
            pairs.append((topic, _INT32.unpack_from(data, position)[0]))
            position += 4
    return pairs
