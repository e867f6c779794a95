"""Checks the objects of one segment in COPY_SEGMENT_FINISHED against its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strandline.errors import CorruptMessage, KafkaStorageError
from strandline.log.checkpoints import parse_epochs
from strandline.log.producer_snapshot import parse_snapshot
from strandline.model import Offset
from strandline.objects import ObjectNotFound, ObjectStore
from strandline.objects.store import Buffer
from strandline.records import BatchHeader, crc_matches, iter_headers, read_header
from strandline.remote.indexes import RemoteIndexDamaged, RemoteIndexes, check_index
from strandline.remote.storage.names import LOG
from strandline.remote.values import IndexType, RemoteLogSegmentMetadata

_CHUNK: Final = 4 * 1024 * 1024
_ENTRY_SIZES: Final = {IndexType.OFFSET: 8, IndexType.TIMESTAMP: 12, IndexType.TRANSACTION: 34}
_NEVER_EMPTY: Final = (IndexType.PRODUCER_SNAPSHOT, IndexType.LEADER_EPOCH)


class SegmentIncomplete(Exception):
    """Objects of the segment are missing."""

    def __init__(self, *kinds: str) -> None:
        super().__init__(f"There is no {', no '.join(kinds)}.")
        self.kinds = kinds


class SegmentDamaged(Exception):
    """An object of the segment is damaged. The text says which, and how."""


def check_sizes(metadata: RemoteLogSegmentMetadata, sizes: Mapping[str, int]) -> None:
    """Checks with the listing alone: all objects exist, the log has its size, indexes have whole entries.

    Raises SegmentIncomplete or SegmentDamaged.
    """
    wanted = [LOG, *(kind.value for kind in required_indexes(metadata))]
    missing = [kind for kind in wanted if kind not in sizes]
    if missing:
        raise SegmentIncomplete(*missing)
    if sizes[LOG] != metadata.segment_size_in_bytes:
        raise SegmentDamaged(f"Its log has {sizes[LOG]} bytes instead of {metadata.segment_size_in_bytes}.")
    for kind, entry in _ENTRY_SIZES.items():
        if sizes.get(kind.value, 0) % entry:
            raise SegmentDamaged(f"Its {kind.value} of {sizes[kind.value]} bytes is not a whole number of entries.")
    for kind in _NEVER_EMPTY:
        if not sizes[kind.value]:
            raise SegmentDamaged(f"Its {kind.value} is empty.")


def required_indexes(metadata: RemoteLogSegmentMetadata) -> list[IndexType]:
    """The indexes that readers need: all; the transaction index only if a transaction was aborted."""
    return [kind for kind in IndexType if kind is not IndexType.TRANSACTION or not metadata.txn_index_empty]


async def check_content(store: ObjectStore, key: str, metadata: RemoteLogSegmentMetadata) -> None:
    """Reads every byte. `key` is the key of the segment up to the dot.

    Raises SegmentIncomplete or SegmentDamaged, and the errors of the store.
    """
    contents: dict[IndexType, bytes] = {}
    for kind in required_indexes(metadata):
        try:
            contents[kind] = bytes(await store.get(f"{key}.{kind.value}"))
        except ObjectNotFound as error:
            raise SegmentIncomplete(kind.value) from error
        _check_index(metadata, kind, contents[kind])
    indexes = RemoteIndexes(metadata.start_offset, contents[IndexType.OFFSET], contents[IndexType.TIMESTAMP])
    contents.clear()
    await _check_log(store, f"{key}.{LOG}", _LogCheck(metadata, indexes))


def _check_index(metadata: RemoteLogSegmentMetadata, kind: IndexType, data: bytes) -> None:
    try:
        match kind:
            case IndexType.PRODUCER_SNAPSHOT:
                parse_snapshot(data)
            case IndexType.LEADER_EPOCH:
                parse_epochs(data, f"the {kind.value}")
            case _:
                check_index(metadata, kind, data)
    except RemoteIndexDamaged as error:
        raise SegmentDamaged(str(error)) from error
    except (CorruptMessage, KafkaStorageError) as error:
        raise SegmentDamaged(f"Its {kind.value} is damaged: {error}") from error


async def _check_log(store: ObjectStore, key: str, check: _LogCheck) -> None:
    """In pieces of `_CHUNK` bytes, or of one batch if that is larger."""
    wanted = _CHUNK
    while check.left:
        wanted = min(wanted, check.left)
        try:
            data = await store.get_range(key, check.position, wanted)
        except ObjectNotFound as error:
            raise SegmentIncomplete(LOG) from error
        if len(data) < wanted:
            raise SegmentDamaged(f"Its log ends at position {check.position + len(data)}.")
        wanted = check.take(data)
    check.end()


class _LogCheck:
    """Checks the batches of a log: checksums, offsets, and that index entries point to the beginning of a batch."""

    def __init__(self, metadata: RemoteLogSegmentMetadata, indexes: RemoteIndexes) -> None:
        self._metadata, self._indexes = metadata, indexes
        self.position = 0
        self._next_offset: Offset = metadata.start_offset
        self._indexed = indexes.next_position(-1)

    @property
    def left(self) -> int:
        return self._metadata.segment_size_in_bytes - self.position

    def take(self, data: Buffer) -> int:
        """Check the whole batches at the beginning of `data`. Returns how much to read next. Raises SegmentDamaged."""
        start = self.position
        try:
            for at, header in iter_headers(data):
                self._batch(data, at, header)
                self.position = start + at + header.size
            if self.position > start:
                return _CHUNK
            size = read_header(data).size
        except CorruptMessage as error:
            raise SegmentDamaged(f"Its log is damaged at position {self.position}: {error}") from error
        if size > self.left or len(data) >= size:
            raise self._damaged("an incomplete batch")
        return size

    def end(self) -> None:
        """All batches have been checked. Raises SegmentDamaged."""
        if self._next_offset <= self._metadata.end_offset:
            self._skipped(self._metadata.end_offset + 1)

    def _batch(self, data: Buffer, at: int, header: BatchHeader) -> None:
        position = self.position
        if not crc_matches(data, at, header):
            raise self._damaged(f"a batch (offset {header.base_offset}) that does not match its checksum")
        if header.base_offset < self._next_offset or header.last_offset > self._metadata.end_offset:
            raise self._damaged(f"a batch with offsets {header.base_offset} to {header.last_offset}")
        if header.base_offset > self._next_offset:
            self._skipped(header.base_offset)
        self._next_offset = header.next_offset
        if self._indexed is not None and self._indexed < position + header.size:
            if self._indexed != position:
                raise SegmentDamaged(f"Its index has an entry for position {self._indexed}, where no batch begins.")
            self._indexed = self._indexes.next_position(position)

    def _skipped(self, until: Offset) -> None:
        raise SegmentDamaged(
            f"Its log has no batch with offsets {self._next_offset} to {until - 1} (which is correct only if the "
            "topic was compacted before it was tiered)."
        )

    def _damaged(self, what: str) -> SegmentDamaged:
        return SegmentDamaged(f"Its log has at position {self.position} {what}.")
