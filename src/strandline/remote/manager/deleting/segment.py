"""Deletes remote segments: DELETE_SEGMENT_STARTED, the objects, DELETE_SEGMENT_FINISHED.

A deletion that a crash interrupts at any point is resumed.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Final

from strandline.clock import Clock
from strandline.crash import crash_point
from strandline.remote.manager.deleting.plan import MOST_DELETIONS, Deletion, DeletionReason
from strandline.remote.manager.states import SegmentStates
from strandline.remote.manager.status import Counters
from strandline.remote.ports import RemoteStorageError, RemoteStorageManager
from strandline.remote.turns import gathered
from strandline.remote.values import RemoteLogSegmentId, RemoteLogSegmentMetadata, RemoteLogSegmentState

logger = logging.getLogger(__name__)

# A segment that cannot be deleted does not hold up the others, but a storage that fails is not tried for all of them.
_FAILURES_PER_TURN: Final = 3

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

    async def begin(self, deletion: Deletion) -> None:
        """Mark a segment for deletion: the next leader then resumes it. Raises RemoteStorageError, ValueError."""
        if deletion.segment.state is not RemoteLogSegmentState.DELETE_SEGMENT_STARTED:
            await self._states.update(deletion.segment, RemoteLogSegmentState.DELETE_SEGMENT_STARTED)

    async def delete(self, deletion: Deletion) -> None:
        """Delete a segment with its indexes. Raises RemoteStorageError; repeat it then.

        Lookups do not find it from the first step on; the last step comes when no object is left.
        """
        with self._counted(deletion.segment):
            segment = await self._delete_data(deletion.segment)
            await self._states.update(segment, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED)
            crash_point("remote.delete.after_finished")
        self._on_deleted((segment.segment_id,))
        logger.info(
            "deleted the remote segment %d to %d of %s: %s",
            segment.start_offset,
            segment.end_offset,
            segment.partition,
            deletion.reason.value,
        )

    async def take_back(self, segment: RemoteLogSegmentMetadata) -> None:
        """Delete what a failed copy has written. Raises RemoteStorageError, ValueError.

        The last step is left to the expiration task, which deletes once more: see `LateCopies`.
        """
        with self._counted(segment):
            await self._delete_data(segment)

    async def delete_late(self, segment: RemoteLogSegmentMetadata) -> None:
        """Delete what was written of a segment that no metadata knows any more. Raises RemoteStorageError."""
        with self._counted(segment):
            await self._storage.delete_log_segment_data(segment)

    async def _delete_data(self, segment: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
        crash_point("remote.delete.before_started")
        if segment.state is not RemoteLogSegmentState.DELETE_SEGMENT_STARTED:
            segment = await self._states.update(segment, RemoteLogSegmentState.DELETE_SEGMENT_STARTED)
        crash_point("remote.delete.after_started")
        await self._storage.delete_log_segment_data(segment)
        crash_point("remote.delete.after_data")
        return segment

    @contextmanager
    def _counted(self, segment: RemoteLogSegmentMetadata) -> Iterator[None]:
        counters = self._counters.of(segment.partition.topic)
        counters.delete_requests += 1
        try:
            yield
        except Exception:
            counters.delete_errors += 1
            raise


async def in_batches(
    clock: Clock, segments: Iterator[RemoteLogSegmentMetadata], reason: DeletionReason
) -> AsyncGenerator[Sequence[Deletion]]:
    """The deletions of very many segments, in short turns; no more of them at a time than a plan has."""
    deletions = (Deletion(segment, reason) for segment in segments)
    while batch := await gathered(clock, islice(deletions, MOST_DELETIONS)):
        yield batch


class DeletionTurn:
    """Deletes several segments, until too many of them fail."""

    def __init__(self, deleter: SegmentDeleter) -> None:
        self._deleter = deleter

    async def begin(self, deletions: Sequence[Deletion], goes_on: Callable[[], bool]) -> bool:
        """Mark all segments for deletion; otherwise as `run`."""
        return await self.each(deletions, self._deleter.begin, goes_on)

    async def run(self, deletions: Sequence[Deletion], goes_on: Callable[[], bool]) -> bool:
        """Delete until `goes_on` is false. True if all are deleted. Raises the first error, after trying others."""
        return await self.each(deletions, self._deleter.delete, goes_on)

    async def each(
        self,
        deletions: Sequence[Deletion],
        step: Callable[[Deletion], Awaitable[None]],
        goes_on: Callable[[], bool],
    ) -> bool:
        """Take a step with each segment; otherwise as `run`."""
        errors: list[Exception] = []
        for deletion in deletions:
            if not goes_on():
                return False
            try:
                await step(deletion)
            except (RemoteStorageError, ValueError) as error:
                errors.append(error)
                if len(errors) == _FAILURES_PER_TURN:
                    break
        if errors:
            raise errors[0]
        return True
