"""What the logs of one log directory share: the state of the directory, time and chance, caches, pending deletions."""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from strandline.clock import Chance, Clock
from strandline.errors import KafkaStorageError
from strandline.log.files import remove_if_there
from strandline.log.index_file import LoadedIndexes
from strandline.model import TopicPartition

if TYPE_CHECKING:
    from strandline.log.segment import LogSegment
    from strandline.log.unified import UnifiedLog

logger = logging.getLogger(__name__)

DEFAULT_EXPIRATION_MS: Final = 86_400_000

DirectoryFailed = Callable[["LogDirectory"], None]


class LogDirectory:
    """One entry of `log.dirs`. When an operation on it fails, it is offline until the broker restarts.

    `fail` may be called from any thread; everything else belongs to the event loop.
    """

    __slots__ = (
        "_on_failure",
        "error",
        "has_new_high_watermarks",
        "has_new_log_starts",
        "has_new_recovery_points",
        "path",
    )

    def __init__(self, path: str, on_failure: DirectoryFailed | None = None) -> None:
        self.path = path
        self.error: Exception | None = None
        self.has_new_high_watermarks = False
        self.has_new_log_starts = False
        self.has_new_recovery_points = False
        self._on_failure = on_failure

    @property
    def is_offline(self) -> bool:
        return self.error is not None

    def fail(self, error: Exception) -> KafkaStorageError:
        """Take the directory offline. Returns the error to raise."""
        if self.error is None:
            self.error = error
            logger.error("the log directory %s is offline: %s", self.path, self.why_offline)
            if self._on_failure is not None:
                self._on_failure(self)
        return self._offline()

    def check(self) -> None:
        """Raises KafkaStorageError if the directory is offline."""
        if self.error is not None:
            raise self._offline()

    @property
    def why_offline(self) -> str:
        """The reason and what to do, without a full stop; empty while the directory is online."""
        match self.error:
            case None:
                return ""
            case OSError(errno=errno.ENOSPC | errno.EDQUOT):
                return "the disk is full. Free some space there and restart the broker"
            case FileExistsError() | NotADirectoryError():
                return f"it is not a directory ({self.error}). Name another one in log.dirs"
            case error:
                return str(error)

    def _offline(self) -> KafkaStorageError:
        return KafkaStorageError(f"The log directory {self.path} is offline: {self.why_offline}.")


class DeletionQueue:
    """Files that are deleted after `file.delete.delay.ms`, so that followers and slow readers can finish."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[tuple[float, LogSegment | str]] = []

    def add(self, due: float, doomed: LogSegment | str) -> None:
        """Delete a segment, or a file or directory by its path, at `due` of the monotonic clock."""
        self._waiting.append((due, doomed))

    def take_due(self, now: float) -> list[LogSegment | str]:
        """The deletions that are due."""
        taken = [doomed for due, doomed in self._waiting if due <= now]
        if taken:
            self._waiting = [entry for entry in self._waiting if entry[0] > now]
        return taken

    @property
    def next_due(self) -> float | None:
        """When the next deletion is due."""
        return min((due for due, _ in self._waiting), default=None)

    def __len__(self) -> int:
        return len(self._waiting)


def delete_all(doomed: list[LogSegment | str]) -> None:
    """Unlink files and directories. Blocking; a failure is logged and leaves the file for the next start."""
    for item in doomed:
        try:
            if not isinstance(item, str):
                item.remove_files()
            elif os.path.isdir(item):
                shutil.rmtree(item)
            else:
                remove_if_there(item)
        except OSError as error:
            logger.warning("could not delete %s: %s", item, error)


def _do_nothing(partition: TopicPartition) -> None:
    """No listener."""


def _keep_nothing(log: UnifiedLog, offset: int) -> None:
    """No listener."""


async def _store_nothing(is_stored: Callable[[], bool]) -> None:
    """No checkpoint: the log is by itself."""


@dataclass(slots=True, kw_only=True)
class LogEnvironment:
    """What a log needs from outside. One for each log directory."""

    directory: LogDirectory
    clock: Clock
    chance: Chance
    cache: LoadedIndexes = field(default_factory=LoadedIndexes)
    deletions: DeletionQueue = field(default_factory=DeletionQueue)
    producer_expiration_ms: int = DEFAULT_EXPIRATION_MS
    remote_enabled: bool = False
    """remote.log.storage.system.enable: topics may keep closed segments in remote storage."""
    on_flush_wanted: Callable[[TopicPartition], None] = _do_nothing
    """Called on the event loop when a log has rolled and its closed segments should be forced to disk."""
    on_dirty: Callable[[TopicPartition], None] = _do_nothing
    """Called on the event loop with the first append after a flush."""
    on_truncated: Callable[[UnifiedLog, int], None] = _keep_nothing
    """Called when a log was cut: with its new end, or with where it goes on."""
    store_log_starts: Callable[[Callable[[], bool]], Awaitable[None]] = _store_nothing
    """Writes the log starts of this directory to its checkpoint, unless the argument says that they are there by then.
    Raises KafkaStorageError."""

    def path_of(self, name: str) -> str:
        """A path inside the log directory."""
        return os.path.join(self.directory.path, name)
