"""Answers as values that are equal if the brokers behaved alike. docs/differential.md lists what is left out, and why.

What is left out is what two brokers of the same tree do not share: the ids and ports they were given, and their clocks.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final
from uuid import UUID

from differential.places import MISSING_ID, MISSING_TOPIC
from differential.sides import Side
from strandline.records import crc_matches, iter_headers
from strandline.records.batch import CONTROL_BIT, HEADER_SIZE, TIMESTAMP_TYPE_BIT, BatchHeader, TimestampType
from strandline.wire.api import ApiKey
from strandline.wire.registry import decode_response
from strandline.wire.structure import Structure

_ATTRIBUTES: Final = 22  # their low byte
_STAMPED_FIELDS: Final = ((17, 21), (27, 43))  # the checksum, the times
NOW: Final = "now"
"""Takes the place of a time of a broker's clock."""
_TIMES: Final = frozenset({"timestamp", "log_append_time_ms", "last_timestamp", "transaction_start_ms"})
_FIRST_DIGITS: Final = 12
_MOMENT: Final = re.compile(r"\d{13,}")
"""A time in a text: a sentence may say which ones would have been allowed."""

Plain = dict[str, Any] | list[Any] | str | int | bool | None
"""What JSON can say."""


class Normal:
    """Turns answers into plain values. Times from `since` on are those of a broker's clock: records get older ones."""

    def __init__(self, since_ms: int) -> None:
        self._since = since_ms

    def answer(self, side: Side, api: ApiKey, version: int, frame: bytes) -> tuple[dict[str, Any], Any]:
        """An answer to compare, and the message as it is. Raises MalformedRequest."""
        correlation_id, message = decode_response(api, version, memoryview(frame))
        plain = self._plain(side, message)
        assert isinstance(plain, dict)
        if api is ApiKey.FETCH:
            plain["responses"] = _by_partition(plain["responses"])
        return {"correlation_id": correlation_id, **plain}, message

    def _plain(self, side: Side, value: Any, name: str = "") -> Plain:
        if isinstance(value, Structure):
            return {slot: self._plain(side, getattr(value, slot), slot) for slot in value.__slots__}
        if isinstance(value, list):
            plain = [self._plain(side, one, name) for one in value]
            return sorted(plain, key=repr) if name == "active_producers" else plain
        if isinstance(value, UUID):
            return MISSING_TOPIC if value == MISSING_ID else side.topic_of(value) or str(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return self.records(bytes(value)) if name == "records" else bytes(value).hex()
        if isinstance(value, str):
            return _MOMENT.sub(NOW, value)
        return self._number(side, value, name) if isinstance(value, int) else value

    def _number(self, side: Side, value: int, name: str) -> Plain:
        if name in _TIMES and value >= self._since:
            return NOW
        if name == "throttle_time_ms":
            return "any"
        if name == "session_id" and value:
            return "a session"
        if name == "port" and value == side.port:
            return "its port"
        return value

    def records(self, data: bytes) -> Plain:
        """Each batch in a line, with a digest of all its bytes; those that a broker's clock is in without the time."""
        lines: list[Any] = []
        end = 0
        for position, header in iter_headers(data):
            end = position + header.size
            lines.append(self._batch(data, position, header))
        if end < len(data):
            lines.append(f"{len(data) - end} bytes of a batch: {_digest(_without_times(data[end:]))}")
        return lines

    def _batch(self, data: bytes, position: int, header: BatchHeader) -> str:
        body = data[position + HEADER_SIZE : position + header.size]
        fits = crc_matches(data, position, header)
        if header.is_control or header.timestamp_type is TimestampType.LOG_APPEND_TIME:
            header = header._replace(crc=0, base_timestamp=0, max_timestamp=0)
        told = f"{header.base_offset} to {header.last_offset}, epoch {header.leader_epoch}, {header.size} bytes"
        if header.producer_id >= 0:
            told += f", producer {header.producer_id}:{header.producer_epoch} from {header.base_sequence}"
        told += " marker" if header.is_control else " transactional" if header.is_transactional else ""
        return f"{told}, digest {_digest(repr(tuple(header)).encode() + body)}{'' if fits else ', WRONG CHECKSUM'}"


def _without_times(beginning: bytes) -> bytes:
    """The beginning of a batch, without what depends on a broker's clock if it has stamped the batch."""
    kept = bytearray(beginning)
    is_stamped = len(kept) <= _ATTRIBUTES or kept[_ATTRIBUTES] & (TIMESTAMP_TYPE_BIT | CONTROL_BIT)
    for start, end in _STAMPED_FIELDS if is_stamped else ():
        kept[start:end] = bytes(len(kept[start:end]))
    return bytes(kept)


def _by_partition(topics: Any) -> dict[str, Any]:
    """The answers of a Fetch, in whatever order they are: those that took longer may come last."""
    found: dict[str, Any] = {}
    for topic in topics:
        for one in topic["partitions"]:
            key = f"{topic['topic'] or topic['topic_id']}/{one.pop('partition_index')}"
            while key in found:  # it was asked for twice
                key += " again"
            found[key] = one
    return found


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_FIRST_DIGITS]
