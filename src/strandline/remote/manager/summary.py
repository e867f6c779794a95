"""The description of a partition in numbers. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from strandline.remote.values import RemoteLogSegmentMetadata, RemoteLogSegmentState


class RemoteSummary(NamedTuple):
    """How many segments there are, and how large."""

    segments: int = 0
    """In whatever state."""
    finished_bytes: int = 0
    deleting_segments: int = 0
    deleting_bytes: int = 0

    def with_copy(self, size: int) -> RemoteSummary:
        """The same with one more segment that was copied."""
        return self._replace(segments=self.segments + 1, finished_bytes=self.finished_bytes + size)


def summarize(segments: Iterable[RemoteLogSegmentMetadata]) -> RemoteSummary:
    """The numbers of all known segments of a partition."""
    count = finished = deleting = deleting_bytes = 0
    for segment in segments:
        count += 1
        if segment.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED:
            finished += segment.segment_size_in_bytes
        elif segment.state is RemoteLogSegmentState.DELETE_SEGMENT_STARTED:
            deleting += 1
            deleting_bytes += segment.segment_size_in_bytes
    return RemoteSummary(count, finished, deleting, deleting_bytes)
