"""Claiming WAL files that are to be split, and recording their split files.

Claims keep claimants from doing the same work; they decide nothing. What counts are the rows: a split file counts if
all its rows are DISKLESS, and makes them SPLIT. Rows are locked in the order of log and offset, as in all transactions.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple
from uuid import UUID

from strandline.controlplane.conversion.rows import wishes_of
from strandline.controlplane.conversion.rules import Cutoff, UnsplitRow, cutoffs_of, planned_splits, rows_of_split
from strandline.controlplane.conversion.values import (
    ClaimWish,
    FileToSplit,
    GrantedClaims,
    HeldClaims,
    RowToSplit,
    SplitAnswer,
    SplitsToRecord,
    TieringRule,
    WrittenSplit,
)
from strandline.controlplane.database import Database
from strandline.controlplane.file_rows import find_files, take_orphans
from strandline.controlplane.pruning import mark_unused
from strandline.crash import crash_point
from strandline.model import INT64_MAX, Offset, TimestampMs, TopicIdPartition
from strandline.sql import Row, Transaction

_FILES_AT_ONCE: Final = 100
"""Files that one query looks at."""
_FILES_PER_CALL: Final = 2_000
"""Files that one call looks at, if it finds too few."""
NO_BROKER: Final = -1
_STALE: Final = "The object was taken as an orphan, or its batches were merged, before it was recorded."


class _Area(NamedTuple):
    """The files that a search looks at."""

    first_file_id: int
    committed_until_ms: TimestampMs


class _Candidate(NamedTuple):
    """A file, and whether the claimant may split it."""

    file_id: int
    object_key: str
    size: int
    committed_at_ms: TimestampMs
    is_free: bool


class _FileClaim(NamedTuple):
    """A WAL object of which something was split, and the claimant that has it now."""

    object_key: str
    file_id: int
    holder: str | None


class SqlSplitClaims:
    """See SplitClaims and SplitRepair."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def claim_wal_files_for_splitting(self, wish: ClaimWish, rules: Sequence[TieringRule]) -> GrantedClaims:
        now_ms, cutoffs = await self._db.store.read(lambda tx: self._cutoffs(tx, rules, wish.topics))
        area = await self._area(cutoffs)
        if area is None:
            return GrantedClaims(files=(), next_file_id=0)
        after = max(wish.after_file_id, area.first_file_id - 1)
        claimed: list[FileToSplit] = []
        looked_at, is_full, is_end = 0, False, False
        while not (is_full or is_end) and looked_at < _FILES_PER_CALL:
            page = await self._files_to_split(after, wish.claimant, now_ms)
            chosen, after = await self._choose(page, cutoffs, wish, claimed)
            claimed += await self._claim(chosen, cutoffs, wish)
            looked_at += len(page)
            is_full = bool(page) and after != page[-1].file_id
            # Not at the first file that is too young: ids are not quite in the order of time.
            is_end = not is_full and (
                len(page) < _FILES_AT_ONCE or min(file.committed_at_ms for file in page) > area.committed_until_ms
            )
        return GrantedClaims(files=tuple(claimed), next_file_id=0 if is_end else after)

    async def _cutoffs(
        self, tx: Transaction, rules: Sequence[TieringRule], topics: Collection[str]
    ) -> tuple[TimestampMs, list[Cutoff]]:
        now_ms = await self._db.now_ms(tx)
        cutoffs = cutoffs_of(rules, await wishes_of(self._db, tx), now_ms=now_ms)
        if topics and cutoffs:
            named = await self._db.fetch(tx, "logs_of_topics", [(cutoff.topic_id,) for cutoff in cutoffs], 1)
            wanted = {self._db.dialect.uuid(row[0]) for row in named if row[1] in topics}
            cutoffs = [cutoff for cutoff in cutoffs if cutoff.topic_id in wanted]
        return now_ms, cutoffs

    async def _area(self, cutoffs: Sequence[Cutoff]) -> _Area | None:
        """Where to search; None if there is nothing to split."""

        async def work(tx: Transaction) -> Row | None:
            return await tx.fetch_one(self._db.sql["first_file_to_split"], *self._db.dialect.bulk(cutoffs, 3))

        found = await self._db.store.read(work) if cutoffs else None
        if found is None or found[0] is None:
            return None
        newest = max(max(cutoff.older_than_ms, cutoff.committed_until_ms) for cutoff in cutoffs)
        return _Area(found[0], INT64_MAX if found[1] else newest)

    async def _files_to_split(self, after: int, claimant: str, now_ms: TimestampMs) -> list[_Candidate]:
        async def work(tx: Transaction) -> list[Row]:
            return await tx.fetch(self._db.sql["files_to_split"], after, _FILES_AT_ONCE, claimant, now_ms)

        return [_Candidate._make(row) for row in await self._db.store.read(work)]

    async def _choose(
        self, page: Sequence[_Candidate], cutoffs: Sequence[Cutoff], wish: ClaimWish, claimed: Sequence[FileToSplit]
    ) -> tuple[list[_Candidate], int]:
        """Files of a page to claim, and the last one that was looked at."""
        free = [(file.file_id,) for file in page if file.is_free]

        async def work(tx: Transaction) -> list[Row]:
            bulk = self._db.dialect.bulk
            return await tx.fetch(self._db.sql["eligible_rows_of_files"], *bulk(cutoffs, 3), *bulk(free, 1))

        counts: dict[int, int] = dict(await self._db.store.read(work)) if free and cutoffs else {}
        rows = sum(len(split.rows) for file in claimed for split in file.splits)
        chosen: list[_Candidate] = []
        after = 0
        for file in page:
            if count := counts.get(file.file_id, 0):
                found = len(claimed) + len(chosen)
                if found >= wish.max_files or (found and rows + count > wish.max_rows):
                    return chosen, after or file.file_id - 1
                chosen.append(file)
                rows += count
            after = file.file_id
        return chosen, after

    async def _claim(
        self, chosen: Sequence[_Candidate], cutoffs: Sequence[Cutoff], wish: ClaimWish
    ) -> list[FileToSplit]:
        """Claim the chosen files; returns those that no other claimant has claimed first."""

        async def work(tx: Transaction) -> list[FileToSplit]:
            now_ms = await self._db.now_ms(tx)
            bulk = self._db.dialect.bulk
            expires_at_ms = now_ms + wish.claim_ms
            keys = bulk([(file.object_key,) for file in chosen], 1)
            found = await tx.fetch(self._db.sql["claim_files"], wish.claimant, now_ms, expires_at_ms, *keys)
            won = {row[0] for row in found}
            if won:
                await tx.execute(self._db.sql["keep_split_run"], wish.claimant, now_ms, wish.claim_ms)
            ids = bulk([(file.file_id,) for file in chosen if file.object_key in won], 1)
            rows = await tx.fetch(self._db.sql["rows_to_split"], *bulk(cutoffs, 3), *ids)
            splits = {file_id: planned_splits([*of_file]) for file_id, of_file in self._planned(rows)}
            idle = [(file.object_key,) for file in chosen if file.object_key in won and file.file_id not in splits]
            await self._db.execute(tx, "release_claims", idle, 1, wish.claimant)
            return [
                FileToSplit(
                    file_id=file.file_id,
                    object_key=file.object_key,
                    size=file.size,
                    expires_at_ms=expires_at_ms,
                    splits=splits[file.file_id],
                )
                for file in chosen
                if file.object_key in won and file.file_id in splits
            ]

        return await self._db.store.transact(work) if chosen else []

    def _planned(self, rows: Sequence[Row]) -> Iterator[tuple[int, list[tuple[TopicIdPartition, RowToSplit]]]]:
        for file_id, of_file in groupby(rows, key=lambda row: row[0]):
            yield (
                file_id,
                [(self._db.partition_of(row[1], row[2], row[3]), RowToSplit._make(row[4:])) for row in of_file],
            )

    async def release_wal_file_claims(self, claimant: str, object_keys: Collection[str]) -> None:
        async def work(tx: Transaction) -> int:
            return await self._db.execute(tx, "release_claims", [(key,) for key in object_keys], 1, claimant)

        if object_keys:
            await self._db.store.transact(work)

    async def renew_claims(self, claimant: str, *, claim_ms: int) -> HeldClaims:
        async def work(tx: Transaction) -> HeldClaims:
            until_ms = await self._db.now_ms(tx) + claim_ms
            files = await tx.execute(self._db.sql["renew_file_claims"], claimant, until_ms)
            segments = await tx.execute(self._db.sql["renew_segment_claims"], claimant, until_ms)
            return HeldClaims(files=files, segments=segments)

        return await self._db.store.transact(work)

    # Recording

    async def record_splits(self, request: SplitsToRecord) -> SplitAnswer:
        return await self._db.store.transact(lambda tx: self._record_splits(tx, request))

    async def _record_splits(self, tx: Transaction, request: SplitsToRecord) -> SplitAnswer:
        now_ms = await self._db.now_ms(tx)
        by_key = {split.file.object_key: split for split in request.splits}
        files = await self._claims_of(tx, request.object_keys, now_ms)
        rivals = {file.file_id: file for file in files if file.holder not in (None, request.claimant)}
        # From here on no other transaction deletes the rows. Keys are looked up afterwards: an earlier attempt of the
        # same request has ended, or has recorded nothing yet.
        unsplit = await self._lock_unsplit(tx, files)
        known = await find_files(self._db, tx, by_key)
        refused = {key: _STALE for key, is_used in known.items() if not is_used}
        accepted: dict[str, list[UnsplitRow]] = {}
        for key, split in by_key.items():
            if key in known:
                continue
            found = rows_of_split(split, unsplit)
            if isinstance(found, str):
                refused[key] = found
            elif rival := next((rivals[row.file_id] for row in found if row.file_id in rivals), None):
                refused[key] = f"The WAL object {rival.object_key} is claimed by {rival.holder}."
            else:
                accepted[key] = found
                for row in found:
                    del unsplit[split.partition.topic_id, split.partition.partition][row.base_offset]
        refused |= await self._write_splits(tx, request.claimant, accepted, by_key, now_ms)
        # Those that are refused become the file cleaner's, and stay refused.
        if refused:
            await take_orphans(self._db, tx, refused, broker_id=NO_BROKER, now_ms=now_ms)
        left = {row.file_id for rows in unsplit.values() for row in rows.values()}
        left |= {row.file_id for key, rows in accepted.items() if key in refused for row in rows}
        await self._settle_claims(tx, request, [file for file in files if file.file_id not in left], now_ms)
        crash_point("controlplane.tiering.before_record_commit")
        unfinished = {file.object_key for file in files if file.file_id in left}
        return SplitAnswer(
            refused=refused, files_done=tuple(key for key in request.object_keys if key not in unfinished)
        )

    async def _claims_of(self, tx: Transaction, object_keys: Collection[str], now_ms: TimestampMs) -> list[_FileClaim]:
        keys = self._db.dialect.bulk([(key,) for key in object_keys], 1)
        return [_FileClaim._make(row) for row in await tx.fetch(self._db.sql["claims_of_files"], now_ms, *keys)]

    async def _lock_unsplit(
        self, tx: Transaction, files: Iterable[_FileClaim]
    ) -> dict[tuple[UUID, int], dict[Offset, UnsplitRow]]:
        unsplit: dict[tuple[UUID, int], dict[Offset, UnsplitRow]] = {}
        ids = self._db.dialect.bulk([(file.file_id,) for file in files], 1)
        for topic_id, partition, *columns in await tx.fetch(self._db.sql["lock_unsplit_rows"], *ids):
            row = UnsplitRow._make(columns)
            unsplit.setdefault((self._db.dialect.uuid(topic_id), partition), {})[row.base_offset] = row
        return unsplit

    async def _write_splits(
        self,
        tx: Transaction,
        claimant: str,
        accepted: Mapping[str, Sequence[UnsplitRow]],
        splits: Mapping[str, WrittenSplit],
        now_ms: TimestampMs,
    ) -> dict[str, str]:
        """Returns those whose objects were taken as orphans at this moment."""
        if not accepted:
            return {}
        files = [(key, splits[key].file.size_bytes) for key in accepted]
        file_ids: dict[str, int] = dict(
            await tx.fetch(self._db.sql["add_split_files"], now_ms, *self._db.dialect.bulk(files, 2))
        )
        rows = [(row.log_id, row.last_offset) for key in accepted if key in file_ids for row in accepted[key]]
        await self._db.execute(tx, "mark_rows_split", rows, 2)
        columns = [
            _columns(splits[key], file_ids[key], max(row.committed_at_ms for row in accepted[key]))
            for key in accepted
            if key in file_ids
        ]
        await self._db.execute(tx, "add_splits", columns, 11, now_ms, claimant)
        return {key: _STALE for key in accepted if key not in file_ids}

    async def _settle_claims(
        self, tx: Transaction, request: SplitsToRecord, done: Sequence[_FileClaim], now_ms: TimestampMs
    ) -> None:
        """Others may claim the rest of a file once it is eligible; a file that is done is never looked at again."""
        await self._db.execute(
            tx, "complete_claims", [(file.object_key,) for file in done], 1, request.claimant, now_ms
        )
        left = set(request.object_keys).difference(file.object_key for file in done)
        await self._db.execute(tx, "release_claims", [(key,) for key in sorted(left)], 1, request.claimant)

    async def undo_splits(self, object_keys: Collection[str]) -> Sequence[str]:
        async def work(tx: Transaction) -> list[str]:
            keys = self._db.dialect.bulk([(key,) for key in object_keys], 1)
            undone, wal_files, split_files = [], set(), []
            for key, file_id, *where in await tx.fetch(self._db.sql["undo_splits"], *keys):
                wal_files |= {row[0] for row in await tx.fetch(self._db.sql["unsplit_rows"], *where)}
                undone.append(key)
                split_files.append(file_id)
            await self._db.execute(tx, "reopen_claims", [(file_id,) for file_id in wal_files], 1)
            await mark_unused(self._db, tx, split_files)
            return undone

        return await self._db.store.transact(work) if object_keys else []


def _columns(split: WrittenSplit, file_id: int, committed_at_ms: TimestampMs) -> tuple[object, ...]:
    """A row of inkless_split_batch, in the order of the statement."""
    (topic_id, (_, number)), file = split
    return (
        topic_id,
        number,
        file.base_offset,
        file.last_offset,
        file.object_key,
        file_id,
        file.size_bytes,
        file.batch_count,
        file.max_timestamp,
        json.dumps(file.leader_epochs, separators=(",", ":")),
        committed_at_ms,
    )
