"""Claims, split files and segments for tests of the control plane."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from strandline.clock import SystemIds
from strandline.controlplane import SqlControlPlane
from strandline.controlplane.conversion.values import (
    ClaimWish,
    FileToSplit,
    GrantedClaims,
    RowToSplit,
    SegmentCommit,
    SplitAnswer,
    SplitObject,
    SplitPlan,
    SplitsToRecord,
    TieringRule,
    UploadAnswer,
    WrittenSplit,
)
from strandline.model import TopicIdPartition
from tests.controlplane.making import OTHER_TOPIC, TOPIC, batch, commit

_IDS = SystemIds()
ME, RIVAL = "spark:here:1", "spark:there:2"
CLAIM_MS = 300_000
AT_ONCE = (TieringRule(TOPIC, 0), TieringRule(OTHER_TOPIC, 0))
"""Whatever is older than this moment may be converted."""
LATER = 10_000
"""A moment at which everything that was committed at NOW is eligible."""


def wish(claimant: str = ME, **fields: object) -> ClaimWish:
    """A claim of all there is."""
    given = {"max_files": 1_000, "max_rows": 1_000_000, "claim_ms": CLAIM_MS} | fields
    return ClaimWish(claimant=claimant, **given)  # type: ignore[arg-type]


async def claim(
    plane: SqlControlPlane, claimant: str = ME, *, rules: Sequence[TieringRule] = AT_ONCE, **fields: object
) -> GrantedClaims:
    """Claim files."""
    return await plane.claims.claim_wal_files_for_splitting(wish(claimant, **fields), rules)


def keys(claimed: GrantedClaims) -> list[str]:
    """Of the files that were claimed."""
    return [file.object_key for file in claimed.files]


def offsets(splits: Iterable[SplitPlan]) -> list[tuple[int, int, int]]:
    """Partition, first and last offset of each planned split."""
    return [(s.partition.partition, s.rows[0].base_offset, s.rows[-1].last_offset) for s in splits]


def new_split(planned: SplitPlan, attempt: str = "") -> WrittenSplit:
    """The split file that an executor writes."""
    rows = planned.rows
    epochs: dict[int, int] = {}
    for row in rows:
        epochs.setdefault(row.leader_epoch, row.base_offset)
    name = f"{planned.partition.topic_id.int}-{planned.partition.partition}-{rows[0].base_offset}"
    return WrittenSplit(
        planned.partition,
        SplitObject(
            object_key=f"split/{name}-{attempt or _IDS.uuid()}",
            base_offset=rows[0].base_offset,
            last_offset=rows[-1].last_offset,
            size_bytes=sum(row.byte_size for row in rows),
            batch_count=len(rows),
            max_timestamp=max(row.max_timestamp for row in rows),
            leader_epochs=tuple(epochs.items()),
        ),
    )


def record_of(file: FileToSplit, claimant: str = ME, attempt: str = "") -> SplitsToRecord:
    """All planned splits of a file, written."""
    splits = tuple(new_split(planned, attempt) for planned in file.splits)
    return SplitsToRecord(claimant=claimant, object_keys=(file.object_key,), splits=splits)


def record_together(files: Sequence[FileToSplit], claimant: str = ME, attempt: str = "") -> SplitsToRecord:
    """All planned splits of some files, written; those that follow each other as one."""
    rows: dict[TopicIdPartition, list[RowToSplit]] = {}
    for file in files:
        for split in file.splits:
            rows.setdefault(split.partition, []).extend(split.rows)
    splits: list[WrittenSplit] = []
    for partition, found in rows.items():
        run: list[RowToSplit] = []
        for row in sorted(found):
            if run and run[-1].last_offset + 1 != row.base_offset:
                splits.append(new_split(SplitPlan(partition, tuple(run)), attempt))
                run = []
            run.append(row)
        splits.append(new_split(SplitPlan(partition, tuple(run)), attempt))
    keys = tuple(file.object_key for file in files)
    return SplitsToRecord(claimant=claimant, object_keys=keys, splits=tuple(splits))


async def split_all(
    plane: SqlControlPlane, claimant: str = ME, *, rules: Sequence[TieringRule] = AT_ONCE
) -> list[SplitAnswer]:
    """Split every eligible row."""
    answers: list[SplitAnswer] = []
    after = 0
    while True:
        claimed = await claim(plane, claimant, rules=rules, after_file_id=after)
        answers += [await plane.claims.record_splits(record_of(file, claimant)) for file in claimed.files]
        after = claimed.next_file_id
        if after == 0:
            return answers


async def begin(
    plane: SqlControlPlane,
    partition: TopicIdPartition,
    base: int,
    last: int,
    *,
    claimant: str = ME,
    epoch: int = 0,
    segment_id: uuid.UUID | None = None,
) -> UploadAnswer:
    """Begin a segment with a new id."""
    return await plane.uploads.begin_segment(
        partition,
        segment_id or _IDS.uuid(),
        base_offset=base,
        last_offset=last,
        claimant=claimant,
        claim_ms=CLAIM_MS,
        leader_epoch=epoch,
    )


async def merge(plane: SqlControlPlane, partition: TopicIdPartition, base: int, last: int) -> SegmentCommit:
    """Begin, finish and commit a segment."""
    begun = await begin(plane, partition, base, last)
    assert begun.upload is not None, begun
    segment_id = begun.upload.segment_id
    finished = await plane.uploads.finish_segment(partition, segment_id, leader_epoch=0, claimant=ME)
    assert finished.refusal is None, finished
    return await plane.uploads.commit_segment(partition, segment_id, leader_epoch=0)


async def fill(plane: SqlControlPlane, *partitions: TopicIdPartition, files: int = 3, records: int = 10) -> None:
    """Commit files f0, f1, … with one batch of each partition."""
    for number in range(files):
        await commit(plane, f"f{number}", *(batch(partition, records) for partition in partitions))


async def states(plane: SqlControlPlane) -> dict[str, str]:
    """The state of every object that the control plane knows, by its key."""
    async with plane.store.transaction() as tx:
        return dict(await tx.fetch("SELECT object_key, state FROM inkless_file"))


async def count(plane: SqlControlPlane, table: str) -> int:
    """Rows of a table."""
    async with plane.store.transaction() as tx:
        (row,) = await tx.fetch(f"SELECT count(*) FROM {table}")
        return int(row[0])


async def assert_consistent(plane: SqlControlPlane) -> None:
    """What has to be true at every moment between two calls.

    Every offset from the log start to the end is in a segment or in a row; split files have all their rows; every
    object that something refers to is kept, and nothing else is.
    """
    async with plane.store.transaction() as tx:
        logs = await tx.fetch(
            "SELECT log_id, topic_id, partition, log_start_offset, diskless_start_offset, high_watermark, byte_size "
            "FROM inkless_log WHERE NOT is_deleted"
        )
        rows = await tx.fetch(
            "SELECT log_id, base_offset, last_offset, file_id, byte_size, tiering_state FROM inkless_batch "
            "ORDER BY log_id, last_offset"
        )
        splits = await tx.fetch(
            "SELECT topic_id, partition, base_offset, last_offset, file_id, object_key FROM inkless_split_batch "
            "ORDER BY topic_id, partition, base_offset"
        )
        files = {
            row[0]: row[1:] for row in await tx.fetch("SELECT file_id, state, format, object_key FROM inkless_file")
        }
    assert {row[0] for row in rows} <= {log[0] for log in logs}
    for log_id, topic_id, partition, start, boundary, end, size in logs:
        mine = [row for row in rows if row[0] == log_id]
        offset = max(start, boundary)
        for _, base, last, *_ in mine:
            assert base <= offset <= last, f"offset {offset} of {topic_id} {partition} is in no row: {mine}"
            offset = last + 1
        assert offset == max(end, start), f"{topic_id} {partition} ends at {end}: {mine}"
        assert size == sum(row[4] for row in mine)
        of_log = [split for split in splits if split[:2] == (topic_id, partition)]
        covered = [n for s in of_log for n in range(max(s[2], start), s[3] + 1)]
        is_split = [n for row in mine if row[5] == "SPLIT" for n in range(max(row[1], start), row[2] + 1)]
        assert covered == is_split, f"{topic_id} {partition}: {of_log}, {mine}"
    used = {row[3] for row in rows} | {split[4] for split in splits}
    assert used == {file_id for file_id, (state, *_) in files.items() if state == "uploaded"}
    assert all(files[split[4]][1:] == (-1, split[5]) for split in splits)
