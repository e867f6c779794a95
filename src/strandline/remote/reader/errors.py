"""Errors of remote reads: what clients are told, and one line now and then for the operator."""

from __future__ import annotations

import logging
from typing import Final
from uuid import UUID

from strandline.clock import Clock
from strandline.errors import CorruptMessage, KafkaStorageError, StrandlineError
from strandline.model import uuid_to_text
from strandline.remote.ports import RemoteResourceNotFound
from strandline.remote.values import RemoteLogSegmentMetadata

_log = logging.getLogger(__name__)

# A segment that cannot be read is spoken of once in so many seconds; so many are remembered.
_COMPLAINT_SECONDS: Final = 60.0
_COMPLAINTS: Final = 1000


class RemoteReadErrors:
    """Turns trouble with a segment into the error that clients get, and tells the operator."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._url, self._clock = url, clock
        self._complained: dict[UUID, float] = {}

    def error_of(self, metadata: RemoteLogSegmentMetadata, trouble: Exception) -> StrandlineError:
        """What to tell a client that cannot have this segment. Consumers only see a code, and ask again and again."""
        if isinstance(trouble, KafkaStorageError):
            return trouble  # spoken of already, or about the load of this broker and not about the segment
        error = KafkaStorageError(self._sentence(metadata, trouble))
        now = self._clock.monotonic()
        if now - self._complained.get(metadata.segment_id.id, -_COMPLAINT_SECONDS) >= _COMPLAINT_SECONDS:
            if len(self._complained) >= _COMPLAINTS:
                self._complained.clear()
            self._complained[metadata.segment_id.id] = now
            _log.warning("remote records cannot be read: %s", error)
        return error

    def _sentence(self, metadata: RemoteLogSegmentMetadata, trouble: Exception) -> str:
        name = uuid_to_text(metadata.segment_id.id)  # as in the names of its objects
        segment = (
            f"The remote segment {name} of {metadata.partition.topic_partition}, which holds the offsets "
            f"{metadata.start_offset} to {metadata.end_offset},"
        )
        if isinstance(trouble, RemoteResourceNotFound):
            return f"{segment} is not whole in {self._url}: {trouble}"
        if isinstance(trouble, CorruptMessage):
            return f"{segment} is damaged in {self._url}: {trouble}"
        return f"{segment} cannot be read from {self._url}: {trouble}"
