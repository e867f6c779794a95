"""Deleting one remote segment: say so, delete, say that it is done. A crash between any two is taken up again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from strandline.crash import crash_point
from strandline.remote.manager.counters import Counters, TopicCounters
from strandline.remote.manager.expiry_plan import Deletion
from strandline.remote.manager.states import SegmentStates
from strandline.remote.ports import RemoteStorageManager
from strandline.remote.values import RemoteLogSegmentId, RemoteLogSegmentMetadata, RemoteLogSegmentState

logger = logging.getLogger(__name__)

SegmentsDeleted = Callable[[Collection[RemoteLogSegmentId]], None]


class SegmentDeleter:
    """Takes segments through DELETE_SEGMENT_STARTED to DELETE_SEGMENT_FINISHED."""

    def __init__(
        self,
        storage: RemoteStorageManager,
        states: SegmentStates,
        counters: Counters,
        on_deleted: SegmentsDeleted,
    ) -> None:
        self._storage, self._states, self._counters = storage, states, counters
        self._on_deleted = on_deleted

    async def delete(self, deletion: Deletion) -> None:
        """Delete a segment with its indexes. Raises RemoteStorageError; repeat it then.

        Readers are not sent to it from the first step on; the last step comes when no object is left.
        """
        with self._counted(deletion.segment) as counters:
            segment = await self._delete_data(deletion.segment)
            await self._states.update(segment, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED)
            crash_point("remote.delete.after_finished")
        counters.deleted_segments += 1
        counters.deleted_bytes += segment.segment_size_in_bytes
        self._on_deleted((segment.segment_id,))
        logger.info(
            "Deleted the remote segment %d to %d of %s: %s",
            segment.start_offset,
            segment.end_offset,
            segment.partition,
            deletion.reason.value,
        )

    async def take_back(self, segment: RemoteLogSegmentMetadata) -> None:
        """Delete what a failed copy has written so far. Raises RemoteStorageError, ValueError.

        The last step is left to the expiration task, which deletes once more: a write that was given up may arrive
        after this.
        """
        with self._counted(segment):
            await self._delete_data(segment)

    async def _delete_data(self, segment: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
        crash_point("remote.delete.before_started")
        if segment.state is not RemoteLogSegmentState.DELETE_SEGMENT_STARTED:
            segment = await self._states.update(segment, RemoteLogSegmentState.DELETE_SEGMENT_STARTED)
        crash_point("remote.delete.after_started")
        await self._storage.delete_log_segment_data(segment)
        crash_point("remote.delete.after_data")
        return segment

    @contextmanager
    def _counted(self, segment: RemoteLogSegmentMetadata) -> Iterator[TopicCounters]:
        counters = self._counters.of(segment.partition.topic)
        counters.delete_requests += 1
        try:
            yield counters
        except Exception:
            counters.delete_errors += 1
            raise
