"""All logs of a broker, over all its log directories."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeAlias
from uuid import UUID

from strandline.clock import Chance, Clock, Ids, SystemIds
from strandline.config import LogSettings, TopicConfig
from strandline.errors import KafkaStorageError
from strandline.log.environment import DEFAULT_EXPIRATION_MS, DeletionQueue, LogDirectory, LogEnvironment
from strandline.log.files import DELETE_DIRECTORY, STRAY_DIRECTORY, renamed_directory
from strandline.log.housekeeping import Housekeeping
from strandline.log.incarnations import KeptIncarnation
from strandline.log.index_file import LoadedIndexes
from strandline.log.last_written import check_clock
from strandline.log.loading import create_log
from strandline.log.storage import ConfigOf, IsStray, Storage
from strandline.log.unified import UnifiedLog
from strandline.model import TopicIdPartition, TopicPartition

logger = logging.getLogger(__name__)

DirectoryFailure: TypeAlias = Callable[[Path], None]


class LogManager:
    """Finds, creates and removes logs. `load` first, then `run` as a task, `shutdown` last.

    A log directory that fails takes its own logs offline (KafkaStorageError); `on_directory_failure` is called, on the
    event loop, and the others go on. Without any usable directory `load` raises.
    `boot_id` changes when the machine is started again (`incarnations`); None if that cannot be known.
    """

    def __init__(
        self,
        settings: LogSettings,
        *,
        node_id: int,
        clock: Clock,
        chance: Chance,
        ids: Ids | None = None,
        cluster_id: str | None = None,
        producer_expiration_ms: int = DEFAULT_EXPIRATION_MS,
        checkpoint_interval_ms: int = 5_000,
        on_directory_failure: DirectoryFailure | None = None,
        remote_enabled: bool = False,
        boot_id: str | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._ids = ids or SystemIds()
        self._on_directory_failure = on_directory_failure
        self._logs: dict[TopicPartition, UnifiedLog] = {}
        self._deletions = DeletionQueue()
        self._executor = ThreadPoolExecutor(max_workers=max(2, len(settings.log_dirs)), thread_name_prefix="log-disk")
        cache = LoadedIndexes()
        directories = [LogDirectory(os.path.abspath(path), self._directory_failed) for path in settings.log_dirs]
        self._storages = [
            Storage(
                LogEnvironment(
                    directory=directory,
                    clock=clock,
                    chance=chance,
                    cache=cache,
                    deletions=self._deletions,
                    producer_expiration_ms=producer_expiration_ms,
                    remote_enabled=remote_enabled,
                    on_flush_wanted=self._flush_wanted,
                    on_dirty=self._became_dirty,
                    store_log_starts=partial(self._store_log_starts, directory),
                ),
                node_id=node_id,
                cluster_id=cluster_id,
                ids=self._ids,
                threads=settings.num_recovery_threads_per_data_dir,
                boot_id=boot_id,
            )
            for directory in directories
        ]
        self._housekeeping = Housekeeping(
            self, settings, clock, self._executor, checkpoint_interval_ms=checkpoint_interval_ms
        )
        self._is_loaded = False
        self._has_lost_directory = False

    # Life

    def load(
        self,
        config_of: ConfigOf,
        *,
        is_stray: IsStray | None = None,
        place_of: Callable[[TopicPartition], UUID | None] = lambda partition: None,
    ) -> None:
        """Open every partition in every log directory. Blocking. Repairs them after an unclean stop.

        Partitions for which `is_stray` is true are set aside: renamed, kept on disk, not served. So is the other log of
        one that is in two directories, if `place_of` gives the id of one of them. Raises KafkaStorageError if it does
        not, or if no directory is usable.
        """
        check_clock((str(directory.path) for directory in self.directories), self._clock)
        for storage in self._storages:
            for log in storage.load(config_of, is_stray):
                other = self._logs.get(log.topic_partition)
                if other is not None:
                    log = self._placed(log, other, place_of(log.topic_partition))
                self._logs[log.topic_partition] = log
        for log in self._logs.values():
            log.flusher.watch_unflushed()
        if all(storage.directory.is_offline for storage in self._storages):
            reason = " ".join(f"{directory.path}: {directory.why_offline}." for directory in self.directories)
            raise KafkaStorageError(f"None of the log directories is usable. {reason}")
        self._is_loaded = True

    def _placed(self, log: UnifiedLog, other: UnifiedLog, place: UUID | None) -> UnifiedLog:
        """The one of two logs of a partition that is in its place; the other one is set aside.

        A directory was away, and the replica was made anew in another one. Now the first one is back.
        """
        kept = next((one for one in (log, other) if place is not None and self.directory_id_of(one) == place), None)
        if kept is None:
            raise KafkaStorageError(
                f"{log.topic_partition} is in two log directories: {other.directory} and {log.directory}."
            )
        misplaced = other if kept is log else log
        logger.warning("%s is in %s: %s is set aside", log.topic_partition, kept.directory, misplaced.directory)
        self._logs[log.topic_partition] = misplaced
        self.mark_stray(log.topic_partition)
        return kept

    def on_truncation(self, listener: Callable[[UnifiedLog, int], None]) -> None:
        """Tell `listener` of each log that is cut, and where it goes on from then on."""
        for storage in self._storages:
            storage.env.on_truncated = listener

    async def run(self) -> None:
        """Do the housekeeping until cancelled: retention, flushes, checkpoints, deletions."""
        await self._housekeeping.run()

    def shutdown(self, *, broker_epoch: int = -1) -> None:
        """Close every log, so that the next start has nothing to repair. Blocking. `run` must have ended."""
        if self._has_lost_directory:
            broker_epoch = -1  # what was written to it may be gone, even if it can be read again
        for storage in self._storages:
            storage.close([log for log in self._logs.values() if log.env is storage.env], broker_epoch=broker_epoch)
        self._executor.shutdown()

    # Logs

    def get(self, partition: TopicPartition) -> UnifiedLog | None:
        """The log of a partition, None if there is none."""
        return self._logs.get(partition)

    def holds(self, partition: TopicIdPartition) -> bool:
        """True if there is a log of this partition, by its topic id.

        A directory without a topic id, or with that of an earlier topic of the name, is a leftover and does not count.
        """
        log = self._logs.get(partition.topic_partition)
        return log is not None and log.topic_id == partition.topic_id

    def all_logs(self) -> Iterator[UnifiedLog]:
        """Every log, offline ones too."""
        return iter(tuple(self._logs.values()))

    def __len__(self) -> int:
        return len(self._logs)

    def get_or_create(
        self, partition: TopicPartition, topic_id: UUID | None, config: TopicConfig, *, is_new: bool = True
    ) -> UnifiedLog:
        """The log of a partition, created in the directory with the fewest logs if there is none.

        Raises KafkaStorageError if its directory is offline, or if the partition is not new and may lie in one that
        could not be read.
        """
        log = self._logs.get(partition)
        if log is not None:
            log.check_online()
            if topic_id is not None:
                log.assign_topic_id(topic_id)
            return log
        if not is_new and self.offline_directories:
            raise KafkaStorageError(f"{partition} may lie in a log directory that is offline.")
        storage = self._roomiest()
        try:
            storage.make_room_for(partition, self._logs.values())
            log = create_log(partition, config, storage.env, topic_id=topic_id)
        except OSError as error:
            raise storage.directory.fail(error) from error
        self._logs[partition] = log
        return log

    def _roomiest(self) -> Storage:
        online = [storage for storage in self._storages if not storage.directory.is_offline]
        if not online:
            raise KafkaStorageError("No log directory is online.")
        if len(online) == 1:
            return online[0]
        counts = {id(storage.env): 0 for storage in online}
        for log in self._logs.values():
            if id(log.env) in counts:
                counts[id(log.env)] += 1
        return min(online, key=lambda storage: counts[id(storage.env)])

    def delete(self, partition: TopicPartition) -> None:
        """Remove a log: renamed at once, off the disk after file.delete.delay.ms."""
        log = self._set_aside(partition, DELETE_DIRECTORY)
        if log is not None:
            self._deletions.add(self._clock.monotonic() + log.config.file_delete_delay_ms / 1000, str(log.directory))

    def mark_stray(self, partition: TopicPartition) -> None:
        """Set a log aside that the cluster does not know: renamed, kept on disk, not served."""
        self._set_aside(partition, STRAY_DIRECTORY)

    def _set_aside(self, partition: TopicPartition, state: str) -> UnifiedLog | None:
        log = self._logs.pop(partition, None)
        if log is None:
            return None
        log.abandon()
        directory = log.env.directory
        if directory.is_offline:
            return None
        for storage in self._storages:
            if storage.env is log.env:
                storage.forget(partition)
        try:
            log.move_to(log.env.path_of(renamed_directory(partition, self._ids.uuid(), state)))
        except OSError as error:
            directory.fail(error)
            return None
        return log

    # Directories

    @property
    def kept(self) -> KeptIncarnation:
        """The last incarnation of the broker if what is online has everything that it wrote; otherwise none.

        Directories that are away are not among the `directory_ids`: the controller knows which replicas are in them.
        """
        found = {storage.kept for storage in self._storages if not storage.directory.is_offline}
        epochs, ids = {one.broker_epoch for one in found}, {one.incarnation_id for one in found}
        if len(epochs) != 1:
            return KeptIncarnation()
        return KeptIncarnation(epochs.pop(), ids.pop() if len(ids) == 1 else None)

    @property
    def directory_ids(self) -> tuple[UUID, ...]:
        """The ids of the directories that are online."""
        online = (storage for storage in self._storages if not storage.directory.is_offline)
        return tuple(storage.directory_id for storage in online if storage.directory_id is not None)

    @property
    def failed_directory_ids(self) -> tuple[UUID, ...]:
        """The ids of the directories that have failed, as far as they could be read before."""
        offline = (storage for storage in self._storages if storage.directory.is_offline)
        return tuple(storage.directory_id for storage in offline if storage.directory_id is not None)

    def directory_id_of(self, log: UnifiedLog) -> UUID | None:
        """The id of the directory that a log is in."""
        return next((storage.directory_id for storage in self._storages if storage.env is log.env), None)

    def note_incarnation(self, broker_epoch: int, incarnation_id: UUID | None = None) -> None:
        """This process has everything of the broker epoch, which is its own if it has registered.

        Before that it gives its own id, too: it may not live to hear its epoch. Blocking. A directory that fails goes
        offline.
        """
        if self._has_lost_directory:
            return
        for storage in self._storages:
            storage.note_incarnation(KeptIncarnation(broker_epoch, incarnation_id))

    @property
    def directories(self) -> list[LogDirectory]:
        """Every log directory, offline ones too."""
        return [storage.directory for storage in self._storages]

    @property
    def storages(self) -> list[Storage]:
        """Every log directory with its files."""
        return self._storages

    @property
    def offline_directories(self) -> list[LogDirectory]:
        """The log directories that have failed."""
        return [directory for directory in self.directories if directory.is_offline]

    @property
    def deletions(self) -> DeletionQueue:
        """Files that wait to be deleted."""
        return self._deletions

    @property
    def housekeeping(self) -> Housekeeping:
        """The steps that `run` takes."""
        return self._housekeeping

    def _directory_failed(self, directory: LogDirectory) -> None:
        if self._is_loaded and not self._has_lost_directory:
            # The next incarnation must not take what is left for everything that this one wrote. Of a directory that
            # could not be loaded it will know: that one has not noted the epoch of this incarnation.
            self._has_lost_directory = True
            for storage in self._storages:
                storage.note_incarnation(KeptIncarnation())
        if self._is_loaded and self._on_directory_failure is not None:
            self._on_directory_failure(Path(directory.path))

    def _flush_wanted(self, partition: TopicPartition) -> None:
        self._housekeeping.flush_soon(partition)

    async def _store_log_starts(self, directory: LogDirectory, is_stored: Callable[[], bool]) -> None:
        await self._housekeeping.store_log_starts(directory, is_stored)

    def _became_dirty(self, partition: TopicPartition) -> None:
        log = self._logs.get(partition)
        if log is not None:
            self._housekeeping.watch_flush_time(log)
