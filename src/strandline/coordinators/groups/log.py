"""The log under the groups, as a port. `replicated_log` has the implementation on partitions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class LogRecord(NamedTuple):
    """A record to be written. No value deletes the key."""

    key: bytes
    value: bytes | None
    timestamp_ms: int


class ReadRecord(NamedTuple):
    """A record as it was read."""

    offset: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBatch:
    """A batch as it was read. `committed` is set for the end of a transaction: True commit, False abort."""

    records: tuple[ReadRecord, ...] = ()
    producer_id: int = -1
    is_transactional: bool = False
    committed: bool | None = None


class GroupLog(Protocol):
    """The partitions of `__consumer_offsets`, as the group coordinator needs them.

    Every implementation passes tests/coordinators/test_group_log.py, which checks that

    - an append is atomic and in order: its records get consecutive offsets, after those of every earlier append;
    - `append` returns when the records are committed; if it raises, the records may or may not be in the log;
    - `read` gives every committed record of the partition that compaction has left, in offset order, with the
      transactions as they stand in the log.

    A cancelled append may or may not have happened. Appends to one partition are made one after another.
    """

    def partition_count(self) -> int:
        """How many partitions the topic has, or will have when it is created."""

    def max_batch_bytes(self, partition: int) -> int:
        """The largest batch the partition takes."""

    async def append(self, partition: int, records: Sequence[LogRecord]) -> int:
        """The offset of the first record. Raises NotLeaderOrFollower, UnknownTopicOrPartition, RequestTimedOut,
        NotEnoughReplicas, MessageTooLarge or KafkaStorageError."""

    def read(self, partition: int) -> AsyncIterator[ReadBatch]:
        """Everything up to the end of the log. Raises NotLeaderOrFollower, KafkaStorageError or CorruptMessage."""
