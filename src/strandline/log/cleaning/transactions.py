"""Which transactions a cleaner is in the middle of while it reads a log from start to end."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.log.transaction_index import AbortedTxn
from strandline.records import BatchHeader, ControlType


class _OpenAbort:
    """An aborted transaction between its first record and its marker."""

    __slots__ = ("has_data", "txn")

    def __init__(self, txn: AbortedTxn) -> None:
        self.txn = txn
        self.has_data = False


class TransactionTracker:
    """Tells records of aborted transactions apart, and markers that no record depends on any more.

    Batches have to be shown in the order of the log. Aborted transactions of the range are given beforehand.
    """

    __slots__ = ("_aborted", "_committed", "_next", "_open", "retained_aborts")

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._aborted = sorted(aborted, key=lambda txn: txn.first_offset)
        self._next = 0
        self._open: dict[int, _OpenAbort] = {}
        self._committed: set[int] = set()
        self.retained_aborts: list[AbortedTxn] = []
        """Aborted transactions whose records were still there: the cleaned segment's index has to list them."""

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a data batch belongs to an aborted transaction."""
        self._advance(header)
        if not header.is_transactional:
            return False
        aborted = self._open.get(header.producer_id)
        if aborted is None or aborted.txn.last_offset < header.base_offset:
            self._committed.add(header.producer_id)
            return False
        aborted.has_data = True
        return True

    def is_marker_of_nothing(self, header: BatchHeader, control_type: ControlType | None) -> bool:
        """Whether a control batch ends a transaction of which no record was seen. None: the batch is empty."""
        self._advance(header)
        if control_type is None:
            return True
        if control_type is ControlType.ABORT:
            aborted = self._open.pop(header.producer_id, None)
            if aborted is None or not aborted.has_data:
                return True
            self.retained_aborts.append(aborted.txn)
            return False
        if control_type is ControlType.COMMIT:
            if header.producer_id not in self._committed:
                return True
            self._committed.remove(header.producer_id)
        return False

    def _advance(self, header: BatchHeader) -> None:
        while self._next < len(self._aborted) and self._aborted[self._next].first_offset <= header.last_offset:
            txn = self._aborted[self._next]
            self._next += 1
            # A walk that starts in the middle of a log never sees the markers before it.
            if txn.last_offset >= header.base_offset:
                self._open[txn.producer_id] = _OpenAbort(txn)
