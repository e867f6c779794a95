"""Plans of brokers cut into parts, and parts into tasks of about the same size. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from strandline.conversion_api.values import PlacedRow, ReadPlan, SegmentDescription
from strandline.model import Offset, TimestampMs, TopicIdPartition
from strandline.pipeline.source.decoding import Wanted
from strandline.records import TimestampType

# The size of records that only a broker has is not known: this is a guess.
_RECORD_BYTES: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPart:
    """Records that the broker has to be asked for."""

    start: Offset
    end: Offset
    """Exclusive, as of every part."""

    @property
    def size(self) -> int:
        """Bytes, about."""
        return (self.end - self.start) * _RECORD_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentPart:
    """Records of a remote segment."""

    start: Offset
    end: Offset
    segment: SegmentDescription

    @property
    def size(self) -> int:
        """Bytes, about: as if all records of the segment were alike."""
        segment = self.segment
        offsets = segment.end_offset - segment.start_offset + 1
        return segment.segment_size_in_bytes * (self.end - self.start) // offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPart:
    """Records of a row of the control plane, in a WAL object."""

    start: Offset
    end: Offset
    placed: PlacedRow

    @property
    def size(self) -> int:
        """Bytes that have to be read for it."""
        return self.placed.row.byte_size


Part = BrokerPart | SegmentPart | RowPart


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTask:
    """What one task of Spark reads: parts of one partition that follow each other."""

    partition: TopicIdPartition
    wanted: Wanted
    parts: tuple[Part, ...]


def parts_of(plan: ReadPlan, start: Offset, end: Offset) -> list[Part]:
    """The parts of a plan between two offsets, in their order. Together they leave no offset of the plan out."""
    found: list[Part] = []
    at = max(start, plan.log_start_offset)
    extents: list[tuple[Offset, Offset, SegmentDescription | PlacedRow | None]] = [
        *((segment.start_offset, segment.end_offset + 1, segment) for segment in plan.segments),
        *((first, last + 1, None) for first, last in plan.local_ranges),
        *((placed.row.base_offset, placed.row.last_offset + 1, placed) for placed in plan.rows),
    ]
    for first, behind, what in sorted(extents, key=lambda extent: extent[0]):
        begin, stop = max(first, at), min(behind, end)
        if begin >= stop:
            continue
        match what:
            case SegmentDescription():
                found.append(SegmentPart(start=begin, end=stop, segment=what))
            case PlacedRow():
                found.append(RowPart(start=begin, end=stop, placed=what))
            case None:
                found.append(BrokerPart(start=begin, end=stop))
        at = stop
    return found


def in_time(parts: Iterable[Part], earliest: TimestampMs, latest: TimestampMs) -> Iterator[Part]:
    """Without those that surely have no record between these times."""
    for part in parts:
        match part:
            case SegmentPart() if part.segment.max_timestamp_ms < earliest:
                continue
            case RowPart():
                row = part.placed.row
                is_stamped = row.timestamp_type == TimestampType.LOG_APPEND_TIME
                newest = row.log_append_time_ms if is_stamped else row.max_timestamp
                if newest < earliest or (is_stamped and newest > latest):
                    continue
        yield part


def divided(parts: Iterable[Part], *, max_bytes: int, max_records: int | None = None) -> Iterator[tuple[Part, ...]]:
    """Groups of parts with at most so many bytes, about, and records. Larger parts are cut."""
    group: list[Part] = []
    size = records = 0
    for part in _cut(parts, max_bytes, max_records):
        count = part.end - part.start
        is_full = size + part.size > max_bytes or (max_records is not None and records + count > max_records)
        if group and is_full:
            yield tuple(group)
            group, size, records = [], 0, 0
        group.append(part)
        size, records = size + part.size, records + count
    if group:
        yield tuple(group)


def _cut(parts: Iterable[Part], max_bytes: int, max_records: int | None) -> Iterator[Part]:
    for part in parts:
        count = part.end - part.start
        pieces = 1 if isinstance(part, RowPart) else -(-part.size // max_bytes)
        if max_records is not None:
            pieces = max(pieces, -(-count // max_records))
        pieces = max(1, min(pieces, count))
        bounds = [part.start + count * number // pieces for number in range(pieces + 1)]
        for start, end in pairwise(bounds):
            yield replace(part, start=start, end=end)


def total_size(parts: Sequence[Part]) -> int:
    """Bytes of all parts, about."""
    return sum(part.size for part in parts)
