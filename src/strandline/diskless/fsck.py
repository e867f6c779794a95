"""Compares the object store with the control plane: finds objects that are missing, damaged, orphans or overdue.

Brokers may run meanwhile. The objects are listed first and the rows are read afterwards: an old object of the listing
that still has no row is an orphan, and the object of a row that is not in the listing is newer, or is looked for once
more. So an object that is just being written or deleted is never reported.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from strandline.controlplane import BatchRow, FileInspection, WalFile
from strandline.controlplane.conversion import ConvertedLogs, SplitRepair
from strandline.diskless.wal import DamagedObject, Footer, keys, read_footer, split_keys, verify_extent, verify_split
from strandline.diskless.wal.hours import HourlyKeys
from strandline.model import TimestampMs, TopicIdPartition, uuid_to_text
from strandline.objects import ObjectNotFound, ObjectStore
from strandline.objects.comparing import ComparisonReport, Progress, for_each, ignore_progress
from strandline.objects.comparing import Finding as Finding

_PAGE: Final = 1000
_KINDS: Final[tuple[HourlyKeys, ...]] = (keys, split_keys)


class WalFault(enum.StrEnum):
    """What is wrong with a WAL object, a split file or a segment under way."""

    MISSING = "missing"
    """Batches refer to the object, and it does not exist: their records are lost. Not those of a split file, which is
    made of a WAL object that still exists."""
    DAMAGED = "damaged"
    """Its bytes are not those that were written, or batches refer to bytes of other partitions."""
    ORPHAN = "orphan"
    """It has no row, and is too old to be an upload that waits for its commit."""
    OVERDUE = "overdue"
    """It was marked for deletion long ago and still exists: no cleaner runs, or it cannot delete."""
    STUCK = "stuck"
    """A segment of the tiering pipeline that was neither finished nor given up, long after its claim expired."""
    CONTRADICTION = "contradiction"
    """What the control plane knows of the transactions of a log does not fit together: readers of committed records may
    wait in vain, or not be told what was aborted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FsckReport(ComparisonReport):
    """What was compared, and the findings."""

    files: int
    marked_files: int
    """Files that wait for the file cleaner, which is normal."""
    split_files: int
    """Of the files: those that wait to be merged."""
    uploads: int
    """Segments of the tiering pipeline that are under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FsckOptions:
    """What to check, and whether to repair."""

    grace_ms: int
    """An object without a row is an orphan when it is older than this."""
    overdue_ms: int
    """A marked file is overdue when it was marked longer ago than this."""
    deep: bool = False
    """Read every byte and check every checksum and row, not only sizes and footers."""
    repair: bool = False
    """Delete orphans, and let split files that are missing or damaged be made anew."""
    broker_id: int = -1


@dataclass(slots=True)
class _WalTally:
    """Counts and findings so far."""

    objects: dict[str, tuple[int, TimestampMs]] = field(default_factory=dict)
    """Size and time of every WAL object in the listing that no row has claimed yet."""
    count: int = 0
    bytes: int = 0
    files: int = 0
    marked: int = 0
    splits: int = 0
    uploads: int = 0
    young: int = 0
    foreign: int = 0
    findings: list[Finding] = field(default_factory=list)


class Fsck:
    """One comparison. Changes nothing without `repair`."""

    def __init__(
        self,
        store: ObjectStore,
        options: FsckOptions,
        progress: Progress = ignore_progress,
        *,
        files: FileInspection,
        splits: SplitRepair,
        conversion: ConvertedLogs,
    ) -> None:
        self._store = store
        self._files, self._splits, self._conversion = files, splits, conversion
        self._options, self._progress = options, progress
        self._now_ms: TimestampMs = 0
        """The database's time when the present page of rows was read."""
        self._seen = _WalTally()

    async def run(self) -> FsckReport:
        """Compare. Raises SqlErrors and ObjectStoreErrors if the comparison cannot be completed."""
        seen = self._seen
        await self._list()
        async for page in self._pages():
            await self._check(page)
        await self._judge_unclaimed()
        await self._judge_uploads()
        for partition, sentence in (await self._files.wrong_transactions()).items():
            seen.findings.append(Finding(WalFault.CONTRADICTION, str(partition.topic_partition), 0, 0, sentence))
        return FsckReport(
            objects=seen.count,
            object_bytes=seen.bytes,
            files=seen.files,
            young_objects=seen.young,
            marked_files=seen.marked,
            foreign_objects=seen.foreign,
            split_files=seen.splits,
            uploads=seen.uploads,
            findings=tuple(sorted(seen.findings)),
        )

    async def _list(self) -> None:
        for kind in _KINDS:
            await self._list_kind(kind)

    async def _list_kind(self, kind: HourlyKeys) -> None:
        seen = self._seen
        async for item in self._store.list(kind.PREFIX):
            if kind.parse(item.key) is None:
                seen.foreign += 1
                continue
            seen.objects[item.key] = (item.size, item.modified_ms)
            seen.count += 1
            seen.bytes += item.size
            if seen.count % _PAGE == 0:
                self._progress("objects listed", seen.count)

    async def _pages(self) -> AsyncIterator[Sequence[WalFile]]:
        after = -1
        while page := await self._files.files_after(after, _PAGE):
            yield page
            after = page[-1].file_id

    async def _check(self, page: Sequence[WalFile]) -> None:
        self._now_ms = await self._files.now_ms()
        await for_each(page, self._check_file)
        self._seen.files += len(page)
        self._progress("files compared", self._seen.files)

    async def _check_file(self, file: WalFile) -> None:
        size, _ = self._seen.objects.pop(file.object_key, (None, 0))
        if file.marked_for_deletion_at_ms is not None:
            self._judge_marked(file, file.marked_for_deletion_at_ms, is_there=size is not None)
            return
        is_split = split_keys.parse(file.object_key) is not None
        self._seen.splits += is_split
        try:
            if is_split:
                await _check_split(self._store, file, listed_size=size, deep=self._options.deep)
            else:
                await _check_object(self._files, self._store, file, listed_size=size, deep=self._options.deep)
        except (ObjectNotFound, DamagedObject) as error:
            await self._judge_broken(file, error)

    def _judge_marked(self, file: WalFile, marked_ms: TimestampMs, *, is_there: bool) -> None:
        age_ms = self._now_ms - marked_ms
        if is_there and age_ms > self._options.overdue_ms:
            self._find(WalFault.OVERDUE, file, age_ms, "No batch refers to it, and it has not been deleted.")
        else:
            self._seen.marked += 1

    async def _judge_broken(self, file: WalFile, error: ObjectNotFound | DamagedObject) -> None:
        """Report the file, unless it was marked and deleted since its row was read."""
        now = await self._files.files_after(file.file_id - 1, 1)
        if not now or now[0].file_id != file.file_id or now[0].marked_for_deletion_at_ms is not None:
            self._seen.marked += 1
            return
        age_ms = self._now_ms - file.committed_at_ms
        if split_keys.parse(file.object_key) is not None:
            await self._judge_broken_split(file, age_ms, error)
        elif isinstance(error, ObjectNotFound):
            rows = await self._files.rows_of_file(file.file_id)
            self._find(WalFault.MISSING, file, age_ms, f"{len(rows)} rows of batches refer to it.")
        else:
            self._find(WalFault.DAMAGED, file, age_ms, str(error))

    async def _judge_broken_split(self, file: WalFile, age_ms: int, error: ObjectNotFound | DamagedObject) -> None:
        """Nothing is lost: the WAL object exists until the split file is part of a segment."""
        is_missing = isinstance(error, ObjectNotFound)
        kind = WalFault.MISSING if is_missing else WalFault.DAMAGED
        detail = "It waits to be merged." if is_missing else str(error)
        if self._options.repair and await self._splits.undo_splits([file.object_key]):
            finding = Finding(kind, file.object_key, file.size, age_ms, f"{detail} It will be made anew.", True)
            self._seen.findings.append(finding)
        else:
            self._find(kind, file, age_ms, f"{detail} Its records are in the WAL object that it is made of.")

    def _find(self, kind: WalFault, file: WalFile, age_ms: int, detail: str) -> None:
        self._seen.findings.append(Finding(kind, file.object_key, file.size, age_ms, detail))

    # Objects without a row

    async def _judge_unclaimed(self) -> None:
        now_ms = await self._files.now_ms()
        orphans: list[Finding] = []

        async def judge(item: tuple[str, tuple[int, TimestampMs]]) -> None:
            key, (size, modified_ms) = item
            if now_ms - modified_ms < self._options.grace_ms:
                self._seen.young += 1
            elif await self._is_there(key):
                orphans.append(
                    Finding(WalFault.ORPHAN, key, size, now_ms - modified_ms, "The control plane has no row for it.")
                )

        await for_each(self._seen.objects.items(), judge)
        for start in range(0, len(orphans), _PAGE):
            page = orphans[start : start + _PAGE]
            self._seen.findings += await self._repair(page) if self._options.repair else page

    async def _is_there(self, key: str) -> bool:
        """False if the object and its row were deleted since the listing."""
        try:
            await self._store.get_range(key, 0, 1)
        except ObjectNotFound:
            return False
        return True

    async def _repair(self, page: Sequence[Finding]) -> list[Finding]:
        """Mark, then delete: a late commit is refused. The file cleaner removes the rows."""
        by_key = {finding.key: finding for finding in page}
        taken = await self._files.take_orphans(list(by_key), broker_id=self._options.broker_id)
        await self._store.delete(taken)
        self._progress("orphans deleted", len(taken))
        # An object that was not marked has been committed since it was found: it is no orphan.
        return [by_key[key]._replace(detail="It was deleted.", is_repaired=True) for key in taken]

    # Segments under way

    async def _judge_uploads(self) -> None:
        logs = await self._conversion.converted_logs()
        uploads = await self._conversion.segment_uploads([log.partition for log in logs])
        now_ms = await self._files.now_ms()
        self._seen.uploads = len(uploads)
        for upload in uploads:
            age_ms = now_ms - upload.expires_at_ms
            if age_ms > self._options.overdue_ms:
                self._seen.findings.append(
                    Finding(
                        WalFault.STUCK,
                        f"{upload.partition.topic_partition} {uuid_to_text(upload.segment_id)}",
                        upload.size_bytes,
                        age_ms,
                        f"The segment of offsets {upload.base_offset} to {upload.last_offset} is {upload.state}.",
                    )
                )


async def _check_split(store: ObjectStore, file: WalFile, *, listed_size: int | None, deep: bool) -> None:
    """Check the size; if `deep`, also every byte. Raises ObjectNotFound or DamagedObject, and the store's errors."""
    key = split_keys.parse(file.object_key)
    assert key is not None
    if listed_size is not None and listed_size != file.size:
        raise DamagedObject(f"The object has {listed_size} bytes instead of {file.size}.")
    if listed_size is None or deep:
        data = await store.get_range(file.object_key, 0, file.size if deep else 1)
        if deep:
            verify_split(data, file.size, key.base_offset)


async def _check_object(
    files: FileInspection, store: ObjectStore, file: WalFile, *, listed_size: int | None, deep: bool
) -> None:
    """Check size and footer; if `deep`, also every byte, and that every row points to batches of its own partition.

    Raises ObjectNotFound or DamagedObject, and the errors of store and database.
    """
    if listed_size is not None and listed_size != file.size:
        raise DamagedObject(f"The object has {listed_size} bytes instead of {file.size}.")
    footer = await read_footer(store, file.object_key, file.size)
    if not deep:
        return
    for extent in footer.extents:
        verify_extent(extent, await store.get_range(file.object_key, extent.byte_offset, extent.byte_size))
    for partition, row in await files.rows_of_file(file.file_id):
        _check_row(footer, partition, row)


def _check_row(footer: Footer, partition: TopicIdPartition, row: BatchRow) -> None:
    end = row.byte_offset + row.byte_size
    for extent in footer.extents:
        if extent.byte_offset <= row.byte_offset and end <= extent.byte_end:
            if (extent.topic_id, extent.partition) == (partition.topic_id, partition.partition):
                return
            break
    raise DamagedObject(
        f"The row with offsets {row.base_offset} to {row.last_offset} of {partition} "
        f"refers to bytes {row.byte_offset} to {end}, which do not belong to this partition."
    )
