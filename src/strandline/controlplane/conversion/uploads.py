"""Segments on their way into a log: who uploads what, and the transaction that moves the read boundary.

Everything about a log is judged while its row is locked. The rows that a segment replaces are deleted afterwards, in
short transactions: rows below the read boundary are not read any more, and commits do not wait for their deletion.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple
from uuid import UUID

from strandline.controlplane.conversion.rules import (
    dense_splits,
    is_mergeable,
    is_next_to_finish,
    judge_commit,
    next_segment_offset,
    stale_leader,
    with_segment,
)
from strandline.controlplane.conversion.values import (
    LogSplits,
    PendingSplit,
    SegmentCommit,
    SegmentUpload,
    SplitObject,
    TopicTiering,
    UploadAnswer,
    UploadState,
)
from strandline.controlplane.conversion.wishes import SqlTieringWishes
from strandline.controlplane.database import MIGRATION_CHANNEL, TRIM_CHANNEL, numbered
from strandline.controlplane.log_locks import LogLocks
from strandline.controlplane.reads import diskless_log, pending_split
from strandline.controlplane.trimming import SqlPruning
from strandline.controlplane.values import DisklessLog, MigrationState, Refusal
from strandline.crash import crash_point
from strandline.model import (
    INT32_MAX,
    INT64_MAX,
    LeaderEpoch,
    Offset,
    TimestampMs,
    TopicIdPartition,
    TopicPartition,
    uuid_to_text,
)
from strandline.sql import Row, Transaction

_LOGS_AT_ONCE: Final = 128
_SPLITS_AT_ONCE: Final = 2_000
"""About as many split files are read at once, from at most so many logs."""
_UNKNOWN_LOG: Final = "This topic or partition is unknown, was deleted, or is not diskless."


class _LockedUploads(NamedTuple):
    """A log, its uploads in the order of their offsets, and the one that is asked for."""

    log_id: int
    log: DisklessLog
    uploads: list[SegmentUpload]
    upload: SegmentUpload | None


class SqlSegmentUploads(LogLocks, SqlPruning, SqlTieringWishes):
    """See SegmentUploads."""

    async def mergeable_splits(self, topic_ids: Collection[UUID], *, max_splits: int) -> Sequence[LogSplits]:
        async def work(
            tx: Transaction,
        ) -> tuple[TimestampMs, dict[UUID, TopicTiering], list[tuple[DisklessLog, Offset]]]:
            now_ms, wishes = await self._now_ms(tx), await self._wishes(tx)
            found = await self._fetch(tx, "logs_with_splits", [(topic_id,) for topic_id in topic_ids], 1)
            logs = [log for log in self._logs_of(found) if is_mergeable(log) and not _is_paused(log, wishes)]
            uploads = await self._uploads(tx, [log.partition for log in logs])
            return now_ms, wishes, [(log, next_segment_offset(log, uploads[log.partition])) for log in logs]

        if not topic_ids:
            return []
        now_ms, wishes, logs = await self._store.read(work)
        answer: list[LogSplits] = []
        # In pages: there may be thousands of split files in each of thousands of logs, and others have to run in
        # between. What changes between two pages is found out when a segment begins.
        first, size = 0, 1
        while page := logs[first : first + size]:
            splits = await self._splits_of(page, max_splits)
            for log, start in page:
                if dense := dense_splits(splits[log.partition], start):
                    tiering, offset = wishes.get(log.partition.topic_id, TopicTiering()), dense[0].file.base_offset
                    found = LogSplits(log=log, tiering=tiering, splits=dense, next_upload_offset=offset, now_ms=now_ms)
                    answer.append(found)
            first += size
            is_light = sum(map(len, splits.values())) < _SPLITS_AT_ONCE
            size = min(2 * size, _LOGS_AT_ONCE) if is_light else max(size // 2, 1)
        return answer

    async def _splits_of(
        self, logs: Sequence[tuple[DisklessLog, Offset]], limit: int
    ) -> dict[TopicIdPartition, list[PendingSplit]]:
        return await self._store.read(lambda tx: self._splits(tx, logs, limit))

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
                expires_at_ms=await self._now_ms(tx) + claim_ms,
            )
            return await self._begin(tx, locked, upload)

        return await self._store.transact(work)

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
        found = await self._splits(tx, [(locked.log, start)], INT32_MAX, until=upload.last_offset)
        splits = found[upload.partition]
        files = [split.file for split in dense_splits(splits, start) if split.file.last_offset <= upload.last_offset]
        if earlier:
            begun = replace(earlier[0], leader_epoch=upload.leader_epoch, expires_at_ms=upload.expires_at_ms)
            await self._touch(tx, begun)
            return UploadAnswer(None, begun, tuple(files))
        if message := await self._reason_to_wait(tx, locked.log, upload, files):
            return UploadAnswer(Refusal.NOT_MERGEABLE, message=message)
        upload = replace(upload, size_bytes=sum(file.size_bytes for file in files))
        now_ms = await self._now_ms(tx)
        await tx.execute(self._sql["add_upload"], upload.segment_id, *_columns(upload), now_ms)
        return UploadAnswer(None, upload, tuple(files))

    async def _reason_to_wait(
        self, tx: Transaction, log: DisklessLog, upload: SegmentUpload, files: Sequence[SplitObject]
    ) -> str:
        """Why the segment cannot begin, if its split files are these; empty if it can."""
        where = f"{upload.partition.topic_partition}"
        if _is_paused(log, await self._wishes(tx)):
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

        return await self._store.transact(work)

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
            await tx.execute(self._sql["drop_upload"], segment_id)
            tx.notify(TRIM_CHANNEL)
            if after.migration_state is not log.migration_state:
                tx.notify(MIGRATION_CHANNEL)
            crash_point("controlplane.tiering.before_segment_commit")
            return locked.log_id, SegmentCommit(None, after.diskless_start_offset)

        log_id, answer = await self._store.transact(work)
        if answer.refusal is not None:
            return answer
        # What a crash leaves here goes with the next segment of the log, or when retention looks at it.
        crash_point("controlplane.tiering.before_rows_go")
        pruned = await self._prune(log_id, answer.diskless_start_offset, is_urgent=False, is_converted=True)
        return answer._replace(rows_deleted=pruned.rows)

    async def _convert(self, tx: Transaction, log_id: int, log: DisklessLog) -> None:
        await tx.execute(
            self._sql["convert_log"],
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

        return await self._store.transact(work)

    async def segment_uploads(self, partitions: Collection[TopicIdPartition]) -> Sequence[SegmentUpload]:
        found = await self._store.read(lambda tx: self._uploads(tx, list(partitions))) if partitions else {}
        return [upload for uploads in found.values() for upload in uploads]

    async def converted_logs(self) -> Sequence[DisklessLog]:
        async def work(tx: Transaction) -> list[Row]:
            return await tx.fetch(self._sql["converted_logs"])

        return [*self._logs_of(await self._store.read(work))]

    async def conversion_ended(self, partition: TopicIdPartition, *, leader_epoch: LeaderEpoch) -> None:
        async def work(tx: Transaction) -> None:
            locked = await self._lock_uploads(tx, partition)
            if locked is None or locked.uploads or leader_epoch < locked.log.diskless_log_start_epoch:
                return
            log = locked.log
            if log.migration_state is MigrationState.HYBRID and log.log_start_offset >= log.diskless_start_offset:
                await tx.execute(self._sql["end_conversion"], locked.log_id)
                tx.notify(MIGRATION_CHANNEL)

        await self._store.transact(work)

    # Rows

    async def _lock_uploads(
        self, tx: Transaction, partition: TopicIdPartition, segment_id: UUID | None = None
    ) -> _LockedUploads | None:
        """A log that exists and has a B0, locked, with its uploads, which nobody changes without that lock."""
        found = (await self._lock(tx, [partition])).get(0)
        if found is None or found.is_deleted or found.log.diskless_log_start_offset < 0:
            return None
        uploads = (await self._uploads(tx, [partition]))[partition]
        upload = next((upload for upload in uploads if upload.segment_id == segment_id), None)
        return _LockedUploads(found.log_id, found.log, uploads, upload)

    async def _uploads(
        self, tx: Transaction, partitions: Sequence[TopicIdPartition]
    ) -> dict[TopicIdPartition, list[SegmentUpload]]:
        uploads: dict[TopicIdPartition, list[SegmentUpload]] = {partition: [] for partition in partitions}
        for number, segment_id, base, last, size, claimant, epoch, state, expires, custom in await self._fetch(
            tx, "uploads_of_logs", numbered(partitions), 3
        ):
            partition = partitions[number]
            uploads[partition].append(
                SegmentUpload(
                    partition=partition,
                    segment_id=self._dialect.uuid(segment_id),
                    base_offset=base,
                    last_offset=last,
                    size_bytes=size,
                    claimant=claimant,
                    leader_epoch=epoch,
                    state=UploadState(state),
                    expires_at_ms=expires,
                    custom_metadata=None if custom is None else bytes.fromhex(custom),
                )
            )
        return uploads

    async def _splits(
        self,
        tx: Transaction,
        logs: Sequence[tuple[DisklessLog, Offset]],
        limit: int,
        *,
        until: Offset = INT64_MAX,
    ) -> dict[TopicIdPartition, list[PendingSplit]]:
        """Split files of some logs that are not in segments and end at an offset or later, at most `limit` of each."""
        splits: dict[TopicIdPartition, list[PendingSplit]] = {log.partition: [] for log, _ in logs}
        rows = [
            (number, log.partition.topic_id, log.partition.partition, log.diskless_start_offset, start)
            for number, (log, start) in enumerate(logs)
        ]
        for number, *columns in await self._fetch(tx, "splits_of_logs", rows, 5, limit, until):
            splits[logs[number][0].partition].append(pending_split(columns))
        return splits

    def _logs_of(self, rows: Sequence[Row]) -> Iterator[DisklessLog]:
        for row in rows:
            partition = TopicIdPartition(self._dialect.uuid(row[0]), TopicPartition(row[1], row[2]))
            yield diskless_log(partition, row[3:])

    async def _touch(self, tx: Transaction, upload: SegmentUpload) -> None:
        await tx.execute(
            self._sql["touch_upload"],
            upload.segment_id,
            upload.leader_epoch,
            upload.state.value,
            upload.expires_at_ms,
            None if upload.custom_metadata is None else upload.custom_metadata.hex(),
        )


def _columns(upload: SegmentUpload) -> tuple[object, ...]:
    """Of a new upload, in the order of the statement, behind its id."""
    return (
        upload.partition.topic_id,
        upload.partition.partition,
        upload.base_offset,
        upload.last_offset,
        upload.size_bytes,
        upload.claimant,
        upload.leader_epoch,
        upload.state.value,
        upload.expires_at_ms,
    )


def _range(upload: SegmentUpload) -> tuple[Offset, Offset]:
    return upload.base_offset, upload.last_offset


def _is_paused(log: DisklessLog, wishes: Mapping[UUID, TopicTiering]) -> bool:
    return wishes.get(log.partition.topic_id, TopicTiering()).is_paused


def _unknown(partition: TopicIdPartition, segment_id: UUID) -> str:
    return (
        f"Segment {uuid_to_text(segment_id)} of {partition.topic_partition} is not under way: it was aborted, is "
        f"committed, or is another claimant's."
    )
