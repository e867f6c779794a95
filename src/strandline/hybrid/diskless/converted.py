"""The converted part of a diskless log: what the tiering pipeline has moved from WAL objects to remote segments.

It reaches from B0 up to the read boundary. Any broker serves it: from the remote log metadata, which it begins to read
when it first needs it, and from remote storage.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from strandline.clock import Clock
from strandline.errors import KafkaStorageError
from strandline.hybrid.remote.topics import TieredTopics
from strandline.log.transaction_index import AbortedTxn
from strandline.model import NO_OFFSET, LeaderEpoch, Offset, TopicIdPartition, TopicPartition
from strandline.reads import AnsweredOffsets, FetchIsolation, ReadResult
from strandline.remote.ports import RemoteLogMetadataManager, RemoteStorageError

if TYPE_CHECKING:  # a broker without diskless or tiered topics does not load them
    from strandline.controlplane.values import AbortedRange
    from strandline.diskless.reader import DisklessReader
    from strandline.hybrid.remote.tier import RemoteTier
    from strandline.remote.reader.log import LocalSegment

READY_SECONDS: Final = 2.0
"""How long a request waits for remote log metadata that this broker has just begun to read, or has not read yet."""
_LOOK_SECONDS: Final = 0.02


class ConvertedEpochs(NamedTuple):
    """The leader epochs of a converted part, and where it ends, as far as this broker has read the metadata."""

    entries: Sequence[tuple[LeaderEpoch, Offset]]
    end: Offset

    @property
    def start(self) -> Offset:
        """Where the first segment begins; where the part ends if there is none."""
        return self.entries[0][1] if self.entries else self.end


_NO_EPOCHS: Final = ConvertedEpochs((), 0)


class _AbortedRows:
    """A `LocalTransactionIndex`."""

    __slots__ = ("_ranges",)

    def __init__(self, ranges: Sequence[AbortedRange]) -> None:
        self._ranges = ranges

    @property
    def is_empty(self) -> bool:
        return not self._ranges

    def __iter__(self) -> Iterator[AbortedTxn]:
        return (AbortedTxn._make(one) for one in self._ranges)


class _RowsAsSegment:
    """A `LocalSegment`."""

    __slots__ = ("txn_index",)

    def __init__(self, ranges: Sequence[AbortedRange]) -> None:
        self.txn_index = _AbortedRows(ranges)


class ConvertedLog:
    """The converted part of one log. A `ReadableLog` of the remote reader. Lives on the event loop.

    Its lineage is total: no offset from B0 on was ever written twice, so that every leader epoch with segments there
    is one of the log. Those of the prefix are older than the epoch in which B0 was set, or end below it.
    """

    __slots__ = (
        "_aborted_across",
        "_basis",
        "_epochs",
        "_followed_by",
        "_reader",
        "_tiered",
        "boundary",
        "boundary_epoch",
        "id",
    )

    def __init__(
        self,
        key: TopicIdPartition,
        boundary: Offset,
        boundary_epoch: LeaderEpoch,
        reader: DisklessReader,
        tiered: TieredTopics,
    ) -> None:
        self.id = key
        self.boundary = boundary
        """B0, where it begins."""
        self.boundary_epoch = boundary_epoch
        """The leader epoch in which B0 was set: none of the diskless log is older."""
        self._reader, self._tiered = reader, tiered
        self._followed_by: RemoteTier | None = None
        self._epochs = _NO_EPOCHS
        self._basis: object = None
        """What the epochs were made from."""
        self._aborted_across: tuple[Offset, Sequence[AbortedRange]] = (NO_OFFSET, ())
        """A read boundary, and the aborted transactions that lie on both sides of it."""

    # Remote storage

    @property
    def tier(self) -> RemoteTier:
        """Remote storage, which reads the metadata of this log from now on. Raises KafkaStorageError if it is off."""
        tier = self._tiered.storage.opened(self._why_needed)
        if self._followed_by is not tier:
            self._followed_by = tier
            tier.read_metadata_of(self.id)
        return tier

    def _why_needed(self) -> str:
        return (
            f"{self.topic_partition} is in remote segments up to offset {self.local_log_start_offset}, and this broker "
            "has not opened remote storage: remote.log.storage.system.enable has to be true."
        )

    def close(self) -> None:
        """The topic is gone, or the broker stops."""
        if self._followed_by is not None:
            self._followed_by.stop_reading_metadata_of(self.id)
            self._followed_by = None

    def check(self, offset: Offset) -> None:
        """Raise KafkaStorageError unless remote storage is open, and the metadata read here should have an offset."""
        epochs = self.epochs
        if not epochs.start <= offset < epochs.end:
            raise KafkaStorageError(
                f"Offset {offset} of {self.topic_partition} is in a remote segment, but the remote log metadata that "
                f"this broker has read has segments from offset {epochs.start} to {epochs.end} only."
            )

    async def wait_holds(self, offset: Offset, clock: Clock) -> None:
        """Wait for the metadata of an offset: it may not have been read to its end. Raises as `check` does."""
        until = clock.monotonic() + READY_SECONDS
        metadata = self.tier.metadata
        while clock.monotonic() < until and self.has(offset):
            if metadata.is_ready(self.id) and offset < self.epochs.end:
                break  # what is missing before the end is deleted, or lost
            await clock.sleep(_LOOK_SECONDS)
        self.check(offset)

    def has(self, offset: Offset) -> bool:
        """Whether an offset lies in the converted part, as far as this broker knows."""
        return self.log_start_offset <= offset < self.local_log_start_offset

    def epoch_if_known(self, offset: Offset) -> LeaderEpoch | None:
        """The leader epoch that wrote `offset`; None if that is not known here now."""
        try:
            self.check(offset)
        except KafkaStorageError:
            return None
        return self.epoch_for_offset(offset)

    # What the remote reader asks

    @property
    def topic_partition(self) -> TopicPartition:
        return self.id.topic_partition

    @property
    def log_start_offset(self) -> Offset:
        """The first offset of the converted part that may be read."""
        return max(self.whole().log_start_offset, self.boundary)

    @property
    def local_log_start_offset(self) -> Offset:
        """The read boundary: from it on, records are in rows of the control plane."""
        return max(self._reader.read_boundary(self.id), self.boundary)

    @property
    def high_watermark(self) -> Offset:
        return self.whole().high_watermark

    @property
    def last_stable_offset(self) -> Offset:
        return self.whole().last_stable_offset

    def whole(self) -> AnsweredOffsets:
        """The offsets of the whole log."""
        known = self._reader.known_offsets(self.id)
        if known is None:
            return AnsweredOffsets(self.boundary, self.boundary, self.boundary)
        end, start = known
        return AnsweredOffsets(end, self._reader.last_stable_offset(self.id), start)

    @property
    def epochs(self) -> ConvertedEpochs:
        """The leader epochs with segments from B0 on. Raises KafkaStorageError while the metadata was not read."""
        metadata = self.tier.metadata
        try:
            # A segment that was added has moved the read boundary, or changes the summary when it is read here.
            basis = (metadata.remote_log_summary(self.id), self.log_start_offset, self.local_log_start_offset)
            if basis != self._basis:
                self._epochs = self._epochs_in(metadata)
                self._basis = basis
        except RemoteStorageError as error:
            raise KafkaStorageError(
                f"The remote log metadata of {self.topic_partition} has not been read yet. {error}"
            ) from error
        return self._epochs

    def _epochs_in(self, metadata: RemoteLogMetadataManager) -> ConvertedEpochs:
        found = metadata.leader_epochs_from(self.id, self.boundary)
        entries = [entry for entry in found if entry[0] >= self.boundary_epoch]
        last = metadata.highest_offset_for_epoch(self.id, entries[-1][0]) if entries else None
        return ConvertedEpochs(entries, self.boundary if last is None else last + 1)

    def look_again(self) -> None:
        """Make the epochs again when they are next asked for: a segment that should be there is not."""
        self._basis = None

    def epoch_for_offset(self, offset: Offset) -> LeaderEpoch | None:
        """The leader epoch that wrote `offset`; None if no segment here begins at or before it."""
        entries = self.epochs.entries
        at = bisect_right(entries, offset, key=lambda entry: entry[1]) - 1
        return entries[at][0] if at >= 0 else None

    @property
    def segments(self) -> Iterable[LocalSegment]:
        """The rows behind it, as one segment: a transaction that began in the converted part may end there.

        Raises KafkaStorageError unless it `knows_aborted`, and the metadata read here has every segment before the
        rows: one that is missing may have the end of a transaction, which rows do not have any more.
        """
        if not self.knows_aborted or self.epochs.end < self.local_log_start_offset:
            raise KafkaStorageError(
                f"The transactions of {self.topic_partition} that were aborted behind offset "
                f"{self.local_log_start_offset} are not known yet."
            )
        return (_RowsAsSegment(self._aborted_across[1]),)

    @property
    def knows_aborted(self) -> bool:
        """Whether it knows the transactions that were aborted in rows, and began before."""
        boundary = self.local_log_start_offset
        if self._aborted_across[0] != boundary:
            found = self._reader.known_aborted_across(self.id, boundary)
            if found is None:
                return False
            self._aborted_across = (boundary, found)
        return True

    async def wait_aborted(self) -> None:
        """Find them. They never change: what is converted was decided before. Raises KafkaStorageError."""
        if not self.knows_aborted:
            boundary = self.local_log_start_offset
            self._aborted_across = (boundary, await self._reader.aborted_across(self.id, boundary))

    def read(self, offset: Offset, max_bytes: int, *, isolation: FetchIsolation, min_one_message: bool) -> ReadResult:
        """Finds nothing: the converted part has no local log."""
        return ReadResult(None, *self.whole(), [] if isolation is FetchIsolation.TXN_COMMITTED else None)
