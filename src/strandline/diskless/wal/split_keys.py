"""The keys of split files: `split/<hour of creation>/<run>-<topic id>-<partition>-<base offset>-<uuid>`.

The hour lets the search for orphans list only objects that are old enough. The run, which follows from its claimant,
lets brokers find what a run of the pipeline wrote and did not record. Every attempt to split has a uuid of its own:
attempts never overwrite each other. Files of earlier versions have no run.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final, NamedTuple
from uuid import UUID

from strandline.diskless.wal.hours import hour_of, hour_text
from strandline.model import Offset, TimestampMs, uuid_from_text, uuid_to_text

PREFIX: Final = "split/"

_RUN_DIGITS: Final = 16
_KEY: Final = re.compile(
    rf"{PREFIX}([0-9]{{10}})/(?:[0-9a-f]{{{_RUN_DIGITS}}}-)?([\w-]{{22}})-([0-9]+)-([0-9]{{20}})-([\w-]{{22}})",
    re.ASCII,
)


class SplitKey(NamedTuple):
    """The parts of a key."""

    hour_ms: TimestampMs
    """The beginning of the hour in which the object was created, by the clock of the task that wrote it."""
    topic_id: UUID
    partition: int
    base_offset: Offset
    unique: UUID


def make(
    created_ms: TimestampMs, claimant: str, topic_id: UUID, partition: int, base_offset: Offset, unique: UUID
) -> str:
    """The key of a new object."""
    name = f"{uuid_to_text(topic_id)}-{partition}-{base_offset:020d}-{uuid_to_text(unique)}"
    return f"{run_prefix(created_ms, claimant)}{name}"


def hour_prefix(timestamp_ms: TimestampMs) -> str:
    """The common prefix of the keys of all objects created in the hour of `timestamp_ms`."""
    return f"{PREFIX}{hour_text(timestamp_ms)}/"


def run_prefix(timestamp_ms: TimestampMs, claimant: str) -> str:
    """The common prefix of the keys of all objects that one claimant created in the hour of `timestamp_ms`."""
    # Claimants are any text: their names would not do as a part of a key.
    run = sha256(claimant.encode()).hexdigest()[:_RUN_DIGITS]
    return f"{hour_prefix(timestamp_ms)}{run}-"


def parse(key: str) -> SplitKey | None:
    """The parts of a key; None if it is not the key of a split file."""
    match = _KEY.fullmatch(key)
    if match is None:
        return None
    hour, topic, partition, offset, unique = match.groups()
    try:
        return SplitKey(hour_of(hour), uuid_from_text(topic), int(partition), int(offset), uuid_from_text(unique))
    except ValueError:
        return None
