"""Which partition of `__remote_log_metadata` holds the metadata of a partition: Kafka's rule."""

from __future__ import annotations

from typing import Final

from strandline.model import TopicIdPartition

_MASK: Final = 0xFFFF_FFFF
_SEED: Final = 0x9747_B28C
_M: Final = 0x5BD1_E995


def metadata_partition(partition: TopicIdPartition, count: int) -> int:
    """The number of the metadata partition, of `count`: murmur2 over Java's hash of topic id and partition."""
    return (murmur2(_java_hash(partition).to_bytes(4, "big")) & 0x7FFF_FFFF) % count


def _java_hash(partition: TopicIdPartition) -> int:
    """`Objects.hash` of the two halves of the topic id, the lower one first, and the partition; unsigned."""
    most, least = divmod(partition.topic_id.int, 1 << 64)
    value = 1
    for part in (_long_hash(least), _long_hash(most), partition.partition):
        value = (31 * value + part) & _MASK
    return value


def _long_hash(value: int) -> int:
    return (value ^ (value >> 32)) & _MASK


def murmur2(data: bytes) -> int:
    """Kafka's variant of MurmurHash2, unsigned."""
    length = len(data)
    value = (_SEED ^ length) & _MASK
    whole = length & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        word = (word ^ (word >> 24)) * _M & _MASK
        value = (value * _M & _MASK) ^ word
    if length > whole:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    value = (value ^ (value >> 13)) * _M & _MASK
    return value ^ (value >> 15)
