"""Errors of remote reads: what clients get, and a log line at intervals for the operator."""

from __future__ import annotations

import logging
from typing import Final, Generic, TypeVar
from uuid import UUID

from strandline.clock import Clock
from strandline.errors import CorruptMessage, KafkaStorageError, StrandlineError
from strandline.model import uuid_to_text
from strandline.remote.ports import RemoteResourceNotFound
from strandline.remote.values import RemoteLogSegmentMetadata

logger = logging.getLogger(__name__)

K = TypeVar("K")

# A segment that cannot be read, or that is missing, is logged once per interval; so many are remembered.
_LOG_INTERVAL_SECONDS: Final = 60.0
_REMEMBERED: Final = 1000


class LoggedLately(Generic[K]):
    """What was logged in the last minute: consumers retry many times a second, and each would log the same line."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._logged_at: dict[K, float] = {}

    def add(self, key: K) -> bool:
        """True if `key` is to be logged now; it then counts as logged."""
        now = self._clock.monotonic()
        logged_at = self._logged_at.get(key)
        if logged_at is not None and now - logged_at < _LOG_INTERVAL_SECONDS:
            return False
        if len(self._logged_at) >= _REMEMBERED:
            self._logged_at.clear()
        self._logged_at[key] = now
        return True


class RemoteReadErrors:
    """Turns an error of a segment into the error that clients get, and logs it."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._logged: LoggedLately[UUID] = LoggedLately(clock)

    def error_of(self, metadata: RemoteLogSegmentMetadata, trouble: Exception) -> StrandlineError:
        """The error for a client that reads this segment. It is logged, as consumers only see its code, and retry."""
        if isinstance(trouble, KafkaStorageError):
            return trouble  # already logged, or about the load of this broker and not about the segment
        error = KafkaStorageError(self._sentence(metadata, trouble))
        if self._logged.add(metadata.segment_id.id):
            logger.warning("remote records cannot be read: %s", error)
        return error

    def _sentence(self, metadata: RemoteLogSegmentMetadata, trouble: Exception) -> str:
        name = uuid_to_text(metadata.segment_id.id)  # as in the names of its objects
        segment = (
            f"Remote segment {name} of {metadata.partition.topic_partition} (offsets "
            f"{metadata.start_offset} to {metadata.end_offset})"
        )
        if isinstance(trouble, RemoteResourceNotFound):
            return f"{segment} is incomplete in {self._url}: {trouble}"
        if isinstance(trouble, CorruptMessage):
            return f"{segment} is damaged in {self._url}: {trouble}"
        return f"{segment} cannot be read from {self._url}: {trouble}"
