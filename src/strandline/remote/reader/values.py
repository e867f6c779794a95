"""Requests and results of the reader."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from strandline.model import Offset, TopicIdPartition
from strandline.reads import AnsweredOffsets, FetchIsolation, WholeLog
from strandline.remote.reader.log import ReadableLog


class RemoteRead(NamedTuple):
    """Read one partition from `offset` on, which lies before its local log."""

    partition: TopicIdPartition
    log: ReadableLog
    offset: Offset
    max_bytes: int
    isolation: FetchIsolation
    whole: WholeLog | None = None
    """For a log that is only the older part of another. An offset of it that no remote segment has is then not out of
    range, but to be asked for elsewhere (NotLeaderOrFollower)."""

    def answered_offsets(self) -> AnsweredOffsets:
        """The offsets that come with the answer."""
        if self.whole is not None:
            return self.whole()
        log = self.log
        return AnsweredOffsets(log.high_watermark, log.last_stable_offset, log.log_start_offset)


class FetchQuota(Protocol):
    """How much may be read from remote storage (remote.log.manager.fetch.max.bytes.per.second)."""

    def throttle_seconds(self) -> float:
        """Seconds to wait until there is room again; 0 if there is room now."""

    def record(self, size: int) -> None:
        """`size` bytes were read."""
