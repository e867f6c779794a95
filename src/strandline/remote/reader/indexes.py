"""What the reader asks of the indexes of remote segments. `remote.index_cache` answers it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol
from uuid import UUID

from strandline.log.transaction_index import AbortedTxn
from strandline.model import Offset, TimestampMs
from strandline.remote.values import RemoteLogSegmentMetadata


class SegmentIndexes(Protocol):
    """The offset index and the time index of one segment. Answers at once."""

    def position_of(self, offset: Offset) -> int:
        """Where to begin to look for a batch: before or at the one that holds `offset`."""

    def position_at_or_before(self, position: int) -> int:
        """The start of the last batch with an entry that starts at `position` or earlier, else 0."""

    def offset_at_or_after(self, position: int) -> Offset | None:
        """The offset of the first entry at `position` or later; None if there is none."""

    def first_offset_for_time(self, timestamp: TimestampMs) -> Offset:
        """From where on to look for a record that is not older than `timestamp`."""


class SegmentAborted(Protocol):
    """The transaction index of one segment. Answers at once."""

    def ending_from(self, offset: Offset) -> Iterator[AbortedTxn]:
        """The aborted transactions whose marker is at `offset` or later, in the order of their markers."""


class IndexCache(Protocol):
    """The indexes of all remote segments. Those that may have to be asked for raise RemoteStorageError."""

    async def indexes(self, metadata: RemoteLogSegmentMetadata) -> SegmentIndexes:
        """Offset and time index of a segment, from the disk or from remote storage."""

    def note_use(self, segment_id: UUID) -> None:
        """What `indexes` gave for a segment is used again: whoever bounds the memory leaves it where it is."""

    async def aborted_transactions(self, metadata: RemoteLogSegmentMetadata) -> SegmentAborted:
        """The transaction index of a segment; nothing if it has none."""

    def aborted_transactions_now(self, metadata: RemoteLogSegmentMetadata) -> SegmentAborted | None:
        """The same if it is in memory; None if not."""
