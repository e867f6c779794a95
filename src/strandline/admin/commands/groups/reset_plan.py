"""Decides which offset each partition of a group gets, as Kafka's tool does: what is beyond the log is cut to it."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final

from strandline.client import CommandFailed, Pair

_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)
_NUMBER: Final = re.compile(r"[0-9]{1,19}")
_PLAIN_ROW: Final = 3
_ROW_WITH_GROUP: Final = 4


class Destination(Enum):
    """Where a reset goes."""

    EARLIEST = "earliest"
    LATEST = "latest"
    CURRENT = "current"
    OFFSET = "offset"
    SHIFT = "shift"
    TIME = "time"
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetTarget:
    """What was asked for: `number` is the offset, the shift, or the time in ms; `rows` are those of a file."""

    destination: Destination
    number: int = 0
    rows: Mapping[Pair, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionBounds:
    """What a plan has to know of a partition.

    `current` is the offset that the group has, `at_time` that of the first record at or after the time asked for; None
    if there is no such offset.
    """

    start: int
    end: int
    current: int | None
    at_time: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedOffset:
    """One row of a plan; `note` says why the new offset is not the one that was asked for."""

    topic: str
    partition: int
    current: int | None
    new: int
    note: str | None


def plan_reset(target: ResetTarget, partitions: Mapping[Pair, PartitionBounds]) -> list[PlannedOffset]:
    """The new offset of each partition. Raises CommandFailed."""
    plan = []
    for (topic, partition), bounds in sorted(partitions.items()):
        new, note = _new_offset(target, (topic, partition), bounds)
        plan.append(PlannedOffset(topic=topic, partition=partition, current=bounds.current, new=new, note=note))
    return plan


def _new_offset(target: ResetTarget, pair: Pair, bounds: PartitionBounds) -> tuple[int, str | None]:
    match target.destination:
        case Destination.EARLIEST:
            return bounds.start, None
        case Destination.LATEST:
            return bounds.end, None
        case Destination.CURRENT:
            return (bounds.end, "has no offset yet: latest") if bounds.current is None else (bounds.current, None)
        case Destination.TIME:
            return (bounds.end, "no record since then: latest") if bounds.at_time is None else (bounds.at_time, None)
        case Destination.OFFSET:
            return _cut(target.number, bounds)
        case Destination.SHIFT:
            return _shifted(target.number, pair, bounds)
        case Destination.FILE:
            return _cut((target.rows or {})[pair], bounds)


def _shifted(shift: int, pair: Pair, bounds: PartitionBounds) -> tuple[int, str | None]:
    if bounds.current is None:
        raise CommandFailed(
            f"The group has no offset of {pair[0]}-{pair[1]} that could be shifted. Leave the partition out, or reset "
            "it with --to-earliest, --to-latest or --to-offset."
        )
    return _cut(bounds.current + shift, bounds)


def _cut(wanted: int, bounds: PartitionBounds) -> tuple[int, str | None]:
    if wanted < bounds.start:
        return bounds.start, f"{wanted} is below the log: earliest"
    if wanted > bounds.end:
        return bounds.end, f"{wanted} is above the log: latest"
    return wanted, None


def parse_moment(text: str) -> int:
    """An ISO 8601 date and time in milliseconds; UTC unless it names a zone. Raises CommandFailed."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise CommandFailed(f"--to-datetime must be like 2026-03-01T12:30:00, but is {text!r}.") from error
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (moment - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)


def parse_duration(text: str) -> int:
    """An ISO 8601 duration of days, hours, minutes and seconds, in milliseconds. Raises CommandFailed."""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        raise CommandFailed(f"--by-duration must be like P7D, PT12H or P1DT2H30M, but is {text!r}.")
    parts = {name: float(value) for name, value in match.groupdict(default="0").items()}
    try:
        return timedelta(**parts) // timedelta(milliseconds=1)
    except OverflowError as error:
        raise CommandFailed(f"--by-duration is {text!r}, which is longer than any log.") from error


def parse_rows(lines: Iterable[str], group: str, *, name: str) -> dict[Pair, int]:
    """Rows `topic,partition,offset` of a file, or with the group in front, as `--export` and Kafka's tool write them.

    Raises CommandFailed.
    """
    rows: dict[Pair, int] = {}
    for number, row in enumerate(csv.reader(lines), start=1):
        if not row:
            continue
        cells = [cell.strip() for cell in row]
        if len(cells) == _ROW_WITH_GROUP:
            if cells[0] != group:
                raise CommandFailed(f"{name}, line {number}: the row is of group {cells[0]}, not of {group}.")
            cells = cells[1:]
        if len(cells) != _PLAIN_ROW or not (_NUMBER.fullmatch(cells[1]) and _NUMBER.fullmatch(cells[2])):
            raise CommandFailed(f"{name}, line {number}: a row must be topic,partition,offset, but is {','.join(row)}.")
        pair = (cells[0], int(cells[1]))
        if pair in rows:
            raise CommandFailed(f"{name}, line {number}: partition {pair[1]} of topic {pair[0]} is named twice.")
        rows[pair] = int(cells[2])
    if not rows:
        raise CommandFailed(f"{name} has no rows topic,partition,offset.")
    return rows
