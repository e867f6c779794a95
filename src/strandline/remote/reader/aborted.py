"""Finds the aborted transactions of remote reads.

They are in the transaction indexes of the segment that was read and of the following ones, remote and local, up to an
entry whose last stable offset lies beyond the records that were read.
"""

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
    """Finds aborted transactions. Caching is left to the index cache."""

    def __init__(self, indexes: RemoteIndexCache, finder: SegmentFinder, errors: RemoteReadErrors) -> None:
        self._indexes, self._finder, self._errors = indexes, finder, errors

    def now(
        self, log: ReadableLog, segment: RemoteLogSegmentMetadata, offset: Offset, upper: Offset
    ) -> list[AbortedTransaction] | None:
        """Those that overlap [offset, upper), read from `segment`; None if an index has to be fetched first."""
        found = self._collect(log, segment, offset, upper, {})
        return found if isinstance(found, list) else None

    async def find(
        self, log: ReadableLog, segment: RemoteLogSegmentMetadata, offset: Offset, upper: Offset
    ) -> list[AbortedTransaction]:
        """The same, with indexes fetched as needed. Raises KafkaStorageError."""
        fetched: dict[UUID, SegmentAbortedTransactions] = {}  # there may be more indexes than the cache keeps
        while not isinstance(found := self._collect(log, segment, offset, upper, fetched), list):
            try:
                fetched[found.segment_id.id] = await self._indexes.aborted_transactions(found)
            except RemoteStorageError as error:
                raise self._errors.error_of(found, error) from error
        return found

    def _collect(
        self,
        log: ReadableLog,
        segment: RemoteLogSegmentMetadata,
        offset: Offset,
        upper: Offset,
        fetched: Mapping[UUID, SegmentAbortedTransactions],
    ) -> list[AbortedTransaction] | RemoteLogSegmentMetadata:
        """The transactions, or the segment whose index has to be fetched."""
        collected: dict[AbortedTransaction, None] = {}  # a segment may be remote and local at the same time
        current: RemoteLogSegmentMetadata | None = segment
        while current is not None:
            aborted = fetched.get(current.segment_id.id)
            if aborted is None:
                aborted = self._indexes.aborted_transactions_now(current)
            if aborted is None:
                return current
            # A transaction that ended before the offset does not overlap, and its entry does not end the search.
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
    """Collect transactions that overlap. True if no later entry can overlap."""
    for entry in entries:
        if entry.last_offset >= offset and entry.first_offset < upper:
            collected[AbortedTransaction(entry.producer_id, entry.first_offset)] = None
        if entry.last_stable_offset >= upper:
            return True
    return False
