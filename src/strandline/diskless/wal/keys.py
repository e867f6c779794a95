"""The keys of WAL objects: `wal/<hour of creation>/<broker id>-<uuid>`.

The hour lets the search for orphans list only objects that are old enough; the broker id tells operators which broker
wrote an object. The content of an object is described by its footer and by the control plane, never by its key.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

from strandline.diskless.wal.hours import HOUR_MS as HOUR_MS
from strandline.diskless.wal.hours import hour_of, hour_text
from strandline.model import TimestampMs, uuid_from_text, uuid_to_text

PREFIX: Final = "wal/"


class WalKey(NamedTuple):
    """The parts of a key."""

    hour_ms: TimestampMs
    """The beginning of the hour in which the object was created, by its broker's clock."""
    broker_id: int
    unique: UUID


def make(created_ms: TimestampMs, broker_id: int, unique: UUID) -> str:
    """The key of a new object."""
    return f"{hour_prefix(created_ms)}{broker_id}-{uuid_to_text(unique)}"


def hour_prefix(timestamp_ms: TimestampMs) -> str:
    """The common prefix of the keys of all objects created in the hour of `timestamp_ms`."""
    return f"{PREFIX}{hour_text(timestamp_ms)}/"


def parse(key: str) -> WalKey | None:
    """The parts of a key; None if it is not the key of a WAL object."""
    parts = key.split("/")
    if len(parts) != 3 or f"{parts[0]}/" != PREFIX or not _is_number(parts[1], digits=10):
        return None
    broker, _, unique = parts[2].partition("-")
    if not _is_number(broker):
        return None
    try:
        return WalKey(hour_of(parts[1]), int(broker), uuid_from_text(unique))
    except ValueError:
        return None


def _is_number(text: str, *, digits: int | None = None) -> bool:
    return text.isascii() and text.isdigit() and (digits is None or len(text) == digits)
