"""Segments on their way into a log: their uploads, and the transaction that moves the read boundary.

Everything about a log is judged while its row is locked. The rows that a segment replaces are deleted afterwards, in
short transactions: rows below the read boundary are not read any more, and commits do not wait for their deletion.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final, NamedTuple
from uuid import UUID

from strandline.controlplane.conversion.rows import new_upload_columns, splits_of, uploads_of, wishes_of
from strandline.controlplane.conversion.rules import (
    dense_splits,
    is_mergeable,
    is_next_to_finish,
    is_paused,
    judge_commit,
    next_segment_offset,
    stale_leader,
    with_segment,
)
from strandline.controlplane.conversion.values import (
    SegmentCommit,
    SegmentUpload,
    SplitObject,
    UploadAnswer,
    UploadState,
)
from strandline.controlplane.database import MIGRATION_CHANNEL, TRIM_CHANNEL, Database
from strandline.controlplane.log_rows import lock_logs, named_log
from strandline.controlplane.pruning import prune
from strandline.controlplane.values import LATE_MS, DisklessLog, MigrationState, Refusal
from strandline.crash import crash_point
from strandline.model import (
    INT32_MAX,
    LeaderEpoch,
    Offset,
    TopicIdPartition,
    uuid_to_text,
)
from strandline.sql import Row, Transaction

_UNKNOWN_LOG: Final = "This topic or partition is unknown, was deleted, or is not diskless."


class _LockedUploads(NamedTuple):
    """A log, its uploads in the order of their offsets, and the one that is asked for."""

    log_id: int
    log: DisklessLog
    uploads: list[SegmentUpload]
    upload: SegmentUpload | None


class SqlSegmentUploads:
    """See SegmentUploads and ConversionKeeping."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def begin_segment(
        self,
        partition: TopicIdPartition,
        segment_id: UUID,
        *,
        base_offset: Offset,
        last_offset: Offset,
        claimant: str,
        claim_ms: int,
        leader_epoch: LeaderEpoch,
    ) -> UploadAnswer:
        async def work(tx: Transaction) -> UploadAnswer:
            locked = await self._lock_uploads(tx, partition)
            if locked is None:
                return UploadAnswer(Refusal.UNKNOWN_LOG, message=_UNKNOWN_LOG)
            upload = SegmentUpload(
                partition=partition,
                segment_id=segment_id,
                base_offset=base_offset,
                last_offset=last_offset,
                size_bytes=0,
                claimant=claimant,
                leader_epoch=leader_epoch,
                state=UploadState.UPLOADING,
                expires_at_ms=await self._db.now_ms(tx) + claim_ms,
            )
            return await self._begin(tx, locked, upload)

        return await self._db.store.transact(work)

    async def _begin(self, tx: Transaction, locked: _LockedUploads, upload: SegmentUpload) -> UploadAnswer:
        for other in locked.uploads:
            if message := stale_leader(other, upload.leader_epoch):
                return UploadAnswer(Refusal.STALE_LEADER_EPOCH, message=message)
        under_way = [other for other in locked.uploads if other.state is not UploadState.ABORTING]
        for other in under_way:
            if other.claimant != upload.claimant:
                message = f"{other.claimant} is at work on {upload.partition.topic_partition}."
                return UploadAnswer(Refusal.CLAIMED, message=message)
        earlier = [other for other in under_way if _range(other) == _range(upload)]
        start = earlier[0].base_offset if earlier else next_segment_offset(locked.log, under_way)
        found = await splits_of(self._db, tx, [(locked.log, start)], INT32_MAX, until=upload.last_offset)
        splits = found[upload.partition]
        files = [split.file for split in dense_splits(splits, start) if split.file.last_offset <= upload.last_offset]
        if earlier:
            begun = replace(earlier[0], leader_epoch=upload.leader_epoch, expires_at_ms=upload.expires_at_ms)
            await self._touch(tx, begun)
            return UploadAnswer(None, begun, tuple(files))
        if message := await self._reason_to_wait(tx, locked.log, upload, files):
            return UploadAnswer(Refusal.NOT_MERGEABLE, message=message)
        upload = replace(upload, size_bytes=sum(file.size_bytes for file in files))
        now_ms = await self._db.now_ms(tx)
        await tx.execute(self._db.sql["add_upload"], upload.segment_id, *new_upload_columns(upload), now_ms)
        return UploadAnswer(None, upload, tuple(files))

    async def _reason_to_wait(
        self, tx: Transaction, log: DisklessLog, upload: SegmentUpload, files: Sequence[SplitObject]
    ) -> str:
        """Why the segment cannot begin, if its split files are these; empty if it can."""
        where = f"{upload.partition.topic_partition}"
        if is_paused(log, await wishes_of(self._db, tx)):
            return f"The conversion of the topic {upload.partition.topic} is paused."
        if not is_mergeable(log):
            return (
                f"The records of {where} below its boundary, offset {log.diskless_log_start_offset}, are in remote "
                f"storage up to offset {log.tiered_high_offset} only: they are copied first."
            )
        if not files:
            return f"There is no split file of {where} where its segments end, at offset {log.diskless_start_offset}."
        if (files[0].base_offset, files[-1].last_offset) != _range(upload):
            return (
                f"The split files for the next segment of {where} have offsets {files[0].base_offset} to "
                f"{files[-1].last_offset}, not {upload.base_offset} to {upload.last_offset}."
            )
        return ""

    async def finish_segment(
        self,
        partition: TopicIdPartition,
        segment_id: UUID,
        *,
        leader_epoch: LeaderEpoch,
        custom_metadata: bytes | None = None,
        claimant: str | None = None,
    ) -> UploadAnswer:
        async def work(tx: Transaction) -> UploadAnswer:
            locked = await self._lock_uploads(tx, partition, segment_id)
            if locked is None:
                return UploadAnswer(Refusal.UNKNOWN_LOG, message=_UNKNOWN_LOG)
            upload = locked.upload
            if upload is None or upload.state is UploadState.ABORTING or claimant not in (None, upload.claimant):
                return UploadAnswer(Refusal.UNKNOWN_UPLOAD, upload, message=_unknown(partition, segment_id))
            if message := stale_leader(upload, leader_epoch):
                return UploadAnswer(Refusal.STALE_LEADER_EPOCH, upload, message=message)
            if not is_next_to_finish(upload, locked.uploads):
                message = f"An earlier segment of {partition.topic_partition} has to be finished first."
                return UploadAnswer(Refusal.NOT_MERGEABLE, upload, message=message)
            if upload.state is UploadState.UPLOADING:
                upload = replace(upload, state=UploadState.FINISHING, custom_metadata=custom_metadata)
            upload = replace(upload, leader_epoch=leader_epoch)
            await self._touch(tx, upload)
            return UploadAnswer(None, upload)

        return await self._db.store.transact(work)

    async def commit_segment(
        self, partition: TopicIdPartition, segment_id: UUID, *, leader_epoch: LeaderEpoch
    ) -> SegmentCommit:
        async def work(tx: Transaction) -> tuple[int, SegmentCommit]:
            locked = await self._lock_uploads(tx, partition, segment_id)
            if locked is None:
                return -1, SegmentCommit(Refusal.UNKNOWN_LOG, message=_UNKNOWN_LOG)
            log, upload = locked.log, locked.upload
            boundary = log.diskless_start_offset
            if upload is not None and (message := stale_leader(upload, leader_epoch)):
                return -1, SegmentCommit(Refusal.STALE_LEADER_EPOCH, boundary, message=message)
            refusal = judge_commit(log, upload, locked.uploads)
            if upload is None or refusal is not None:
                message = _unknown(partition, segment_id)
                if refusal is Refusal.NOT_MERGEABLE:
                    message = f"An earlier segment of {partition.topic_partition} has to be committed first."
                return -1, SegmentCommit(refusal, boundary, message=message)
            after = with_segment(log, upload)
            await self._convert(tx, locked.log_id, after)
            await tx.execute(self._db.sql["drop_upload"], segment_id)
            tx.notify(TRIM_CHANNEL)
            if after.migration_state is not log.migration_state:
                tx.notify(MIGRATION_CHANNEL)
            crash_point("controlplane.tiering.before_segment_commit")
            return locked.log_id, SegmentCommit(None, after.diskless_start_offset)

        log_id, answer = await self._db.store.transact(work)
        if answer.refusal is not None:
            return answer
        # What a crash leaves here goes with the next segment of the log, or when retention looks at it.
        crash_point("controlplane.tiering.before_rows_go")
        pruned = await prune(self._db, log_id, answer.diskless_start_offset, is_urgent=False, is_converted=True)
        return answer._replace(rows_deleted=pruned.rows)

    async def _convert(self, tx: Transaction, log_id: int, log: DisklessLog) -> None:
        await tx.execute(
            self._db.sql["convert_log"],
            log_id,
            log.tiered_log_start_offset,
            log.tiered_high_offset,
            log.diskless_start_offset,
            log.migration_state.value,
        )

    async def abort_segment(
        self, partition: TopicIdPartition, segment_id: UUID, *, leader_epoch: LeaderEpoch
    ) -> Sequence[SegmentUpload]:
        async def work(tx: Transaction) -> list[SegmentUpload]:
            locked = await self._lock_uploads(tx, partition, segment_id)
            if locked is None or locked.upload is None or stale_leader(locked.upload, leader_epoch):
                return []
            aborted = []
            for upload in locked.uploads:
                if upload.base_offset < locked.upload.base_offset or upload.state is UploadState.FINISHING:
                    continue
                upload = replace(
                    upload, leader_epoch=max(upload.leader_epoch, leader_epoch), state=UploadState.ABORTING
                )
                await self._touch(tx, upload)
                aborted.append(upload)
            return aborted

        return await self._db.store.transact(work)

    async def forget_segment(self, partition: TopicIdPartition, segment_id: UUID) -> None:
        async def work(tx: Transaction) -> int:
            await tx.execute(self._db.sql["keep_given_up"], segment_id, await self._db.now_ms(tx) + LATE_MS)
            return await tx.execute(self._db.sql["forget_upload"], segment_id, partition.topic_id, partition.partition)

        await self._db.store.transact(work)

    async def segment_uploads(self, partitions: Collection[TopicIdPartition]) -> Sequence[SegmentUpload]:
        if not partitions:
            return []
        found = await self._db.store.read(lambda tx: uploads_of(self._db, tx, list(partitions)))
        return [upload for uploads in found.values() for upload in uploads]

    async def converted_logs(self) -> Sequence[DisklessLog]:
        async def work(tx: Transaction) -> list[Row]:
            return await tx.fetch(self._db.sql["converted_logs"])

        return [named_log(self._db, row) for row in await self._db.store.read(work)]

    async def conversion_ended(self, partition: TopicIdPartition, *, leader_epoch: LeaderEpoch) -> None:
        async def work(tx: Transaction) -> None:
            locked = await self._lock_uploads(tx, partition)
            if locked is None or locked.uploads or leader_epoch < locked.log.diskless_log_start_epoch:
                return
            log = locked.log
            if log.migration_state is MigrationState.HYBRID and log.log_start_offset >= log.diskless_start_offset:
                await tx.execute(self._db.sql["end_conversion"], locked.log_id)
                tx.notify(MIGRATION_CHANNEL)

        await self._db.store.transact(work)

    # Rows

    async def _lock_uploads(
        self, tx: Transaction, partition: TopicIdPartition, segment_id: UUID | None = None
    ) -> _LockedUploads | None:
        """A log that exists and has a B0, locked, with its uploads, which change only under that lock."""
        found = (await lock_logs(self._db, tx, [partition])).get(0)
        if found is None or found.is_deleted or found.log.diskless_log_start_offset < 0:
            return None
        uploads = (await uploads_of(self._db, tx, [partition]))[partition]
        upload = next((upload for upload in uploads if upload.segment_id == segment_id), None)
        return _LockedUploads(found.log_id, found.log, uploads, upload)

    async def _touch(self, tx: Transaction, upload: SegmentUpload) -> None:
        await tx.execute(
            self._db.sql["touch_upload"],
            upload.segment_id,
            upload.leader_epoch,
            upload.state.value,
            upload.expires_at_ms,
            None if upload.custom_metadata is None else upload.custom_metadata.hex(),
        )


def _range(upload: SegmentUpload) -> tuple[Offset, Offset]:
    return upload.base_offset, upload.last_offset


def _unknown(partition: TopicIdPartition, segment_id: UUID) -> str:
    return (
        f"Segment {uuid_to_text(segment_id)} of {partition.topic_partition} is not under way: it was aborted, is "
        f"committed, or is another claimant's."
    )
