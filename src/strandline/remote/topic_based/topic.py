"""The topic `__remote_log_metadata`, as a port."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from strandline.model import Offset
from strandline.remote.ports import RemoteStorageError


class MetadataTopicUnavailable(RemoteStorageError):
    """The metadata topic, or one of its partitions, cannot be written or read at the moment."""


class MetadataTopicTruncated(RemoteStorageError):
    """A partition of the metadata topic ends before the requested offset: it was truncated or created again."""


class TopicDescription(NamedTuple):
    """The topic. With another id it is another topic."""

    topic_id: UUID
    partitions: int


class MetadataTopicRecord(NamedTuple):
    """One record. If `problem` is set, its bytes could not be read, and `value` has no meaning."""

    offset: Offset
    value: bytes | None
    problem: str | None = None


class TopicChunk(NamedTuple):
    """Some records of one partition, in order, and the offset to continue from. Empty if none came in time."""

    records: Sequence[MetadataTopicRecord]
    next_offset: Offset


class MetadataTopic(Protocol):
    """`__remote_log_metadata`, wherever its partitions are led.

    Every implementation passes tests/remote/topic_based/test_metadata_topic.py, which checks that

    - an append is durable and readable by all brokers when it returns; its offset is above those of all earlier ones;
    - `read` returns every record from an offset on once, in order, and no record that could still be lost;
    - bytes that are not a record are reported (`MetadataTopicRecord.problem`) and skipped; reading goes on after them.

    An append that raises or is cancelled may or may not have happened. All calls end within a deadline of their own.
    """

    def describe(self) -> TopicDescription | None:
        """The topic as this broker knows it; None while there is none."""

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` when the topic is created, or this broker leads other partitions; returns a way to stop."""

    def led_partitions(self) -> Collection[int]:
        """The partitions that this broker leads."""

    async def append(self, partition: int, value: bytes) -> Offset:
        """Write one record. Raises MetadataTopicUnavailable."""

    async def read(self, partition: int, from_offset: Offset, *, wait: float) -> TopicChunk:
        """Records from an offset on, or from the first that is left; waits up to `wait` seconds for one.

        Raises MetadataTopicUnavailable, or MetadataTopicTruncated if the partition ends before `from_offset`.
        """

    async def end_offset(self, partition: int) -> Offset:
        """The offset after the last readable record: nothing that was ever readable is behind it.

        Raises MetadataTopicUnavailable, also while the leader does not know that yet.
        """

    async def close(self) -> None:
        """Close connections."""
