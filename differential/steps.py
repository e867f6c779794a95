"""One step of the comparison: a request as both brokers get it, or something that is done to both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from differential.places import MISSING_ID, Place
from differential.sides import Side, Wire
from strandline.records import iter_headers
from strandline.wire.api import ApiKey
from strandline.wire.structure import Structure

_ZERO_ID: Final = UUID(int=0)


@dataclass(slots=True, kw_only=True)
class Session:
    """A Fetch session that both brokers have, as its client knows it."""

    number: int
    epoch: int = 0
    version: int = 16
    entries: dict[Place, Any] = field(default_factory=dict)
    """What was asked for each partition."""


@dataclass(slots=True, kw_only=True)
class Step:
    """A request. Topic ids, and the id of a session, are filled in for each broker."""

    api: ApiKey
    version: int
    message: Any
    places: tuple[Place, ...] = ()
    changes: tuple[Place, ...] = ()
    """Partitions whose state it may change."""
    wire: str = "main"
    """The name of the connection."""
    session: Session | None = None
    is_answered: bool = True
    cut: int = 0
    """So many bytes of the request are missing at its end."""
    retried: frozenset[int] = frozenset()
    """Errors upon which it is sent again: they say that something else has not ended yet."""
    note: str = ""

    @property
    def is_read(self) -> bool:
        """Whether it may be repeated to see if a difference stays."""
        return not self.changes and self.session is None and self.api not in _CHANGING

    def frame(self, side: Side, wire: Wire) -> bytes:
        """As one of the brokers gets it."""
        for one in structures(self.message):
            if "topic_id" in one.__slots__:
                untyped: Any = one
                name = str(getattr(one, "topic", "") or getattr(one, "name", ""))
                untyped.topic_id = side.topic_ids.get(name, MISSING_ID if name else _ZERO_ID)
        if self.session is not None:
            self.message.session_id = side.sessions.get(self.session.number, 0)
        frame = wire.encode(self.api, self.version, self.message)
        return frame[: len(frame) - self.cut] if self.cut else frame

    def __str__(self) -> str:
        parts = [f"{self.api.name} v{self.version} {described(self.message)}"]
        if self.session is not None:
            parts.append(f"in session {self.session.number}")
        if self.wire != "main":
            parts.append(f"on a connection of its own ({self.wire})")
        if self.cut:
            parts.append(f"without its last {self.cut} bytes")
        if self.note:
            parts.append(f"[{self.note}]")
        return " ".join(parts)


_CHANGING: Final = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.DELETE_RECORDS,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.WRITE_TXN_MARKERS,
    }
)


def structures(value: Any) -> Iterator[Structure]:
    """A message and everything in it."""
    if isinstance(value, Structure):
        yield value
        for name in value.__slots__:
            yield from structures(getattr(value, name))
    elif isinstance(value, list):
        for one in value:
            yield from structures(one)


def described(value: Any) -> str:
    """A request for a reader: fields that have their default are left out, and records are told by their headers."""
    if isinstance(value, Structure):
        default = type(value)()
        fields = [
            f"{name}={described(getattr(value, name))}"
            for name in value.__slots__
            if name not in ("topic_id", "session_id") and getattr(value, name) != getattr(default, name)
        ]
        return f"({', '.join(fields)})"
    if isinstance(value, list):
        return f"[{', '.join(described(one) for one in value)}]"
    if isinstance(value, bytes | bytearray | memoryview):
        return described_records(bytes(value))
    return repr(value) if isinstance(value, str) else str(value)


def described_records(data: bytes) -> str:
    """The batches of a request."""
    try:
        found = [
            f"{header.record_count} records"
            + (f" of producer {header.producer_id}:{header.producer_epoch}" if header.producer_id >= 0 else "")
            + (f" from sequence {header.base_sequence}" if header.base_sequence >= 0 else "")
            + (" transactional" if header.is_transactional else "")
            for _, header in iter_headers(data)
        ]
    except Exception:  # noqa: BLE001  # it is damaged on purpose
        found = ["not a batch"]
    return f"<{len(data)} bytes: {'; '.join(found)}>"
