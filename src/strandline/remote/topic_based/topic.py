"""The topic under the description of remote segments, as a port."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from strandline.model import Offset
from strandline.remote.ports import RemoteStorageError


class MetadataTopicUnavailable(RemoteStorageError):
    """The metadata topic, or one of its partitions, cannot be written or read at the moment."""


class MetadataTopicTruncated(RemoteStorageError):
    """A partition of the metadata topic ends before the offset that was asked for: it is not what it was."""


class TopicDescription(NamedTuple):
    """What the topic is. With another id it is another topic."""

    topic_id: UUID
    partitions: int


class MetadataTopicRecord(NamedTuple):
    """One record. With `problem` set its bytes could not be read, and `value` says nothing."""

    offset: Offset
    value: bytes | None
    problem: str | None = None


class TopicChunk(NamedTuple):
    """Some records of one partition, in order, and where to go on. Empty if nothing came in time."""

    records: Sequence[MetadataTopicRecord]
    next_offset: Offset


class MetadataTopic(Protocol):
    """`__remote_log_metadata`, wherever its partitions are led.

    Every implementation passes tests/remote/topic_based/test_metadata_topic.py, which checks that

    - an append is durable, and readable for everyone, when it returns; its offset is above those of every earlier one;
    - `read` gives every record from an offset on once, in order, and nothing that could be lost again;
    - bytes that are no records are told (`MetadataTopicRecord.problem`) and passed over, and do not end the reading.

    An append that raises or is cancelled may or may not have happened. All calls end within a deadline of their own.
    """

    def describe(self) -> TopicDescription | None:
        """The topic as this broker knows it; None while there is none."""

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` when the topic appears, or this broker leads other partitions of it; returns how to stop."""

    def led_partitions(self) -> Collection[int]:
        """The partitions that this broker leads."""

    async def append(self, partition: int, value: bytes) -> Offset:
        """Write one record. Raises MetadataTopicUnavailable."""

    async def read(self, partition: int, from_offset: Offset, *, wait: float) -> TopicChunk:
        """Records from an offset on, or from the first that is left; waits up to `wait` seconds for some.

        Raises MetadataTopicUnavailable, or MetadataTopicTruncated if the partition ends before `from_offset`.
        """

    async def end_offset(self, partition: int) -> Offset:
        """The offset after the last readable record. Raises MetadataTopicUnavailable."""

    async def close(self) -> None:
        """Let go of connections."""
