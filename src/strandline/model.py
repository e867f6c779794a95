"""Values that every layer speaks of: topics, partitions, offsets, epochs."""

from __future__ import annotations

import base64
import uuid
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

# Aliases, not NewTypes: these numbers are made by arithmetic on the hot path.
Offset: TypeAlias = int
LeaderEpoch: TypeAlias = int
BrokerId: TypeAlias = int
ProducerId: TypeAlias = int
TimestampMs: TypeAlias = int

NO_OFFSET: Final = -1
NO_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER: Final = -1

ZERO_UUID: Final = uuid.UUID(int=0)

GROUP_METADATA_TOPIC: Final = "__consumer_offsets"
TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
SHARE_GROUP_STATE_TOPIC: Final = "__share_group_state"
# Not internal to clients, as in Kafka: tools show it, and may read it.
REMOTE_LOG_METADATA_TOPIC: Final = "__remote_log_metadata"
INTERNAL_TOPICS: Final = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC})

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1


class ProducerAndEpoch(NamedTuple):
    """A producer id with an epoch: a newer epoch fences an older one."""

    producer_id: ProducerId
    epoch: int


class TopicPartition(NamedTuple):
    """One partition of a topic, by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TopicIdPartition(NamedTuple):
    """A partition of a topic that may have been deleted and created again under the same name."""

    topic_id: uuid.UUID
    topic_partition: TopicPartition

    @property
    def topic(self) -> str:
        return self.topic_partition.topic

    @property
    def partition(self) -> int:
        return self.topic_partition.partition

    def __str__(self) -> str:
        return f"{self.topic_partition} ({uuid_to_text(self.topic_id)})"


def uuid_to_text(value: uuid.UUID) -> str:
    """Kafka's text form of a UUID: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode("ascii")


def uuid_from_text(text: str) -> uuid.UUID:
    """The inverse of `uuid_to_text`. Raises ValueError."""
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(raw) != 16:
        raise ValueError(f"{text!r} is not a UUID in base64: it has {len(raw)} bytes, not 16.")
    return uuid.UUID(bytes=raw)


def java_string_hash(text: str) -> int:
    """Java's `String.hashCode`: groups and transactional ids choose their partition by it."""
    value = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(data), 2):
        value = (value * 31 + (data[i] << 8 | data[i + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


_hash_of_short: Final = lru_cache(maxsize=4096)(java_string_hash)
_SHORT: Final = 128
"""Longer keys are not kept: clients choose them, and they have up to 32 KB."""


def coordinator_partition(key: str, partitions: int) -> int:
    """The partition of an internal topic that owns `key`. Kafka takes abs(INT_MIN) for 0."""
    value = _hash_of_short(key) if len(key) <= _SHORT else java_string_hash(key)
    return (0 if value == -(1 << 31) else abs(value)) % partitions
