"""What happened in a run, as values, and as lines of JSON in a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, get_args

NO_RETURN = "no return"
"""The error of a client that was killed since one of its calls did not return."""
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
"""Levels of isolation, by the names that clients know."""


class Promise(StrEnum):
    """What a producer is promised, beside that what was acknowledged stays."""

    TRANSACTIONAL = "transactional"
    """All or nothing, once, in order."""
    IDEMPOTENT = "idempotent"
    """Once, in order, as long as no record waits for longer than the client's delivery timeout."""
    PLAIN = "plain"
    """With acks=all: at least once, in any order."""


class Outcome(StrEnum):
    """How a write ended, as its producer knows."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    """Nobody ever asked to commit it, or it was aborted after a commit was refused."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The first line: how to repeat the run."""

    seed: int
    seconds: float
    tiers: list[str]
    brokers: int = 2
    replicas: int = 1
    """Of each partition of the replicated tier and of internal topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """A value given to a producer; `offset` is where the broker said that it is, if it said so."""

    topic: str
    partition: int
    value: str
    offset: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A value that a read_committed consumer got inside of a transaction."""

    topic: str
    partition: int
    offset: int
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What a client is about to write, before the first call that may write it: a transaction, or single records.

    An Attempt with the same values says what became of it, unless the client was killed meanwhile.
    """

    at: float
    client: str
    """The client whose process was about to do it: its end is that of `client`, too."""
    writer: str
    promise: Promise
    appends: list[Append]
    reads: list[Read] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A transaction, or one record of a producer without transactions. Those of one writer follow one another."""

    at: float
    writer: str
    promise: Promise
    outcome: Outcome
    appends: list[Append]
    reads: list[Read] = field(default_factory=list)
    commit_at: float | None = None
    """When the commit of a transaction was asked for, if it was."""
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Records that a read_committed consumer got, in this order. `start` is where its session was told to begin."""

    at: float
    reader: str
    session: int
    start: int
    topic: str
    partition: int
    records: list[tuple[int, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch of an idempotent or transactional producer, as it is in the log."""

    offset: int
    count: int
    producer_id: int
    epoch: int
    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A whole partition, read after the last fault. Offsets of control records and batches are known if it is raw."""

    source: str
    isolation: str
    topic: str
    partition: int
    start: int
    end: int
    records: list[tuple[int, str]]
    markers: list[int] | None = None
    batches: list[Batch] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """First offset and end of a partition, as an observer was told. With read_committed the end of what is stable."""

    at: float
    observer: str
    isolation: str
    topic: str
    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffset:
    """Up to where the copiers have copied a partition, as their group said then; the last one is of the end."""

    at: float
    group: str
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Records that a member of a group got, before it committed or acknowledged them. In the order of their offsets."""

    at: float
    group: str
    member: str
    topic: str
    partition: int
    records: list[tuple[int, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBatch:
    """A batch in the files of a replica: its first offset, the one after its last, and a digest of its bytes."""

    offset: int
    next_offset: int
    digest: str
    is_whole: bool = True
    """Whether its checksum is that of its bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """The log of one replica, from the files of a broker that was stopped at the end."""

    broker: int
    topic: str
    partition: int
    assigned: list[int]
    """The brokers that are to have the partition."""
    start: int
    high_watermark: int
    batches: list[StoredBatch]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calm:
    """A time in which no fault was at work, and clients went on until all that was awaited had come, or for too long.

    What is awaited is an acknowledged value in a partition, by `Place`, or progress of a group, by its name.
    """

    at: float
    until: float
    places: list[tuple[str, int]]
    groups: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What was done to a process, a link or a disk, and for how long."""

    at: float
    kind: str
    target: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """The last fault is over, and what was ended runs again."""

    at: float
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A client that could not go on and was replaced."""

    at: float
    writer: str
    operation: str
    error: str
    text: str
    is_fatal: bool
    after: str = "none"
    """The last fault before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Something that must not be and is no matter of records: a broker that ended, a transaction that never ends."""

    at: float
    what: str
    text: str


Event = (
    Run
    | Begun
    | Attempt
    | Seen
    | Delivery
    | Content
    | Bounds
    | GroupOffset
    | Replica
    | Calm
    | Fault
    | Undone
    | Ended
    | Trouble
)

_EVENTS: Final[Mapping[str, type[Event]]] = {kind.__name__.lower(): kind for kind in get_args(Event)}


def to_line(event: Event) -> str:
    """One line of JSON, without its end."""
    return json.dumps({"event": type(event).__name__.lower(), **asdict(event)}, separators=(",", ":"))


def from_line(line: str) -> Event:
    """The event of a line. Raises ValueError."""
    fields: dict[str, Any] = json.loads(line)
    kind = _EVENTS.get(fields.pop("event", ""))
    if kind is None:
        raise ValueError(f"No event is like this: {line[:200]}")
    if kind in (Attempt, Begun):
        fields["promise"] = Promise(fields["promise"])
        if kind is Attempt:
            fields["outcome"] = Outcome(fields["outcome"])
        fields["appends"] = [Append(**one) for one in fields["appends"]]
        fields["reads"] = [Read(**one) for one in fields["reads"]]
    elif "records" in fields:
        fields["records"] = [(offset, value) for offset, value in fields["records"]]
        if kind is Content:
            fields["batches"] = [Batch(**one) for one in fields.get("batches", [])]
    elif kind is Replica:
        fields["batches"] = [StoredBatch(**one) for one in fields["batches"]]
    elif kind is Calm:
        fields["places"] = [(topic, partition) for topic, partition in fields["places"]]
    return kind(**fields)


def read_history(path: Path) -> Iterator[Event]:
    """The events of a file, in the order in which they were written. Raises OSError and ValueError."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield from_line(line)
            except (ValueError, TypeError, KeyError) as error:
                raise ValueError(f"{path}:{number} is not a line of a history: {error}") from error
