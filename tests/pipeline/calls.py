"""What a run of the pipeline asks of brokers: `TieringClient` over the network, `TieringService` in a broker."""

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
    MergeRanges,
    RecordedSplits,
    RecordSplits,
    ReleaseFiles,
    RenewClaims,
    RenewedClaims,
)


class SplittingCalls(Protocol):
    """For the first half: WAL objects become split files. Blocking; every call may be repeated."""

    def claim_files(self, request: ClaimFiles) -> ClaimedFiles: ...

    def record_splits(self, request: RecordSplits) -> RecordedSplits: ...

    def release_files(self, request: ReleaseFiles) -> None: ...


class MergingCalls(Protocol):
    """For the second half: split files become segments. The leaders of the partitions answer."""

    def list_merges(self, request: ListMerges) -> MergeRanges: ...

    def begin_segment(self, request: BeginSegment) -> BegunSegment: ...

    def commit_segment(self, request: CommitSegment) -> CommittedSegment: ...

    def abort_segment(self, request: AbortSegment) -> None: ...


class TieringCalls(SplittingCalls, MergingCalls, Protocol):
    """All that a run of the pipeline asks."""

    def describe(self) -> ClusterDescription: ...

    def renew_claims(self, request: RenewClaims) -> RenewedClaims: ...
