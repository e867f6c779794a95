"""The values that are appended: each says who wrote it, as which of its values, and what it is a copy of."""

from __future__ import annotations

from hashlib import sha256
from zlib import crc32

Place = tuple[str, int]
"""A topic and one of its partitions: a list that values are appended to."""
REPLICATED = "replicated"
"""The tier whose partitions have several replicas."""
COPIERS = "copiers"
"""The group of the exactly-once copiers."""
CLASSIC_GROUP, CONSUMER_GROUP = "readers by the classic protocol", "readers by the consumer protocol"
CONSUMER_GROUPS = (COPIERS, CLASSIC_GROUP, CONSUMER_GROUP)
SHARE_GROUP = "sharers"
TORN = "torn:"
"""Before what was read and is not what was sent."""
_BODIES = (300_000, *[60_000] * 4, *[4_000] * 35, *[300] * 160, *[0] * 824)
"""Sizes of what a record carries behind its value: most are empty, and some fill batches and segments."""


def value_of(stream: str, number: int, source: tuple[int, str] | None = None) -> str:
    """The value `number` of a stream: of one producer, whose values keep their order in a partition."""
    return f"{stream}/{number}" if source is None else f"{stream}/{number}<{source[0]}:{source[1]}"


def stream_of(value: str) -> tuple[str, int]:
    """Who wrote the value, and its number. A torn one is alone in a stream of its own."""
    if value.startswith(TORN):
        return value, 0
    stream, _, number = value.partition("<")[0].rpartition("/")
    return stream, int(number)


def source_of(value: str) -> tuple[int, str] | None:
    """The offset and the value that it is a copy of, None if it is none."""
    _, is_copy, source = value.partition("<")
    offset, _, original = source.partition(":")
    return (int(offset), original) if is_copy else None


def list_topic(tier: str) -> str:
    return f"list-{tier}"


def is_list(topic: str) -> bool:
    return topic.startswith("list-")


def copy_topic(tier: str) -> str:
    return f"copy-{tier}"


def topic_of_copies(topic: str) -> str:
    """Where the values of a list are copied to, partition by partition."""
    return copy_topic(topic.removeprefix("list-"))


def payload_of(value: str) -> bytes:
    """The bytes of the record that carries a value: they follow from it, so that a reader can check each of them."""
    name = value.encode()
    size = _BODIES[crc32(name) % len(_BODIES)]
    return b"%s|%s" % (name, _body(name, size))


def value_in(payload: bytes) -> str:
    """The value that a record carries, or `TORN` and a fingerprint if it was not sent like this."""
    name, _, _ = payload.partition(b"|")
    try:
        value = name.decode()
    except UnicodeDecodeError:
        value = ""
    if value and payload_of(value) == payload:
        return value
    return f"{TORN}{value[:100]} with {len(payload)} bytes and CRC {crc32(payload):08x}"


def _body(name: bytes, size: int) -> bytes:
    pattern = sha256(name).digest()
    return (pattern * (size // len(pattern) + 1))[:size]
