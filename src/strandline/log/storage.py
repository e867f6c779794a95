"""One log directory of a broker: its partitions and files, opening, checkpoints, closing."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeAlias
from uuid import UUID

from strandline.clock import Ids
from strandline.config import TopicConfig
from strandline.crash import crash_point
from strandline.errors import KafkaStorageError, StrandlineError
from strandline.log.checkpoints import (
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    read_clean_shutdown,
    read_offsets,
    read_topic_id,
    remove_clean_shutdown,
    write_clean_shutdown,
    write_offsets,
)
from strandline.log.directory_lock import DirectoryLock, claim_directory
from strandline.log.environment import LogDirectory, LogEnvironment
from strandline.log.files import (
    FOREIGN_TOPICS,
    STRAY_DIRECTORY,
    is_delete_directory,
    parse_partition_directory,
    renamed_directory,
)
from strandline.log.incarnations import KeptIncarnation, read_incarnation, write_incarnation
from strandline.log.loading import LoadedOffsets, load_log
from strandline.log.unified import UnifiedLog
from strandline.model import NO_OFFSET, TopicPartition

logger = logging.getLogger(__name__)

ConfigOf: TypeAlias = Callable[[str], TopicConfig]
IsStray: TypeAlias = Callable[[TopicPartition, UUID | None], bool]

_CLOSING_THREADS: Final = 8


def _is_start_noted(log: UnifiedLog) -> bool:
    """Whether the checkpoint has to name the start of a log, which its first segment does not say.

    One that was noted before stays noted: its remote segments below are deleted, and it may be tiered again.
    """
    is_above_segment = log.log_start_offset > log.segments.first.base_offset
    return log.is_remote or is_above_segment or log.start.checkpointed != NO_OFFSET


class Storage:
    """A log directory and its files beside the partitions: lock, identity, checkpoints."""

    __slots__ = (
        "_boot_id",
        "_cluster_id",
        "_ids",
        "_lock",
        "_node_id",
        "_plans",
        "_stale",
        "_threads",
        "_writing",
        "_written",
        "directory_id",
        "env",
        "kept",
        "last_broker_epoch",
    )

    def __init__(
        self,
        env: LogEnvironment,
        *,
        node_id: int,
        cluster_id: str | None,
        ids: Ids,
        threads: int,
        boot_id: str | None = None,
    ) -> None:
        self.env = env
        self.directory_id: UUID | None = None
        self.last_broker_epoch: int | None = None
        """The broker epoch of the last clean shutdown; None after an unclean one."""
        self.kept = KeptIncarnation()
        """The last incarnation if everything that it wrote is here, otherwise none."""
        self._boot_id = boot_id
        self._node_id = node_id
        self._cluster_id = cluster_id
        self._ids = ids
        self._threads = threads
        self._lock: DirectoryLock | None = None
        # Partitions that were removed, but which the checkpoints on disk may still name.
        self._stale: set[TopicPartition] = set()
        self._writing = threading.Lock()
        self._plans = 0
        self._written: dict[str, int] = {}

    @property
    def directory(self) -> LogDirectory:
        return self.env.directory

    # Opening

    def load(self, config_of: ConfigOf, is_stray: IsStray | None) -> list[UnifiedLog]:
        """Open all partitions. A directory that cannot be used goes offline and has none.

        Raises KafkaStorageError if another broker has it, InvalidConfig or InconsistentClusterId if it is not ours.
        """
        path = self.directory.path
        try:
            os.makedirs(path, exist_ok=True)
            self._lock = DirectoryLock(path)
            self.directory_id = claim_directory(path, node_id=self._node_id, cluster_id=self._cluster_id, ids=self._ids)
            return self._load(config_of, is_stray)
        except OSError as error:
            self.directory.fail(error)
            return []
        except StrandlineError:
            self._release()
            raise

    def _load(self, config_of: ConfigOf, is_stray: IsStray | None) -> list[UnifiedLog]:
        path = self.directory.path
        self.last_broker_epoch = read_clean_shutdown(path)
        is_clean = self.last_broker_epoch is not None
        self._remember_incarnation()
        # From here on a crash must be noticed.
        remove_clean_shutdown(path)
        recovery_points = self.read_checkpoint(RECOVERY_POINTS)
        log_starts = self.read_checkpoint(LOG_START_OFFSETS)
        high_watermarks = self.read_checkpoint(HIGH_WATERMARKS)
        configs: dict[str, TopicConfig] = {}

        def open_one(partition: TopicPartition) -> UnifiedLog:
            return load_log(
                partition,
                self.env.path_of(str(partition)),
                configs[partition.topic],
                self.env,
                offsets=LoadedOffsets(
                    recovery_point=recovery_points.get(partition, 0),
                    log_start=log_starts.get(partition),
                    high_watermark=high_watermarks.get(partition, 0),
                ),
                is_clean=is_clean,
            )

        partitions = list(self._partitions(is_stray))
        self._stale = {*recovery_points, *log_starts, *high_watermarks}.difference(partitions)
        for partition in partitions:
            if partition.topic not in configs:
                configs[partition.topic] = config_of(partition.topic)
        if is_clean or len(partitions) < 2:
            return [open_one(partition) for partition in partitions]
        # Threads help only where there is much to read and check.
        with ThreadPoolExecutor(max_workers=self._threads, thread_name_prefix="log-recovery") as threads:
            return list(threads.map(open_one, partitions))

    def _remember_incarnation(self) -> None:
        """Kept in a file of its own: this process may die before it has registered, and the next one has to know."""
        path = self.directory.path
        if self.last_broker_epoch is not None:
            self.kept = KeptIncarnation(self.last_broker_epoch)
            self.note_incarnation(self.kept)
        elif self._boot_id is not None:
            self.kept = read_incarnation(path, self._boot_id)

    def note_incarnation(self, kept: KeptIncarnation) -> None:
        """Remember whose records are all here. Blocking. A directory that fails goes offline."""
        if self._boot_id is None or self.directory.is_offline:
            return
        try:
            write_incarnation(self.directory.path, kept, self._boot_id)
        except OSError as error:
            self.directory.fail(error)

    def _partitions(self, is_stray: IsStray | None) -> Iterable[TopicPartition]:
        with os.scandir(self.directory.path) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        for name in names:
            if is_delete_directory(name):
                shutil.rmtree(self.env.path_of(name), ignore_errors=True)
                continue
            partition = parse_partition_directory(name)
            if partition is None or partition.topic in FOREIGN_TOPICS:
                continue
            if is_stray is not None and is_stray(partition, self._topic_id_in(name)):
                target = renamed_directory(partition, self._ids.uuid(), STRAY_DIRECTORY)
                logger.warning("%s is not a partition of this broker; it is kept as %s", name, target)
                os.rename(self.env.path_of(name), self.env.path_of(target))
                continue
            yield partition

    def _topic_id_in(self, name: str) -> UUID | None:
        try:
            return read_topic_id(self.env.path_of(name))
        except KafkaStorageError as error:
            logger.warning("%s", error)
            return None

    # Checkpoints

    def read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """One of the offset checkpoints. A damaged one is logged and counts as empty."""
        try:
            return read_offsets(self.env.path_of(name))
        except KafkaStorageError as error:
            logger.warning("going on without a checkpoint: %s", error)
            return {}

    def plan_checkpoints(self, logs: Iterable[UnifiedLog], *, only_changed: bool = True) -> list[Callable[[], None]]:
        """What to write, as blocking functions for another thread. Nothing if nothing changed."""
        directory = self.directory
        stale = set(self._stale)
        only_changed = only_changed and not stale
        plans: list[Callable[[], None]] = []
        if only_changed and not (
            directory.has_new_high_watermarks or directory.has_new_recovery_points or directory.has_new_log_starts
        ):
            return plans
        mine = [log for log in logs if log.env is self.env]
        if directory.has_new_high_watermarks or not only_changed:
            directory.has_new_high_watermarks = False
            plans.append(self._plan(HIGH_WATERMARKS, {log.topic_partition: log.high_watermark for log in mine}))
        if directory.has_new_recovery_points or not only_changed:
            directory.has_new_recovery_points = False
            plans.append(self._plan(RECOVERY_POINTS, {log.topic_partition: log.flusher.recovery_point for log in mine}))
        if directory.has_new_log_starts or not only_changed:
            plans.append(self.plan_log_starts(mine))
        if stale:
            plans.append(lambda: self._stale.difference_update(stale))
        return plans

    def plan_log_starts(self, logs: Iterable[UnifiedLog]) -> Callable[[], None]:
        """Write where the logs of this directory start, as a blocking function for another thread."""
        self.directory.has_new_log_starts = False
        starts = [(log, log.log_start_offset) for log in logs if log.env is self.env and _is_start_noted(log)]

        def note() -> None:
            for log, start in starts:
                log.start.checkpointed = start

        return self._plan(LOG_START_OFFSETS, {log.topic_partition: at for log, at in starts}, note)

    def _plan(
        self, name: str, offsets: dict[TopicPartition, int], written: Callable[[], None] = lambda: None
    ) -> Callable[[], None]:
        self._plans += 1
        number = self._plans

        def write() -> None:
            with self._writing:
                if self._written.get(name, 0) < number:  # else a later plan was quicker
                    write_offsets(self.env.path_of(name), offsets)
                    self._written[name] = number
                    written()

        return write

    def forget(self, partition: TopicPartition) -> None:
        """A partition has left this directory."""
        self._stale.add(partition)

    def make_room_for(self, partition: TopicPartition, logs: Iterable[UnifiedLog]) -> None:
        """Called before a partition is created: removes the checkpoints of a deleted one with the same name.

        Otherwise, after a crash, the new log would begin where the old one did, and lose its records before that.
        Blocking, but rare.
        """
        if partition in self._stale:
            for write in self.plan_checkpoints(logs, only_changed=False):
                write()

    # Closing

    def close(self, logs: list[UnifiedLog], *, broker_epoch: int) -> None:
        """Close the logs, write the checkpoints, and mark the shutdown as clean if nothing failed. Blocking."""
        try:
            if not self.directory.is_offline and self._lock is not None:
                self._close(logs, broker_epoch)
        except (OSError, StrandlineError) as error:
            logger.error("the log directory %s was not closed cleanly: %s", self.directory.path, error)
        finally:
            self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _close(self, logs: list[UnifiedLog], broker_epoch: int) -> None:
        # Mostly waiting for the disk, so threads help.
        with ThreadPoolExecutor(max_workers=_CLOSING_THREADS, thread_name_prefix="log-close") as threads:
            for _ in threads.map(UnifiedLog.close, logs):
                pass
        crash_point("log.close.before_checkpoints")
        for write in self.plan_checkpoints(logs, only_changed=False):
            write()
        crash_point("log.close.before_clean_mark")
        write_clean_shutdown(self.directory.path, broker_epoch)
