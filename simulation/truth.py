"""What must be true of a partition whatever happens, as long as fewer disks are lost than min.insync.replicas.

A record below the high watermark of any leader is committed. From then on it has its place for ever: every leader that
is elected cleanly has it, and nobody shows other records there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from strandline.log import UnifiedLog
from strandline.model import Offset
from strandline.reads import FetchIsolation
from strandline.records import iter_headers


class Violation(AssertionError):
    """Something that must never happen."""


class Batch(NamedTuple):
    """A batch as it lies in a file."""

    first: Offset
    last: Offset
    epoch: int
    data: bytes


def batches(log: UnifiedLog, start: Offset, end: Offset) -> Iterator[Batch]:
    """The batches of a log that hold the offsets from `start` up to `end`."""
    at = max(start, log.local_log_start_offset)
    while at < end:
        found = log.read(at, 1 << 26, isolation=FetchIsolation.LOG_END)
        if found.records is None:
            return
        data = found.records.read()
        for position, header in iter_headers(data):
            if header.base_offset >= end:
                return
            yield Batch(
                header.base_offset,
                header.last_offset,
                header.leader_epoch,
                data[position : position + header.size],
            )
            at = header.last_offset + 1


@dataclass(slots=True)
class Truth:
    """What is committed."""

    name: str
    end: Offset = 0
    known: dict[Offset, Batch] = field(default_factory=dict)
    """By first offset."""
    acknowledged: dict[Offset, bytes] = field(default_factory=dict)
    """What producers with acks=all were told: first offset -> value."""

    def commit(self, who: str, log: UnifiedLog, high_watermark: Offset) -> None:
        """A leader says that everything below is replicated."""
        if high_watermark <= self.end:
            return
        if log.log_end_offset < high_watermark:
            raise Violation(f"{self.name}: the high watermark of {who} is beyond the end of {log}")
        for batch in batches(log, self.end, high_watermark):
            if batch.first >= self.end:
                self.known[batch.first] = batch
        self.end = high_watermark

    def check(self, who: str, log: UnifiedLog, *, up_to: Offset | None = None) -> None:
        """This log has what is committed (below `up_to`), and is well formed."""
        end = self.end if up_to is None else min(up_to, self.end)
        if log.log_end_offset < end:
            raise Violation(f"{self.name}: the log of {who} ends at {log.log_end_offset}, and {end} is committed")
        expected, epoch = log.local_log_start_offset, -1
        for batch in batches(log, log.local_log_start_offset, log.log_end_offset):
            if batch.epoch < epoch:
                raise Violation(f"{self.name}: epochs go back at {batch.first} in the log of {who}")
            if batch.first != expected and not (batch.first < expected <= batch.last):
                raise Violation(f"{self.name}: the log of {who} has a gap at {expected}")
            epoch, expected = batch.epoch, batch.last + 1
            known = self.known.get(batch.first) if batch.first < end else None
            if batch.first < end and known is None and batch.last >= log.log_start_offset:
                raise Violation(f"{self.name}: {who} has a batch at {batch.first}, where another one is committed")
            if known is not None and known.data != batch.data:
                raise Violation(f"{self.name}: {who} has other bytes at {batch.first} than what is committed")

    def start_again(self, log: UnifiedLog | None) -> None:
        """A leader was elected that may lack records: what it does not have is lost. None: it has no log at all."""
        self.acknowledged.clear()
        end = 0
        for batch in () if log is None else batches(log, 0, min(log.log_end_offset, self.end)):
            if self.known.get(batch.first) != batch:
                break
            end = batch.last + 1
        self.known = {first: batch for first, batch in self.known.items() if first < end}
        self.end = min(self.end, end)

    def acknowledge(self, offset: Offset, value: bytes) -> None:
        """A producer with acks=all was told that its record has this offset."""
        if offset >= self.end:
            raise Violation(f"{self.name}: {value!r} is acknowledged at {offset}, and {self.end} is committed")
        known = self.known.get(offset)
        if known is None or value not in known.data:
            raise Violation(f"{self.name}: {value!r} is acknowledged at {offset}, where other records are")
        self.acknowledged[offset] = value
