"""Ask a broker, with a few hand-made requests, whether a client would be served. Standard library only."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_API_VERSIONS: Final = 18
_METADATA: Final = 3
_METADATA_VERSION: Final = 1
_LIST_OFFSETS: Final = 2
_LIST_OFFSETS_VERSION: Final = 1
_TIERED_OFFSETS_VERSION: Final = 9
_LATEST_TIERED: Final = -5
_CLIENT_ID: Final = b"probe"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a Metadata answer says: how many brokers are alive, and how many partitions of each topic have a leader."""

    brokers: int
    led_by_topic: Mapping[str, int]


def is_answering(host: str, port: int, *, led_partitions: int = 0, topics: Mapping[str, int] | None = None) -> bool:
    """True when the broker answers ApiVersions and Metadata, knows itself, and leads what it should.

    `led_partitions`: at least so many partitions have a leader; `topics`: all partitions of these have one.
    """
    try:
        with socket.create_connection((host, port), timeout=5.0) as connection:
            _ask(connection, _API_VERSIONS, 0, b"")
            seen = parse_metadata(_ask(connection, _METADATA, _METADATA_VERSION, struct.pack(">i", -1)))
    except (OSError, EOFError):
        return False
    leads_topics = all(seen.led_by_topic.get(name) == count for name, count in (topics or {}).items())
    return seen.brokers > 0 and leads_topics and sum(seen.led_by_topic.values()) >= led_partitions


def is_serving(host: str, port: int, topic: str, partitions: int) -> bool:
    """True when the broker answers ListOffsets for each partition as its leader.

    Metadata may name a leader before that broker has made the partition ready, and a client would wait and try again.
    """
    name = struct.pack(">h", len(topic)) + topic.encode()
    asked = b"".join(struct.pack(">iq", partition, -1) for partition in range(partitions))
    body = struct.pack(">ii", -1, 1) + name + struct.pack(">i", partitions) + asked
    try:
        with socket.create_connection((host, port), timeout=5.0) as connection:
            reader = _Reader(_ask(connection, _LIST_OFFSETS, _LIST_OFFSETS_VERSION, body))
    except (OSError, EOFError):
        return False
    reader.skip(4)
    reader.string()
    errors = []
    for _ in range(reader.number(">i")):
        reader.skip(4)
        errors.append(reader.number(">h"))
        reader.skip(16)
    return errors == [0] * partitions


def latest_tiered_offsets(host: str, port: int, topic: str, partitions: int) -> list[int]:
    """The last offset in remote storage of each partition, -1 where nothing is. Raises OSError.

    Client libraries cannot ask for it yet: this is ListOffsets 9 with the timestamp -5 (KIP-1005).
    """
    asked = b"".join(struct.pack(">iiqb", partition, -1, _LATEST_TIERED, 0) for partition in range(partitions))
    name = _compact(len(topic.encode())) + topic.encode()
    body = struct.pack(">ib", -1, 0) + _compact(1) + name + _compact(partitions) + asked + b"\0\0"
    with socket.create_connection((host, port), timeout=5.0) as connection:
        # The header of such a request ends with a byte for its tags, and so does that of its answer.
        reader = _Reader(_ask(connection, _LIST_OFFSETS, _TIERED_OFFSETS_VERSION, b"\0" + body))
    reader.skip(1 + 4 + 1)
    reader.skip(reader.compact())
    offsets = [-1] * partitions
    for _ in range(reader.compact()):
        partition, error = reader.number(">i"), reader.number(">h")
        if error != 0:
            raise OSError(f"ListOffsets for {topic}-{partition} ended with error {error}.")
        reader.skip(8)
        offsets[partition] = reader.number(">q")
        reader.skip(4 + 1)
    return offsets


def parse_metadata(body: bytes) -> Seen:
    """Walk a Metadata v1 answer without its correlation id."""
    reader = _Reader(body)
    brokers = reader.number(">i")
    for _ in range(brokers):
        reader.skip(4)
        reader.string()
        reader.skip(4)
        reader.string()
    reader.skip(4)
    return Seen(brokers=brokers, led_by_topic=dict(_read_topic(reader) for _ in range(reader.number(">i"))))


def _read_topic(reader: _Reader) -> tuple[str, int]:
    reader.skip(2)
    name = reader.string()
    reader.skip(1)
    led = 0
    for _ in range(reader.number(">i")):
        error = reader.number(">h")
        reader.skip(4)
        led += reader.number(">i") >= 0 and error == 0
        for _ in range(2):
            reader.skip(4 * reader.number(">i"))
    return name, led


def _compact(size: int) -> bytes:
    """A size in compact form: one higher, as a varint."""
    rest, groups = size + 1, bytearray()
    while rest > 0x7F:
        groups.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes((*groups, rest))


def _ask(connection: socket.socket, api_key: int, version: int, body: bytes) -> bytes:
    header = struct.pack(">hhih", api_key, version, 1, len(_CLIENT_ID)) + _CLIENT_ID
    connection.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
    (size,) = struct.unpack(">i", _receive(connection, 4))
    return _receive(connection, size)[4:]


def _receive(connection: socket.socket, size: int) -> bytes:
    chunks = bytearray()
    while len(chunks) < size:
        chunk = connection.recv(size - len(chunks))
        if not chunk:
            raise EOFError("The broker closed the connection.")
        chunks += chunk
    return bytes(chunks)


class _Reader:
    """A position in a buffer."""

    def __init__(self, buffer: bytes) -> None:
        self._buffer, self._position = buffer, 0

    def number(self, format_: str) -> int:
        (value,) = struct.unpack_from(format_, self._buffer, self._position)
        self._position += struct.calcsize(format_)
        return int(value)

    def compact(self) -> int:
        """A size as `_compact` writes it."""
        value = shift = 0
        while True:
            byte = self.number(">B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value - 1

    def string(self) -> str:
        size = max(self.number(">h"), 0)
        self._position += size
        return self._buffer[self._position - size : self._position].decode()

    def skip(self, size: int) -> None:
        self._position += size
