"""Deletes once more what was written late of segments that were given up, or whose topics are deleted.

Any broker may do it, and several at a time. One segment whose deletion hangs or fails holds up only itself.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final
from uuid import UUID

from strandline.controlplane.conversion import GivenUpSegment, GivenUpSegments
from strandline.crash import crash_point
from strandline.hybrid.conversion.lanes import Lane
from strandline.hybrid.remote.topics import TieredTopics, is_open_tier
from strandline.remote.ports import RemoteStorageError
from strandline.sql import SqlError
from strandline.tasks import Setbacks

logger = logging.getLogger(__name__)

_FOUND_AT_ONCE: Final = 100
"""Segments that one look finds."""
_DELETED_AT_ONCE: Final = 16
"""One that hangs takes a place until the deadline of the storage."""


class LateDeletions:
    """See the module. Each look goes on behind the segments that the one before has found, and begins anew at the end,
    so that segments which cannot be deleted do not keep others from being found.
    """

    def __init__(self, segments: GivenUpSegments, tiered: TieredTopics, group: asyncio.TaskGroup) -> None:
        self._segments, self._tiered = segments, tiered
        self._lane = Lane[UUID, GivenUpSegment](group, "converted-late", self._delete, at_once=_DELETED_AT_ONCE)
        self._last: GivenUpSegment | None = None
        self._seen: set[UUID] = set()
        """All that the looks have found since they began anew."""
        self._failing: set[UUID] = set()
        self._setbacks = Setbacks("deletion of segments that were given up", logger)

    async def look(self) -> None:
        """Find segments that are due, and have them deleted. Raises SqlError."""
        if self._lane.waiting >= _FOUND_AT_ONCE:
            return
        found = await self._segments.given_up_segments(limit=_FOUND_AT_ONCE, after=self._last)
        for segment in found:
            self._seen.add(segment.segment_id)
            self._lane.want(segment.segment_id, segment)
        if len(found) == _FOUND_AT_ONCE:
            self._last = found[-1]
            return
        self._ended(self._failing - self._seen)  # other brokers have deleted these
        self._seen.clear()
        self._last = None

    async def _delete(self, segment: GivenUpSegment) -> None:
        storage, segment_id = self._tiered.storage, segment.segment_id
        if not is_open_tier(storage):
            return
        try:
            await storage.manager.pipeline.delete_late(
                segment.partition, segment_id, segment.base_offset, segment.last_offset
            )
            crash_point("tiering.late.after_delete")
            await self._segments.given_up_deleted(segment_id)
        except (RemoteStorageError, SqlError) as error:
            self._failing.add(segment_id)
            self._setbacks.met(error)
        else:
            self._ended({segment_id})

    def _ended(self, segments: set[UUID]) -> None:
        self._failing -= segments
        if not self._failing:
            self._setbacks.over()
