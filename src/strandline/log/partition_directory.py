"""The directory of one partition: its path, its topic id, and whether its log can still be used."""

from __future__ import annotations

import os
from uuid import UUID

from strandline.errors import KafkaStorageError
from strandline.log.checkpoints import read_topic_id, write_topic_id
from strandline.log.environment import LogEnvironment
from strandline.log.files import offset_name, write_atomically
from strandline.model import TopicPartition


class PartitionDirectory:
    """The directory of a log. Counts the names created or renamed in it, and how many of them are on disk."""

    __slots__ = ("_synced_changes", "_topic_id", "changes", "env", "is_closed", "path", "topic_partition")

    def __init__(
        self, topic_partition: TopicPartition, path: str, env: LogEnvironment, *, topic_id: UUID | None
    ) -> None:
        self.topic_partition = topic_partition
        self.path = path
        self.env = env
        self.is_closed = False
        self.changes = 0
        """How often a name in the directory was created, renamed or removed."""
        self._synced_changes = 0
        self._topic_id = topic_id

    # Identity

    @property
    def topic_id(self) -> UUID | None:
        """The topic id in `partition.metadata`, None if the file is missing."""
        if self._topic_id is None:
            self._topic_id = read_topic_id(self.path)
        return self._topic_id

    def assign_topic_id(self, topic_id: UUID) -> None:
        """Write the id of a partition that has none. Raises KafkaStorageError if it has another one."""
        known = self.topic_id
        if known is None:
            write_topic_id(self.path, topic_id)
            self._topic_id = topic_id
        elif known != topic_id:
            raise KafkaStorageError(
                f"{self.topic_partition} in {self.path} belongs to topic id {known}, not to {topic_id}."
            )

    # Failure

    @property
    def is_offline(self) -> bool:
        """True if the log cannot be used any more: its log directory has failed, or the log was closed."""
        return self.env.directory.error is not None or self.is_closed

    def check_online(self) -> None:
        """Raises KafkaStorageError if the log cannot be used."""
        self.env.directory.check()
        if self.is_closed:
            raise KafkaStorageError(f"The log of {self.topic_partition} is closed.")

    def fail(self, error: OSError) -> KafkaStorageError:
        """Take the whole log directory offline. Returns the error to raise."""
        return self.env.directory.fail(error)

    # Files

    def write_small(self, path: str, data: bytes) -> None:
        """Write a small file of the partition; the next flush forces it to disk."""
        write_atomically(path, data, sync=False)
        self.changes += 1

    def file_path(self, offset: int, suffix: str) -> str:
        """The path of a file that is named after an offset."""
        return os.path.join(self.path, offset_name(offset, suffix))

    @property
    def needs_sync(self) -> bool:
        """True if a name was changed since the directory was last forced to disk."""
        return self.changes > self._synced_changes

    def mark_synced(self, changes: int) -> None:
        """Note that the directory has been forced to disk as it was after so many changes, or later."""
        self._synced_changes = max(self._synced_changes, changes)

    def move_to(self, path: str) -> None:
        """Rename the directory."""
        os.rename(self.path, path)
        self.path = path
