"""One read of several partitions that memory alone cannot answer: find rows, load blocks, share the bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

from strandline.controlplane import (
    AbortedRange,
    BatchReads,
    BatchRow,
    FindBatches,
    FoundAborted,
    FoundBatches,
    Refusal,
)
from strandline.diskless.reader.aborts import MOST_RANGES, overlapping
from strandline.diskless.reader.blocks import Block
from strandline.diskless.reader.loading import BlockLoader
from strandline.diskless.reader.pieces import LoadedPiece, WantedRow
from strandline.diskless.reader.runs import Run, take_fairly
from strandline.diskless.reader.tail import AskedTail, Tail
from strandline.diskless.reader.tails import Tails
from strandline.diskless.values import (
    BelowReadBoundary,
    DisklessRead,
    MemorySlices,
    WalObjectGone,
    WalObjectUnreadable,
)
from strandline.errors import KafkaStorageError, NotLeaderOrFollower, OffsetOutOfRange, StrandlineError
from strandline.model import INT64_MAX, Offset, TopicIdPartition
from strandline.reads import AbortedTransaction, FetchIsolation, ReadResult
from strandline.records import fair_shares
from strandline.sql import SqlError

_ABORTED_AT_ONCE: Final = 1000


class RowsGone(KafkaStorageError):
    """Rows are missing between others: they may have been converted meanwhile, or they are lost."""


class DisklessPartitionRead:
    """One partition of a read, from the request to its result."""

    __slots__ = ("_pieces", "aborted", "error", "request", "rows", "run", "tail")

    def __init__(self, request: DisklessRead, tail: Tail) -> None:
        self.request, self.tail = request, tail
        self.run = Run(request.offset, request.max_bytes, until=self.until)
        self.rows: Sequence[BatchRow] = ()
        self.error: StrandlineError | None = None
        """Why there are no records, or no more. Records before it are valid."""
        self._pieces: list[Block | WantedRow] = []
        self.aborted: Sequence[AbortedTransaction] = ()

    @property
    def until(self) -> Offset:
        """Where the records end that the reader may see, as far as is known. Of others than committed ones: never."""
        return self.tail.stable_end if self.is_committed else INT64_MAX

    @property
    def is_committed(self) -> bool:
        """Whether the reader wants to see committed records only."""
        return self.request.isolation is FetchIsolation.TXN_COMMITTED

    @property
    def wants_rows(self) -> bool:
        """Whether the control plane has to be asked."""
        run, end = self.run, end_of(self.tail, self.request.isolation)
        return run.end == self.request.offset or (run.available < run.limit and run.end < end)

    @property
    def wanted_bytes(self) -> int:
        """Bytes that this partition could return, as far as is known."""
        return min(self.run.limit, self.run.available + sum(row.byte_size for row in self.rows))

    def choose(self, share: int, max_rows: int) -> list[WantedRow]:
        """Decide what follows the run until there is enough for `share`; the rows that have to be loaded for it."""
        offset, size = self.run.end, self.run.available
        self.run.until = until = self.until  # more may be known to be stable by now
        missing: list[WantedRow] = []
        for row in self.rows:
            while offset <= row.last_offset and offset < until and not (size and size >= share):
                block = self.tail.blocks.holding(offset)
                if block is not None:
                    self._pieces.append(block)
                    size += block.size
                    offset = block.last_offset + 1
                    continue
                if row.base_offset > offset:
                    self.error = _gap(offset, row)
                    return missing
                if len(missing) == max_rows:
                    return missing
                wanted = WantedRow(row, self.tail.blocks)
                self._pieces.append(wanted)
                missing.append(wanted)
                size += row.byte_size
                offset = row.last_offset + 1
        return missing

    def gather(self, loaded: dict[WantedRow, asyncio.Future[LoadedPiece]]) -> None:
        """Add the chosen blocks to the run, up to the first that could not be loaded."""
        for piece in self._pieces:
            if isinstance(piece, Block):
                self.run.gather(piece)
                continue
            outcome = loaded[piece].result().of(piece.row)
            if isinstance(outcome, Block):
                self.run.gather(outcome)
            elif isinstance(outcome, StrandlineError):
                self.error = outcome
                return
            else:
                raise outcome

    @property
    def has_lost_rows(self) -> bool:
        """Whether there is nothing to send, because rows that were found, or their objects, are gone."""
        return isinstance(self.error, WalObjectGone | RowsGone) and not self.run.available

    def refuse(self, error: StrandlineError) -> None:
        """Answer with an error, and without the records that were gathered."""
        self.error = error
        self.run = Run(self.request.offset, self.request.max_bytes)

    def answer(self) -> ReadResult | StrandlineError:
        """What the caller gets."""
        if self.error is not None and not self.run.available:
            return self.error
        return result_of(self.run.taken(), self.tail, self.request.isolation, self.aborted)


class Reading:
    """Answers reads from memory, database and object store."""

    def __init__(self, batches: BatchReads, tails: Tails, loader: BlockLoader, *, max_rows: int) -> None:
        self._batches, self._tails, self._loader, self._max_rows = batches, tails, loader, max_rows
        self.queries = 0

    async def read(self, requests: Sequence[DisklessRead], max_bytes: int) -> list[DisklessPartitionRead]:
        """One finished read for each request, in their order."""
        reads = [DisklessPartitionRead(request, self._tails.of(request.partition)) for request in requests]
        for read in reads:
            read.run.gather_from(read.tail.blocks)
        joined = await self._join(reads)
        # What is in memory is confirmed, and then sent without more: a database that hangs must not hold it up.
        outdated = {read for read in reads if read.run.available and self._tails.is_outdated(read.tail)}
        unknown = [read for read in reads if read.wants_rows and read not in outdated and read not in joined]
        if outdated:
            await self._tails.confirm(read.tail for read in outdated)
        if unknown:
            await self._find(unknown, max_bytes)
            await self._load(unknown, reads, max_bytes)
            lost = [read for read in unknown if read.has_lost_rows]
            if lost:
                await self._look_again(lost)
        for read in reads:
            self._check(read)
        take_fairly([read.run for read in reads], max_bytes)
        for read in reads:
            if read.is_committed and read.run.length:
                await self._add_aborted(read)
        return reads

    async def _join(self, reads: Sequence[DisklessPartitionRead]) -> set[DisklessPartitionRead]:
        """Wait for what is loaded already, ahead of its reader or for another one: the reads that got an answer so.

        They are answered as if they had come a moment later, when the records were in memory: without a query. If the
        store did not give them, that is the answer: to wait for the same once more would take longer than clients wait.
        """
        waiting = {
            read: future
            for read in reads
            if not read.run.available and (future := self._loader.under_way(read.tail.blocks, read.run.end)) is not None
        }
        if waiting:
            await asyncio.wait({*waiting.values()})
        for read, future in waiting.items():
            read.run.gather_from(read.tail.blocks)
            if not read.run.available:
                read.error = _why_unreadable(future)
        return {read for read in waiting if read.run.available or read.error is not None}

    async def _add_aborted(self, read: DisklessPartitionRead) -> None:
        """Find the aborted transactions that overlap what was taken. Without them it must not be sent."""
        offset, end, tail = read.request.offset, read.run.next_offset, read.tail
        try:
            ranges, known_from = await self.aborted(tail, offset, end)
        except KafkaStorageError as error:
            read.refuse(error)
            return
        if known_from > offset:
            # What was in memory has left the rows meanwhile, with its aborted transactions.
            read.refuse(
                BelowReadBoundary(
                    f"Offset {offset} of {tail.partition.topic_partition} is not in rows any more, which begin at "
                    f"{known_from}: read it again."
                )
            )
            return
        read.aborted = overlapping(ranges, offset, end)

    async def aborted(self, tail: Tail, offset: Offset, end: Offset) -> FoundAborted:
        """Those with markers at `offset` or later, as far as a reader of the records below `end` needs them.

        Raises KafkaStorageError.
        """
        if tail.aborts.covers(offset):
            return FoundAborted(tuple(tail.aborts.ending_from(offset)), offset)
        found: list[AbortedRange] = []
        at, known_end, known_from = offset, tail.aborts.end, offset
        while True:
            self.queries += 1
            try:
                answer = await self._batches.aborted_transactions(
                    tail.partition, from_offset=at, limit=_ABORTED_AT_ONCE
                )
            except SqlError as error:
                raise KafkaStorageError(f"The control plane cannot be queried for transactions: {error}") from error
            page = answer.ranges
            found += page
            known_from = max(known_from, answer.known_from)
            is_all = len(page) < _ABORTED_AT_ONCE
            if is_all and known_from <= offset and len(found) <= MOST_RANGES:
                tail.aborts.loaded(offset, found, known_end)
            if is_all or page[-1].last_stable_offset >= end:
                return FoundAborted(tuple(found), known_from)
            at = page[-1].last_offset + 1

    async def _find(self, reads: Sequence[DisklessPartitionRead], max_bytes: int) -> None:
        news = self._tails.news
        asked = [self._tails.asked(read.tail) for read in reads]
        self.queries += 1
        try:
            answers = await self._batches.find_batches(
                [FindBatches(read.request.partition, read.run.end, min(read.run.limit, max_bytes)) for read in reads],
                max_rows=min(self._max_rows, self._rows_for_each(reads)),
            )
        except SqlError as error:
            for read in reads:
                read.error = KafkaStorageError(f"The control plane cannot be queried for batches: {error}")
            return
        for read, one, found in zip(reads, asked, answers, strict=True):
            self._take_in(read, one, found, news)

    def _rows_for_each(self, reads: Sequence[DisklessPartitionRead]) -> int:
        return max(self._loader.rows_at_once // len(reads), 1)

    async def refresh(self, partitions: Collection[TopicIdPartition]) -> None:
        """Ask for the offsets of some logs. If the database does not answer, nothing new is known."""
        asked = {partition: self._tails.asked(self._tails.of(partition)) for partition in partitions}
        self.queries += 1
        try:
            logs = await self._batches.logs(asked)
        except SqlError:
            return
        for partition, one in asked.items():
            log = logs.get(partition)
            if log is None:
                self._tails.forget(partition)
            else:
                self._tails.answered(one, log)

    async def _look_again(self, reads: Sequence[DisklessPartitionRead]) -> None:
        """Rows and objects go when their records are converted or deleted: then that is the answer, and no error."""
        asked = [self._tails.asked(read.tail) for read in reads]
        news = self._tails.news
        self.queries += 1
        try:
            answers = await self._batches.find_batches(
                [FindBatches(read.request.partition, read.run.end, 1) for read in reads], max_rows=1
            )
        except SqlError:
            return  # the read has an error already, upon which clients try again
        for read, one, found in zip(reads, asked, answers, strict=True):
            if found.refusal is not None:
                self._take_in(read, one, found, news)

    def _take_in(self, read: DisklessPartitionRead, asked: AskedTail, found: FoundBatches, news: int) -> None:
        if found.refusal is Refusal.UNKNOWN_LOG:
            self._tails.forget(read.request.partition)
            read.refuse(
                NotLeaderOrFollower(
                    f"{read.request.partition.topic_partition} has no diskless log in the control plane (yet)."
                )
            )
            return
        self._tails.answered(asked, found)
        if found.refusal is None:
            read.rows = found.rows
            read.tail.news_seen = news
            self._tails.found(found.rows)
        elif found.refusal is Refusal.IN_PREFIX:
            read.error = BelowReadBoundary(
                f"Offset {read.run.end} of {read.request.partition.topic_partition} was written before the topic "
                "became diskless: ask the leader."
            )
        else:
            read.error = OffsetOutOfRange(
                f"Offset {read.run.end} is not between {found.log_start_offset} and {found.high_watermark}."
            )

    def _check(self, read: DisklessPartitionRead) -> None:
        """Refuse what must not be sent any more: it was deleted or lost during the read."""
        offset, tail = read.request.offset, read.tail
        if tail.is_replaced and (read.error is None or read.run.available):
            read.refuse(
                KafkaStorageError(f"{tail.partition.topic_partition} has changed during the read, read it again.")
            )
        elif offset < tail.log_start_offset:
            read.refuse(
                OffsetOutOfRange(f"Offset {offset} is not between {tail.log_start_offset} and {tail.high_watermark}.")
            )

    async def _load(
        self, found: Sequence[DisklessPartitionRead], reads: Sequence[DisklessPartitionRead], max_bytes: int
    ) -> None:
        """Load what can be part of the answer: not more than twice its size, since the rest would have to wait."""
        shares = dict(zip(reads, fair_shares([read.wanted_bytes for read in reads], max_bytes), strict=True))
        max_rows = self._rows_for_each(found)
        wanted: list[WantedRow] = []
        size = 0
        for read in found:
            if size == 0 or size < 2 * max_bytes:
                missing = read.choose(shares[read], max_rows)
                wanted += missing
                size += sum(row.byte_size for row, _ in missing)
        futures = dict(zip(wanted, self._loader.load(wanted), strict=True))
        if futures:
            await asyncio.wait(set(futures.values()))
        for read in found:
            read.gather(futures)


def _why_unreadable(ended: asyncio.Future[LoadedPiece]) -> WalObjectUnreadable | None:
    if ended.cancelled() or ended.exception() is not None:
        return None
    outcome = ended.result().first
    return outcome if isinstance(outcome, WalObjectUnreadable) else None


def end_of(tail: Tail, isolation: FetchIsolation) -> Offset:
    """Where the records end that a reader may see, as far as is known."""
    return tail.stable_end if isolation is FetchIsolation.TXN_COMMITTED else tail.high_watermark


def result_of(
    records: MemorySlices | None, tail: Tail, isolation: FetchIsolation, aborted: Sequence[AbortedTransaction]
) -> ReadResult:
    """The answer of a read."""
    told = list(aborted) if isolation is FetchIsolation.TXN_COMMITTED else None
    return ReadResult(records, tail.high_watermark, tail.last_stable_offset, tail.log_start_offset, told)


def _gap(offset: Offset, row: BatchRow) -> RowsGone:
    return RowsGone(
        f"The control plane has no batches for the offsets {offset} to {row.base_offset - 1}, although it has later "
        "ones. `strandline fsck` finds all missing objects."
    )
