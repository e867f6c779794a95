"""Ports of the control plane for whoever tidies up after the pipeline. What holds for all ports is in `ports`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol
from uuid import UUID

from strandline.controlplane.tiering_values import GivenUpRun, GivenUpSegment
from strandline.model import TopicIdPartition


class GivenUpSegments(Protocol):
    """For leaders, and for whoever tidies up: segments that will never be part of a log."""

    async def forget_segment(self, partition: TopicIdPartition, segment_id: UUID) -> None:
        """The bytes of an ABORTING upload are deleted: it is gone. Others stay.

        Its bytes are to be deleted once more after LATE_MS, and so are those of all uploads of deleted topics: tasks
        that nobody waits for may write them late.
        """

    async def given_up_segments(self, *, limit: int, after: GivenUpSegment | None = None) -> Sequence[GivenUpSegment]:
        """Segments that were gone LATE_MS ago, whose bytes are to be deleted now, the longest due first.

        With `after`, those that come behind it in that order.
        """

    async def given_up_deleted(self, segment_id: UUID) -> None:
        """The bytes of such a segment are deleted."""


class GivenUpRuns(Protocol):
    """For upkeep: runs of the pipeline that may have written split files and will not record them."""

    async def given_up_runs(self, *, limit: int) -> Sequence[GivenUpRun]:
        """Claimants of WAL files whose claims are all done, released, taken over, or expired and not renewed for as
        long again; and whose split files are to be looked for. That is at once, and again after LATE_SPLITS_MS: a task
        that was cancelled may write late.
        """

    async def unrecorded(self, object_keys: Collection[str]) -> Sequence[str]:
        """Those of the objects that no file row knows, in the same order. It locks nothing."""

    async def take_leftovers(
        self, run: GivenUpRun, object_keys: Collection[str], *, broker_id: int
    ) -> Sequence[str] | None:
        """Mark those of the objects for deletion that are not recorded: from now on they are refused. Returns them.

        The objects were listed after `given_up_runs` answered. None if the run has claimed since: some of them may
        be its newest ones. Nothing is marked then.
        """

    async def run_looked_at(self, run: GivenUpRun) -> None:
        """All objects of the run were listed, and those that are not recorded marked. The second time it is forgotten.

        Nothing changes if it has claimed since.
        """
