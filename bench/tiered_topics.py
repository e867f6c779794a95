"""Topics that move to remote storage: fill them, switch tiering on, wait for the copies, drop them from the page cache.

Works on any broker with Kafka's files: local segments are found on its disk, remote ones with ListOffsets.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from bench.generator import LoadFailed
from bench.probe import latest_tiered_offsets
from bench.systems import Broker, remote_dir
from bench.topics import Topics

SEGMENT_BYTES: Final = 16 * 1024 * 1024
SEGMENTS: Final = {"segment.bytes": str(SEGMENT_BYTES)}
TIERED: Final = {"remote.storage.enable": "true", "local.retention.bytes": "1"}

_PATIENCE_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.02


@dataclass(frozen=True, slots=True)
class TopicFiles:
    """One topic of a running broker, seen from its disk and from its remote storage."""

    broker: Broker
    topic: str
    partitions: int

    def local_bytes(self) -> int:
        """The size of all segments on the disk."""
        return sum(path.stat().st_size for logs in self._logs() for path in logs)

    def closed_bytes(self) -> int:
        """The size of all segments on the disk that are not written to any more."""
        return sum(path.stat().st_size for logs in self._logs() for path in logs[:-1])

    def latest_tiered(self) -> list[int]:
        """The last offset in remote storage of each partition, -1 where nothing is."""
        host, _, port = self.broker.bootstrap.rpartition(":")
        return latest_tiered_offsets(host, int(port), self.topic, self.partitions)

    def is_copied(self, active: Sequence[int]) -> bool:
        """Whether everything before the active segments, which begin at these offsets, is in remote storage."""
        return self.latest_tiered() == [base - 1 for base in active]

    def active_bases(self) -> list[int]:
        """The first offset of the active segment of each partition."""
        return [int(logs[-1].stem) for logs in self._logs()]

    def is_only_remote(self) -> bool:
        """Whether nothing but the active segment of each partition is left on the disk."""
        return all(len(logs) == 1 for logs in self._logs())

    def forget_pages(self) -> None:
        """Drop the records of this topic, local and remote, from the page cache: the next reader needs the disk."""
        for path in (*(path for logs in self._logs() for path in logs), *self._remote_logs()):
            with path.open("rb") as file:
                os.fsync(file.fileno())  # pages that are not written back yet would stay
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def _logs(self) -> Iterator[Sequence[Path]]:
        """The segments on the disk of each partition, oldest first."""
        for partition in range(self.partitions):
            logs = sorted(self.broker.data_dir.rglob(f"{self.topic}-{partition}/*.log"))
            if not logs:
                raise LoadFailed(f"There is no segment of {self.topic}-{partition} below {self.broker.data_dir}.")
            yield logs

    def _remote_logs(self) -> Iterator[Path]:
        return remote_dir(self.broker.data_dir).rglob(f"{self.topic}-*/*.log")


def copy_all(topics: Sequence[TopicFiles], *, every: float = _POLL_SECONDS) -> float:
    """Switch tiering on and wait until every closed segment is in remote storage. Seconds it took.

    Nobody writes to the topics meanwhile. Whoever measures others beside it looks less often: each look takes a
    processor for about a millisecond, and looking 50 times a second was most of what those others had to wait for.
    """
    active = {each.topic: each.active_bases() for each in topics}
    started_at = time.perf_counter()
    Topics(topics[0].broker.bootstrap).configure([each.topic for each in topics], TIERED)
    for each in topics:
        _wait(partial(each.is_copied, active[each.topic]), f"{each.topic} to be copied", every)
    return time.perf_counter() - started_at


def wait_only_remote(topics: Sequence[TopicFiles]) -> None:
    """Wait until the copied segments have left the disk."""
    for each in topics:
        _wait(each.is_only_remote, f"the segments of {each.topic} to leave the disk")


def _wait(is_true: Callable[[], bool], what: str, every: float = _POLL_SECONDS) -> None:
    deadline = time.perf_counter() + _PATIENCE_SECONDS
    while not is_true():
        if time.perf_counter() > deadline:
            raise LoadFailed(f"Waiting for {what} took too long.")
        time.sleep(every)
