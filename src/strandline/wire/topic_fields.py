"""Fields that the hand-written codecs of Produce and Fetch share: counts, and topics by name or by id."""

from __future__ import annotations

from strandline.wire.primitives import (
    write_array_length,
    write_compact_array_length,
    write_compact_string,
    write_string,
)


def write_count(out: bytearray, count: int, *, flexible: bool) -> None:
    """The length of an array or of records, in the form of the version."""
    if flexible:
        write_compact_array_length(out, count)
    else:
        write_array_length(out, count)


def write_topic(out: bytearray, topic: str | bytes, *, flexible: bool) -> None:
    """A topic's name, or the 16 bytes of its id."""
    if isinstance(topic, bytes):
        out += topic
    elif flexible:
        write_compact_string(out, topic)
    else:
        write_string(out, topic)
