"""What a broker answers about the conversion of diskless topics, as ports for the code that passes requests on."""

from __future__ import annotations

from typing import Protocol

from strandline.conversion_api.values import (
    AbortSegment,
    BeginSegment,
    BegunSegment,
    ClaimedFiles,
    ClaimFiles,
    ClusterDescription,
    CommitSegment,
    CommittedSegment,
    ListMerges,
    ListTriggers,
    MergeRanges,
    PlanRead,
    ReadPlan,
    RecordedSplits,
    RecordSplits,
    ReleaseFiles,
    RenewClaims,
    RenewedClaims,
    TieringStatus,
    Triggers,
)
from strandline.hybrid.conversion.led_tiers import DisklessTiers


class PipelineSource(Protocol):
    """For the pipeline. All raise StrandlineError, with a sentence; all may be repeated when an answer was lost."""

    async def describe(self) -> ClusterDescription: ...
    async def claim_files(self, request: ClaimFiles, /) -> ClaimedFiles: ...
    async def record_splits(self, request: RecordSplits, /) -> RecordedSplits: ...
    async def release_files(self, request: ReleaseFiles, /) -> None: ...
    async def renew_claims(self, request: RenewClaims, /) -> RenewedClaims: ...
    async def list_triggers(self, request: ListTriggers, /) -> Triggers: ...
    async def list_merges(self, request: ListMerges, /) -> MergeRanges: ...
    async def begin_segment(self, request: BeginSegment, /) -> BegunSegment: ...
    async def commit_segment(self, request: CommitSegment, /) -> CommittedSegment: ...
    async def abort_segment(self, request: AbortSegment, /) -> None: ...
    async def plan_read(self, request: PlanRead, /) -> ReadPlan: ...


class TieringSource(PipelineSource, Protocol):
    """For operators as well."""

    async def statuses(self, topics: tuple[str, ...]) -> tuple[TieringStatus, ...]:
        """How far topics are converted; all diskless ones if none is named. Raises StrandlineError."""

    async def tiers(self, topic: str) -> tuple[DisklessTiers, ...]:
        """Where the records of a topic are, in the diskless partitions that this broker leads.

        None of a topic that does not exist. Raises StrandlineError.
        """

    async def pause(self, topic: str, *, is_paused: bool) -> TieringStatus:
        """Pause or resume the conversion of a topic. Raises StrandlineError."""

    async def trigger(self, topic: str) -> TieringStatus:
        """Convert what a topic has by now, whatever its age. Raises StrandlineError."""
