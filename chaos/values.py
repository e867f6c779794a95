"""The values that are appended: each says who wrote it, as which of its values, and what it is a copy of."""

from __future__ import annotations

Place = tuple[str, int]
"""A topic and one of its partitions: a list that values are appended to."""


def value_of(stream: str, number: int, source: tuple[int, str] | None = None) -> str:
    """The value `number` of a stream: of one producer, whose values keep their order in a partition."""
    return f"{stream}/{number}" if source is None else f"{stream}/{number}<{source[0]}:{source[1]}"


def stream_of(value: str) -> tuple[str, int]:
    """Who wrote the value, and its number."""
    stream, _, number = value.partition("<")[0].rpartition("/")
    return stream, int(number)


def source_of(value: str) -> tuple[int, str] | None:
    """The offset and the value that it is a copy of, None if it is none."""
    _, is_copy, source = value.partition("<")
    offset, _, original = source.partition(":")
    return (int(offset), original) if is_copy else None


def list_topic(tier: str) -> str:
    return f"list-{tier}"


def copy_topic(tier: str) -> str:
    return f"copy-{tier}"


def topic_of_copies(topic: str) -> str:
    """Where the values of a list are copied to, partition by partition."""
    return copy_topic(topic.removeprefix("list-"))
