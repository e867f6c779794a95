"""The values of the tiering API and those of the control plane: one into the other.

They look alike, and change for different reasons: the API speaks to pipelines of other versions, the control plane to
its database.
"""

from __future__ import annotations

from strandline.controlplane.conversion import (
    ClaimWish,
    GrantedClaims,
    HeldClaims,
    SplitAnswer,
    SplitObject,
    SplitsToRecord,
    WrittenSplit,
)
from strandline.conversion_api.values import (
    ClaimedFile,
    ClaimedFiles,
    ClaimFiles,
    PlannedRow,
    PlannedSplit,
    RecordedSplits,
    RecordSplits,
    RenewedClaims,
    SplitFile,
)


def claim_wish(request: ClaimFiles) -> ClaimWish:
    """What the pipeline wants to split."""
    return ClaimWish(
        claimant=request.claimant,
        max_files=request.max_files,
        max_rows=request.max_rows,
        claim_ms=request.claim_ms,
        after_file_id=request.after_file_id,
        topics=request.topics,
    )


def claimed_files(granted: GrantedClaims) -> ClaimedFiles:
    """What it may split."""
    files = [
        ClaimedFile(
            file_id=file.file_id,
            object_key=file.object_key,
            size=file.size,
            expires_at_ms=file.expires_at_ms,
            splits=tuple(
                [
                    PlannedSplit(partition=plan.partition, rows=tuple(map(PlannedRow._make, plan.rows)))
                    for plan in file.splits
                ]
            ),
        )
        for file in granted.files
    ]
    return ClaimedFiles(files=tuple(files), next_file_id=granted.next_file_id)


def renewed_claims(held: HeldClaims) -> RenewedClaims:
    """How many claims it has."""
    return RenewedClaims(files=held.files, segments=held.segments)


def splits_to_record(request: RecordSplits) -> SplitsToRecord:
    """The split files that it has written."""
    splits = [WrittenSplit(partition, _split_object(file)) for partition, file in request.splits]
    return SplitsToRecord(claimant=request.claimant, object_keys=request.object_keys, splits=tuple(splits))


def recorded_splits(answer: SplitAnswer) -> RecordedSplits:
    """Which of them count."""
    return RecordedSplits(refused=answer.refused, files_done=answer.files_done)


def split_file(split: SplitObject) -> SplitFile:
    """A split file as the pipeline gets it."""
    return SplitFile(
        object_key=split.object_key,
        base_offset=split.base_offset,
        last_offset=split.last_offset,
        size_bytes=split.size_bytes,
        batch_count=split.batch_count,
        max_timestamp=split.max_timestamp,
        leader_epochs=split.leader_epochs,
    )


def _split_object(file: SplitFile) -> SplitObject:
    return SplitObject(
        object_key=file.object_key,
        base_offset=file.base_offset,
        last_offset=file.last_offset,
        size_bytes=file.size_bytes,
        batch_count=file.batch_count,
        max_timestamp=file.max_timestamp,
        leader_epochs=file.leader_epochs,
    )
