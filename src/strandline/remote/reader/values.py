"""Requests and results of the reader."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from strandline.model import Offset, TopicIdPartition
from strandline.reads import FetchIsolation
from strandline.remote.reader.log import ReadableLog


class RemoteRead(NamedTuple):
    """Read one partition from `offset` on, which lies before its local log."""

    partition: TopicIdPartition
    log: ReadableLog
    offset: Offset
    max_bytes: int
    isolation: FetchIsolation


class FetchQuota(Protocol):
    """How much may be read from remote storage (remote.log.manager.fetch.max.bytes.per.second)."""

    def throttle_seconds(self) -> float:
        """Seconds to wait until there is room again; 0 if there is room now."""

    def record(self, size: int) -> None:
        """`size` bytes were read."""
