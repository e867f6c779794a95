"""The content of a snapshot file: the caches of one metadata partition.

A file holds, after a checksum of everything else, a version, the id and partition count of the metadata topic, the
offset to continue from, and for each partition its topic and entries as KIP-405 specifies them: length, kind, version,
data. Segments are Kafka's RemoteLogSegmentMetadataSnapshot. Which segment lookups find for which offset is written,
too: it does not follow from the segments that are left. Unlike in the KIP there is one file for a metadata partition,
not one for each partition whose metadata it holds: so a missing file is noticed, and all of it is from one moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import Final

from crc32c import crc32c

from strandline.errors import CorruptMessage
from strandline.model import LeaderEpoch, TopicIdPartition, TopicPartition
from strandline.records.fields import I32, I64, write_uvarint
from strandline.remote.topic_based.cache import CacheImage, RemoteLogLeaderEpochState, StoreImage
from strandline.remote.topic_based.records.fields import CompactReader, write_string
from strandline.remote.values import RemotePartitionDeleteMetadata, RemotePartitionDeleteState

_FORMAT: Final = 1
_ENTRY_VERSION: Final = 0
_CHECKSUM: Final = Struct(">I")
_DELETION: Final = Struct(">iqb")
_EPOCH: Final = Struct(">iqq")
_RANGE: Final = Struct(">qq")
_ID_BYTES: Final = 16
_NO_HIGHEST: Final = -1


class EntryKind(IntEnum):
    """The kinds of entries. The number of SEGMENT is Kafka's."""

    PARTITION_DELETE = 2
    SEGMENT = 3
    LEADER_EPOCH = 4


def encode(image: StoreImage) -> bytes:
    """The content of a snapshot file. May take long: call it in a thread."""
    out = bytearray(_CHECKSUM.size)
    write_uvarint(out, _FORMAT)
    out += image.topic_id.bytes
    write_uvarint(out, image.topic_partitions)
    out += I64.pack(image.next_offset)
    write_uvarint(out, len(image.caches))
    for cache in image.caches:
        _write_cache(out, cache)
    _CHECKSUM.pack_into(out, 0, crc32c(memoryview(out)[_CHECKSUM.size :]))
    return bytes(out)


def decode(data: bytes) -> StoreImage:
    """The image that `encode` was given. Raises CorruptMessage."""
    if len(data) < _CHECKSUM.size or crc32c(memoryview(data)[_CHECKSUM.size :]) != _CHECKSUM.unpack_from(data)[0]:
        raise CorruptMessage("The snapshot does not match its checksum.")
    reader = CompactReader(data, _CHECKSUM.size)
    version = reader.uvarint()
    if version != _FORMAT:
        raise CorruptMessage(f"The snapshot has version {version}; only {_FORMAT} is known.")
    topic_id, topic_partitions, next_offset = reader.uuid(), reader.uvarint(), reader.i64()
    caches = tuple(_read_cache(reader) for _ in range(reader.uvarint()))
    reader.end()
    return StoreImage(topic_id, topic_partitions, next_offset, caches)


def _write_cache(out: bytearray, cache: CacheImage) -> None:
    write_string(out, cache.partition.topic)
    out += cache.partition.topic_id.bytes
    out += I32.pack(cache.partition.partition)
    write_uvarint(out, len(cache.segments) + len(cache.epochs) + (cache.deletion is not None))
    for kind, data in _entries(cache):
        entry = bytearray((kind, _ENTRY_VERSION))
        entry += data
        write_uvarint(out, len(entry))
        out += entry


def _entries(cache: CacheImage) -> Iterator[tuple[EntryKind, bytes]]:
    ordinals: dict[bytes, int] = {}
    for key, packed in cache.segments.items():
        ordinals[key] = len(ordinals)
        yield EntryKind.SEGMENT, key + packed
    for epoch, state in cache.epochs.items():
        yield EntryKind.LEADER_EPOCH, _epoch_data(epoch, state, ordinals)
    if cache.deletion is not None:
        deletion = cache.deletion
        data = _DELETION.pack(deletion.broker_id, deletion.event_timestamp_ms, deletion.state)
        yield EntryKind.PARTITION_DELETE, data


def _epoch_data(epoch: LeaderEpoch, state: RemoteLogLeaderEpochState, ordinals: dict[bytes, int]) -> bytes:
    highest = _NO_HIGHEST if state.highest_offset is None else state.highest_offset
    out = bytearray(_EPOCH.pack(epoch, highest, state.finished_bytes))
    write_uvarint(out, len(state.unreferenced))
    for key in state.unreferenced:
        write_uvarint(out, ordinals[key])
    referenced = list(state.referenced())
    write_uvarint(out, len(referenced))
    for start, end, key in referenced:
        out += _RANGE.pack(start, end)
        write_uvarint(out, ordinals[key])
    return bytes(out)


def _read_cache(reader: CompactReader) -> CacheImage:
    name, topic_id, number = reader.string(), reader.uuid(), reader.i32()
    partition = TopicIdPartition(topic_id, TopicPartition(name, number))
    segments: dict[bytes, bytes] = {}
    keys: list[bytes] = []
    epochs: dict[LeaderEpoch, RemoteLogLeaderEpochState] = {}
    deletion = None
    for _ in range(reader.uvarint()):
        entry = CompactReader(reader.take(reader.uvarint()))
        kind, version = entry.uvarint(), entry.uvarint()
        if version != _ENTRY_VERSION:
            raise CorruptMessage(f"An entry of kind {kind} has version {version}; only {_ENTRY_VERSION} is known.")
        match kind:
            case EntryKind.SEGMENT:
                key = entry.take(_ID_BYTES)
                keys.append(key)
                segments[key] = entry.take(len(entry.data) - entry.position)
            case EntryKind.LEADER_EPOCH:
                epoch, epochs_state = _read_epoch(entry, keys)
                epochs[epoch] = epochs_state
            case EntryKind.PARTITION_DELETE:
                deletion = _read_deletion(entry, partition)
            case _:
                raise CorruptMessage(f"Entries of kind {kind} are not known.")
    return CacheImage(partition, segments, epochs, deletion)


def _read_epoch(entry: CompactReader, keys: list[bytes]) -> tuple[LeaderEpoch, RemoteLogLeaderEpochState]:
    state = RemoteLogLeaderEpochState()
    epoch, highest, state.finished_bytes = entry.unpack(_EPOCH)
    state.highest_offset = None if highest == _NO_HIGHEST else highest
    try:
        state.unreferenced.update(keys[entry.uvarint()] for _ in range(entry.uvarint()))
        for _ in range(entry.uvarint()):
            start, end = entry.unpack(_RANGE)
            state.restore(start, end, keys[entry.uvarint()])
    except (IndexError, ValueError) as error:
        raise CorruptMessage(f"The entry of leader epoch {epoch} is damaged ({error}).") from error
    return epoch, state


def _read_deletion(entry: CompactReader, partition: TopicIdPartition) -> RemotePartitionDeleteMetadata:
    broker_id, event_timestamp_ms, state = entry.unpack(_DELETION)
    return RemotePartitionDeleteMetadata(
        partition=partition,
        state=RemotePartitionDeleteState(state),
        event_timestamp_ms=event_timestamp_ms,
        broker_id=broker_id,
    )
