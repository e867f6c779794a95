"""Aborted transactions of remote reads: from the transaction indexes of the segment that was read and of those after
it, remote and local, until one says that nothing earlier was undecided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from strandline.log.transaction_index import AbortedTxn
from strandline.model import Offset
from strandline.reads import AbortedTransaction
from strandline.remote.indexes import RemoteIndexCache, SegmentAbortedTransactions
from strandline.remote.ports import RemoteStorageError
from strandline.remote.reader.errors import RemoteReadErrors
from strandline.remote.reader.finding import SegmentFinder
from strandline.remote.reader.log import ReadableLog
from strandline.remote.values import RemoteLogSegmentMetadata


class AbortedTransactionFinder:
    """Finds them. Whatever is kept of the transaction indexes, the index cache keeps."""

    def __init__(self, indexes: RemoteIndexCache, finder: SegmentFinder, errors: RemoteReadErrors) -> None:
        self._indexes, self._finder, self._errors = indexes, finder, errors

    def now(
        self, log: ReadableLog, segment: RemoteLogSegmentMetadata, offset: Offset, upper: Offset
    ) -> list[AbortedTransaction] | None:
        """Those that overlap [offset, upper), which was read from `segment`; None if an index has to be asked for."""
        found = self._collect(log, segment, offset, upper, {})
        return found if isinstance(found, list) else None

    async def find(
        self, log: ReadableLog, segment: RemoteLogSegmentMetadata, offset: Offset, upper: Offset
    ) -> list[AbortedTransaction]:
        """The same, asking where need be. Raises KafkaStorageError."""
        asked: dict[UUID, SegmentAbortedTransactions] = {}  # there may be more of them than are kept
        while not isinstance(found := self._collect(log, segment, offset, upper, asked), list):
            try:
                asked[found.segment_id.id] = await self._indexes.aborted_transactions(found)
            except RemoteStorageError as error:
                raise self._errors.error_of(found, error) from error
        return found

    def _collect(
        self,
        log: ReadableLog,
        segment: RemoteLogSegmentMetadata,
        offset: Offset,
        upper: Offset,
        asked: Mapping[UUID, SegmentAbortedTransactions],
    ) -> list[AbortedTransaction] | RemoteLogSegmentMetadata:
        """The transactions, or the segment whose index is not known."""
        collected: dict[AbortedTransaction, None] = {}  # a segment may be remote and local at the same time
        current: RemoteLogSegmentMetadata | None = segment
        while current is not None:
            aborted = asked.get(current.segment_id.id)
            if aborted is None:
                aborted = self._indexes.aborted_transactions_now(current)
            if aborted is None:
                return current
            # One that ended before the offset says nothing about it, nor about what was undecided there.
            if _collect_from(aborted.ending_from(offset), offset, upper, collected):
                return list(collected)
            current = self._finder.following_with_txn_index(log, current)
        for local in log.segments:
            if not local.txn_index.is_empty and _collect_from(local.txn_index, offset, upper, collected):
                break
        return list(collected)


def _collect_from(
    entries: Iterable[AbortedTxn], offset: Offset, upper: Offset, collected: dict[AbortedTransaction, None]
) -> bool:
    """Take what overlaps. True if no later entry can."""
    for entry in entries:
        if entry.last_offset >= offset and entry.first_offset < upper:
            collected[AbortedTransaction(entry.producer_id, entry.first_offset)] = None
        if entry.last_stable_offset >= upper:
            return True
    return False
