"""Where a query begins and ends: by name, by offset or by time. What the options say, and what it means in offsets."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from strandline.model import INT64_MAX, Offset, TimestampMs, TopicPartition
from strandline.pipeline.source.errors import SourceFailed

EARLIEST: Final = -2
LATEST: Final = -1

Side = Literal["starting", "ending"]
Moments = Mapping[TopicPartition, TimestampMs]
FindOffsets = Callable[[Moments], Mapping[TopicPartition, Offset]]
"""Offsets by time, or by EARLIEST or LATEST in its place; -1 if no record is that new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """One side of a range of offsets, for every partition."""

    default: int
    """EARLIEST or LATEST."""
    offsets: Mapping[TopicPartition, Offset] | None = None
    """Offsets, EARLIEST or LATEST; None: the default for all."""
    timestamps: Mapping[TopicPartition, TimestampMs] = field(default_factory=dict)
    timestamp: TimestampMs | None = None
    """For all partitions."""
    is_latest_without_match: bool = True
    """What a time means that no record has reached: the end; if not, an error."""


def parse_positions(options: Mapping[str, str], side: Side, *, default: Literal["earliest", "latest"]) -> Positions:
    """What the options say of one side. A time counts more than offsets, as in Spark. Raises SourceFailed."""
    fallback = EARLIEST if default == "earliest" else LATEST
    strategy = options.get("startingOffsetsByTimestampStrategy", "error").lower()
    if strategy not in ("error", "latest"):
        raise SourceFailed(
            f"The option startingOffsetsByTimestampStrategy has to be error or latest, and is {strategy}."
        )
    is_lenient = side == "ending" or strategy == "latest"
    if (text := options.get(f"{side}Timestamp")) is not None:
        return Positions(
            default=fallback, timestamp=_time(text, f"{side}Timestamp"), is_latest_without_match=is_lenient
        )
    if (text := options.get(f"{side}OffsetsByTimestamp")) is not None:
        times = _by_partition(text, f"{side}OffsetsByTimestamp", "1700000000000")
        for time in times.values():
            _time(str(time), f"{side}OffsetsByTimestamp")
        return Positions(default=fallback, timestamps=times, is_latest_without_match=is_lenient)
    name = f"{side}Offsets"
    match options.get(name, default).strip().lower():
        case "earliest" if side == "starting":
            return Positions(default=EARLIEST)
        case "latest":
            return Positions(default=LATEST)
        case "earliest":
            raise SourceFailed("The option endingOffsets cannot be earliest: nothing is before that.")
    offsets = _by_partition(options[name], name, "23")
    if any(offset < (EARLIEST if side == "starting" else LATEST) for offset in offsets.values()):
        raise SourceFailed(f"{name} has to have offsets, -1 for latest{', -2 for earliest' * (side == 'starting')}.")
    return Positions(default=fallback, offsets=offsets)


def resolve(
    positions: Positions, partitions: Collection[TopicPartition], find: FindOffsets
) -> dict[TopicPartition, Offset]:
    """The offset of each partition. Raises SourceFailed if one is not named, or its time has not come."""
    wanted: dict[TopicPartition, TimestampMs] = {}
    found: dict[TopicPartition, Offset] = {}
    for partition in partitions:
        moment = _moment(positions, partition)
        if positions.offsets is not None and moment >= 0:
            found[partition] = moment
        else:
            wanted[partition] = moment
    answers = find(wanted) if wanted else {}
    missing = [partition for partition, offset in answers.items() if offset < 0]
    if missing and not positions.is_latest_without_match:
        raise SourceFailed(
            f"No record of {missing[0]} is as new as {wanted[missing[0]]}. With "
            "startingOffsetsByTimestampStrategy=latest the query begins at the end then."
        )
    latest = find(dict.fromkeys(missing, LATEST)) if missing else {}
    return {**found, **answers, **latest}


def _moment(positions: Positions, partition: TopicPartition) -> int:
    if positions.timestamp is not None:
        return positions.timestamp
    given = positions.offsets if positions.offsets is not None else positions.timestamps
    if partition in given:
        return given[partition]
    if given:
        raise SourceFailed(
            f"{partition} is not among the partitions for which offsets or timestamps are given: name all of them, "
            "and use assign to read only some."
        )
    return positions.default


def _by_partition(text: str, name: str, example: str) -> dict[TopicPartition, int]:
    try:
        document: Any = json.loads(text)
        found = {
            TopicPartition(str(topic), int(partition)): _whole(value)
            for topic, partitions in document.items()
            for partition, value in partitions.items()
        }
    except (ValueError, TypeError, AttributeError) as error:
        raise SourceFailed(
            f'{name} has to be earliest, latest or JSON like {{"orders": {{"0": {example}}}}}, and is {text}.'
        ) from error
    if not found:
        raise SourceFailed(f"{name} names no partition.")
    for partition, value in found.items():
        if value > INT64_MAX:
            raise SourceFailed(f"{name} of {partition} is {value}: no number in Kafka is above {INT64_MAX}.")
    return found


def _whole(value: Any) -> int:
    """A number of JSON; raises ValueError for what would be rounded, or is no number at all."""
    if type(value) is not int:
        raise ValueError(value)
    return value


def _time(text: str, name: str) -> TimestampMs:
    try:
        time = int(text)
    except ValueError:
        time = -1
    if not 0 <= time <= INT64_MAX:
        raise SourceFailed(f"{name} has to be a time in milliseconds since 1970, and is {text}.")
    return time
