"""What a run tells the person or the program that has started it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from strandline.conversion_api.values import BegunSegment, ClaimedFile

_NAMED: Final = 3
"""Partitions that a description names."""


class Reporter(Protocol):
    """Takes events as they happen, from several threads."""

    def say(self, event: str, sentence: str, /, **figures: object) -> None:
        """Something has happened: a word for programs, a sentence for people, and the figures in it."""

    def job_runs(self, job: str, description: str, *, done: int, total: int) -> None:
        """So many tasks of a job of Spark are done. Called now and then; never if `wants_progress` is false."""

    def job_ended(self, job: str) -> None:
        """A job is over, whatever its end."""

    @property
    def wants_progress(self) -> bool:
        """Whether progress is shown."""


@dataclass(slots=True)
class Tally:
    """What a run has done so far."""

    files: int = 0
    """WAL objects of which something was split."""
    splits: int = 0
    batches: int = 0
    """In those splits."""
    bytes_split: int = 0
    segments: int = 0
    bytes_merged: int = 0
    refused: int = 0
    """Split files that came too late: another run had split the same rows, or the records were deleted."""
    failures: int = 0
    alerts: int = 0
    seconds: float = 0.0

    def sentence(self) -> str:
        """The last line of a run."""
        return (
            f"Split {numbered(self.files, 'WAL object')} into {numbered(self.splits, 'split file')} with "
            f"{numbered(self.batches, 'batch', 'batches')}, {size_text(self.bytes_split)}; merged "
            f"{numbered(self.segments, 'segment')}, {size_text(self.bytes_merged)}; {self.seconds:.1f} s."
        )


def split_description(files: Sequence[ClaimedFile]) -> str:
    """The name of a split job in Spark's UI."""
    return f"split {numbered(len(files), 'WAL object')}, {size_text(sum(map(wanted_bytes, files)))}"


def merge_description(chains: Sequence[Sequence[BegunSegment]]) -> str:
    """The name of a merge job in Spark's UI."""
    named = [
        f"{chain[0].partition.topic_partition} offsets {chain[0].segment.start_offset:,} to "
        f"{chain[-1].segment.end_offset:,}"
        for chain in chains[:_NAMED]
    ]
    if len(chains) > _NAMED:
        named.append(f"and {len(chains) - _NAMED} more")
    size = sum(segment.segment.segment_size_in_bytes for chain in chains for segment in chain)
    return f"merge {numbered(len(chains), 'partition')}, {size_text(size)}: {', '.join(named)}"


def wanted_bytes(file: ClaimedFile) -> int:
    """How much of a WAL object is to be split."""
    return sum(row.byte_size for split in file.splits for row in split.rows)


def numbered(count: int, one: str, many: str = "") -> str:
    """1 file, 2 files, 1,234 files."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def size_text(count: int) -> str:
    """Bytes in the largest unit of which there is one."""
    for unit, length in (("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1000)):
        if count >= length:
            return f"{count / length:,.1f} {unit}" if count < 10 * length else f"{count / length:,.0f} {unit}"
    return f"{count} B"


def rate_text(count: int, seconds: float) -> str:
    """Bytes per second."""
    return f"{size_text(round(count / max(seconds, 0.001)))}/s"


def listed(names: Iterable[str]) -> str:
    """A few names, and how many more there are."""
    found = list(names)
    return ", ".join(found[:_NAMED]) + (f" and {len(found) - _NAMED} more" if len(found) > _NAMED else "")
