"""When records were sent and acknowledged, as the load generator wrote it down: pauses and latencies."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bench.generator import LoadFailed

_RECORD: Final = struct.Struct("=qdd")


class SentRecord(NamedTuple):
    """One record; times in seconds of the monotonic clock."""

    partition: int
    sent_at: float
    acked_at: float


class Pause(NamedTuple):
    """The longest times without an acknowledgement, in seconds: of the partition that had the longest, of at least half
    of the partitions, and of all partitions together."""

    of_a_partition: float
    of_half_the_partitions: float
    of_all_partitions: float
    middle: float
    """The moment in the middle of the longest."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """All records of one run. Each of them was acknowledged."""

    records: Sequence[SentRecord]

    @classmethod
    def read(cls, file: Path) -> Acknowledged:
        return cls([SentRecord(*fields) for fields in _RECORD.iter_unpack(file.read_bytes())])

    def longest_pause(self, start: float, end: float) -> Pause:
        """Of those pauses that touch the time between two moments."""
        by_partition: dict[int, list[float]] = {}
        for partition, _, acked_at in self.records:
            by_partition.setdefault(partition, []).append(acked_at)
        longest = [_longest(times, start, end) for times in by_partition.values()]
        seconds, middle = max(longest)
        together, _ = _longest([record.acked_at for record in self.records], start, end)
        return Pause(seconds, median(pause for pause, _ in longest), together, middle)

    def latencies(self, start: float, end: float) -> Mapping[str, float]:
        """p50 and p99 of the records that were sent between two moments, in milliseconds. Raises LoadFailed."""
        found = sorted(acked - sent for _, sent, acked in self.records if start <= sent < end)
        if not found:
            raise LoadFailed("No record was sent in a second that is to be measured.")
        return {name: found[int(len(found) * share)] * 1000 for name, share in (("p50", 0.5), ("p99", 0.99))}


def _longest(times: Sequence[float], start: float, end: float) -> tuple[float, float]:
    """The longest pause between two of the times, and its middle."""
    found = (0.0, start)
    for earlier, later in pairwise(sorted(times)):
        if earlier <= end and later >= start:
            found = max(found, (later - earlier, (earlier + later) / 2))
    return found
