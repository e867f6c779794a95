"""Records that were read for a share group: which batches there are, and which bytes go to the member.

Only headers of batches are looked at, and the markers of transactions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from strandline.model import INT32_MAX, Offset
from strandline.reads import AbortedTransaction
from strandline.records import BatchHeader, ControlType, iter_headers, read_marker
from strandline.share_delivery.delivery import AcquiredBatch, FetchedBatch


@dataclass(frozen=True, slots=True)
class SharedRecords:
    """Whole record batches, in order."""

    data: bytes
    batches: tuple[FetchedBatch, ...]
    ends: tuple[int, ...]
    """Where in the bytes each batch ends."""

    @classmethod
    def of(
        cls, data: bytes, aborted: Sequence[AbortedTransaction] | None, *, start: Offset = 0, enough: int = INT32_MAX
    ) -> SharedRecords:
        """Batches with `enough` offsets that can be delivered from `start` on, if there are so many.

        A batch that is cut at the end is left out. With `aborted`, records of these transactions are not delivered.
        Raises CorruptMessage.
        """
        filtered = _AbortedFilter(aborted or ())
        batches: list[FetchedBatch] = []
        ends: list[int] = []
        for position, header in iter_headers(data):
            is_deliverable = filtered.is_deliverable(data, position, header)
            batches.append(FetchedBatch(header.base_offset, header.last_offset, is_deliverable))
            ends.append(position + header.size)
            if is_deliverable:
                enough -= max(header.last_offset + 1 - max(header.base_offset, start), 0)
                if enough <= 0:
                    break
        return cls(data, tuple(batches), tuple(ends))

    def covering(self, acquired: Sequence[AcquiredBatch]) -> bytes:
        """The bytes of the batches from the first acquired offset to the last."""
        if not acquired:
            return b""
        first, last = acquired[0].first, acquired[-1].last
        begin = end = 0
        for batch, batch_end in zip(self.batches, self.ends, strict=True):
            if batch.last < first:
                begin = batch_end
            if batch.first <= last:
                end = batch_end
        return self.data if begin == 0 and end == len(self.data) else self.data[begin:end]


class _AbortedFilter:
    """Tells records of aborted transactions from others, batch by batch."""

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._ahead = deque(sorted(aborted, key=lambda transaction: transaction.first_offset))
        self._open: set[int] = set()

    def is_deliverable(self, data: bytes, position: int, header: BatchHeader) -> bool:
        while self._ahead and self._ahead[0].first_offset <= header.last_offset:
            self._open.add(self._ahead.popleft().producer_id)
        if header.is_control:
            if header.producer_id in self._open:
                marker = read_marker(memoryview(data)[position : position + header.size])
                if marker is not None and marker.type is ControlType.ABORT:
                    self._open.discard(header.producer_id)
            return False
        return not (header.is_transactional and header.producer_id in self._open)
