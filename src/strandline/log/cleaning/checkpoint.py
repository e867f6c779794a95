"""How far each log is clean, kept in the log directory's `cleaner-offset-checkpoint`."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from strandline.errors import KafkaStorageError
from strandline.log.checkpoints import CLEANER_OFFSETS, read_offsets, write_offsets
from strandline.model import TopicPartition

if TYPE_CHECKING:
    from strandline.log.unified import UnifiedLog

logger = logging.getLogger(__name__)


class CleanerCheckpoints:
    """The first dirty offset of every log that was ever cleaned. Each directory's file is read once."""

    __slots__ = ("_offsets",)

    def __init__(self) -> None:
        self._offsets: dict[str, dict[TopicPartition, int]] = {}

    def get(self, log: UnifiedLog) -> int | None:
        """Where the last pass over the log ended; None if there was none."""
        return self._of_directory(log.env.directory.path).get(log.topic_partition)

    def set(self, log: UnifiedLog, offset: int) -> None:
        """Note where a pass ended. `write` makes that durable."""
        self._of_directory(log.env.directory.path)[log.topic_partition] = offset

    def write(self, directory: str, logs: Iterable[UnifiedLog]) -> None:
        """Write the file of a directory for the logs it still holds. Blocking: it is forced to disk."""
        present = {log.topic_partition for log in logs if log.env.directory.path == directory}
        offsets = self._of_directory(directory)
        kept = {partition: offset for partition, offset in sorted(offsets.items()) if partition in present}
        self._offsets[directory] = kept
        write_offsets(os.path.join(directory, CLEANER_OFFSETS), kept)

    def _of_directory(self, directory: str) -> dict[TopicPartition, int]:
        offsets = self._offsets.get(directory)
        if offsets is None:
            try:
                offsets = read_offsets(os.path.join(directory, CLEANER_OFFSETS))
            except KafkaStorageError as error:
                # Without it everything counts as dirty, which costs a pass and loses nothing.
                logger.warning("starting without the cleaner's checkpoint: %s", error)
                offsets = {}
            self._offsets[directory] = offsets
        return offsets
