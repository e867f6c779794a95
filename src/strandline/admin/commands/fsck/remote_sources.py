"""Where `strandline fsck` reads remote log metadata, topics and log bounds: log directories, or a running cluster."""

from __future__ import annotations

import mmap
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

from strandline.admin.commands.dump.remote_records import fetch_records
from strandline.client import EARLIEST, EARLIEST_LOCAL, Cluster, CommandFailed, list_offsets, sentences
from strandline.controlplane import DatabaseTime, DisklessLog
from strandline.controlplane.conversion import ConvertedLogs
from strandline.errors import CorruptMessage, KafkaStorageError
from strandline.log.checkpoints import LOG_START_OFFSETS, read_clean_shutdown, read_epochs, read_offsets
from strandline.log.directory_lock import DirectoryLock
from strandline.log.files import LEADER_EPOCHS, LOG, parse_numbered, parse_partition_directory
from strandline.model import NO_LEADER, REMOTE_LOG_METADATA_TOPIC, Offset, TopicPartition
from strandline.records import Buffer, iter_headers
from strandline.remote.fsck import ClusterState, TieredLogBounds
from strandline.remote.topic_based.topic import MetadataTopicRecord
from strandline.replication.remote_metadata import read_chunk
from strandline.wire.errors import ErrorCode


class Conversion(NamedTuple):
    """What the control plane knows of the tiering pipeline; nothing where its database is not open."""

    logs: Sequence[DisklessLog] = ()
    """Logs of which something was converted, or is being converted."""
    uploads: Collection[UUID] = frozenset()
    """Segments whose claim has not expired."""

    def added_to(self, state: ClusterState) -> ClusterState:
        """The same cluster, in which converted offsets have to be remote, although no log directory has them."""
        bounds = dict(state.bounds)
        for log in self.logs:
            begin, end = log.diskless_log_start_offset, log.diskless_start_offset
            known = bounds.get(log.partition.topic_partition)
            bounds[log.partition.topic_partition] = (
                TieredLogBounds(max(log.log_start_offset, begin), end)
                if known is None
                else known._replace(converted=(begin, end))
            )
        return state._replace(bounds=bounds, uploads=self.uploads)


NO_CONVERSION: Final = Conversion()


async def read_conversion(conversion: ConvertedLogs, time: DatabaseTime) -> Conversion:
    """Ask the control plane. Raises SqlError."""
    logs = await conversion.converted_logs()
    uploads = await conversion.segment_uploads([log.partition for log in logs])
    now_ms = await time.now_ms()
    return Conversion(logs, frozenset(one.segment_id for one in uploads if one.expires_at_ms > now_ms))


class LogsOutOfReach(CommandFailed):
    """The log directories are not here, not all of them, or belong to a running broker."""


@contextmanager
def locked(log_dirs: Sequence[str]) -> Iterator[None]:
    """Hold the locks of the log directories, so that no broker starts on them. Raises LogsOutOfReach."""
    with ExitStack() as stack:
        for directory in log_dirs:
            if not os.path.isdir(directory):
                raise LogsOutOfReach(
                    f"There is no log directory {directory}: name the settings of the broker with --data-dir or "
                    "--config, or a running one with --bootstrap HOST:PORT."
                )
            try:
                stack.callback(DirectoryLock(directory).release)
            except KafkaStorageError as error:
                raise LogsOutOfReach(
                    f"A broker uses the log directory {directory}: stop it, or name it with --bootstrap HOST:PORT."
                ) from error
        yield


class LogDirectories:
    """A `FsckSource` on the files of a stopped broker; its topics were read from its database."""

    def __init__(
        self,
        log_dirs: Sequence[str],
        topics: Mapping[UUID, int],
        conversion: Conversion = NO_CONVERSION,
        *,
        metadata_partitions: int,
    ) -> None:
        """Raises LogsOutOfReach if a part of the metadata topic is not here."""
        self._log_dirs, self._topics, self._conversion = log_dirs, topics, conversion
        self.metadata_partitions = metadata_partitions
        self._metadata = {
            partition.partition: path
            for partition, path in self._partitions()
            if partition.topic == REMOTE_LOG_METADATA_TOPIC
        }
        missing = sorted(set(range(metadata_partitions)) - self._metadata.keys())
        if missing:
            names = ", ".join(map(str, missing))
            raise LogsOutOfReach(
                f"Partitions {names} of {REMOTE_LOG_METADATA_TOPIC} are not in {', '.join(log_dirs)}: other brokers "
                "have them. Start all of them, and name one with --bootstrap."
            )

    def records(self, partition: int, from_offset: Offset) -> Iterator[MetadataTopicRecord]:
        """The records of a metadata partition, from an offset on."""
        files = _log_files(self._metadata[partition])
        for at, (_, file) in enumerate(files):
            if at + 1 == len(files) or files[at + 1][0] > from_offset:
                yield from _records_of_file(file, from_offset)

    def state(self) -> ClusterState:
        """The topics of the database, and where the logs in the directories begin."""
        starts: dict[TopicPartition, Offset] = {}
        with sentences():
            for directory in self._log_dirs:
                starts.update(read_offsets(os.path.join(directory, LOG_START_OFFSETS)))
            is_exact = all(read_clean_shutdown(directory) is not None for directory in self._log_dirs)
            bounds = {
                partition: _bounds(path, starts.get(partition), is_exact=is_exact)
                for partition, path in self._partitions()
            }
        found = {partition: each for partition, each in bounds.items() if each is not None}
        return self._conversion.added_to(ClusterState(self._topics, found))

    def _partitions(self) -> Iterator[tuple[TopicPartition, Path]]:
        for directory in self._log_dirs:
            for path in sorted(Path(directory).iterdir()):
                partition = parse_partition_directory(path.name)
                if partition is not None and path.is_dir():
                    yield partition, path


def _log_files(directory: Path) -> list[tuple[Offset, Path]]:
    """The live segments of a partition by their base offsets."""
    parsed = ((parse_numbered(path.name), path) for path in directory.iterdir())
    return sorted((name[0], path) for name, path in parsed if name is not None and name[1:] == (LOG, ""))


def _bounds(directory: Path, log_start: Offset | None, *, is_exact: bool) -> TieredLogBounds | None:
    files = _log_files(directory)
    if not files:
        return None
    local_start = max(files[0][0], log_start or 0)
    if log_start == local_start:
        return TieredLogBounds(log_start, local_start)
    return TieredLogBounds(log_start, local_start, read_epochs(str(directory / LEADER_EPOCHS)) or None, is_exact)


def _records_of_file(file: Path, from_offset: Offset) -> Iterator[MetadataTopicRecord]:
    with file.open("rb") as opened:
        if os.fstat(opened.fileno()).st_size == 0:
            return
        with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as data:
            yield from _records(data, from_offset)


def _records(data: Buffer, from_offset: Offset) -> Iterator[MetadataTopicRecord]:
    """The records of batches, from an offset on. Where the bytes are no batch, the last one says so."""
    position = from_offset
    try:
        for at, header in iter_headers(data):
            if header.last_offset < from_offset:
                continue
            batch = bytes(memoryview(data)[at : at + header.size])
            for record in read_chunk(batch, header.base_offset).records:
                if record.offset >= from_offset:
                    yield record
            position = header.next_offset
    except CorruptMessage as error:
        yield MetadataTopicRecord(position, None, f"bytes that are no batch: {error}")


class RunningCluster:
    """A `FsckSource` that asks the leaders of a running cluster."""

    def __init__(self, cluster: Cluster, conversion: Conversion) -> None:
        self._cluster, self._conversion = cluster, conversion
        with sentences():
            (topic,) = cluster.metadata([REMOTE_LOG_METADATA_TOPIC]).topics
        exists = topic.error_code == ErrorCode.NONE
        self._topic_id = topic.topic_id
        self._leaders: dict[int, int] = (
            {row.partition_index: row.leader_id for row in topic.partitions} if exists else {}
        )
        away = sorted(partition for partition, leader in self._leaders.items() if leader == NO_LEADER)
        if away:
            raise CommandFailed(
                f"Partitions {', '.join(map(str, away))} of {REMOTE_LOG_METADATA_TOPIC} have no leader: start the "
                "brokers that have them."
            )

    @property
    def metadata_partitions(self) -> int:
        return len(self._leaders)

    def records(self, partition: int, from_offset: Offset) -> Iterator[MetadataTopicRecord]:
        """What consumers may read now of a metadata partition, from an offset on."""
        with sentences():
            leader = self._cluster.broker(self._leaders[partition])
            for position, data in fetch_records(leader, self._topic_id, partition, from_offset):
                yield from _records(data, position)

    def state(self) -> ClusterState:
        """What the cluster says; partitions without a leader have no bounds."""
        with sentences():
            topics = [topic for topic in self._cluster.metadata(None).topics if topic.error_code == ErrorCode.NONE]
            leaders = {(topic.name, row.partition_index): row.leader_id for topic, row in _rows(topics)}
            known = {place: leader for place, leader in leaders.items() if leader != NO_LEADER}
            starts = list_offsets(self._cluster, known, EARLIEST)
            local_starts = list_offsets(self._cluster, known, EARLIEST_LOCAL)
        bounds = {
            TopicPartition(*place): TieredLogBounds(starts[place], local_starts[place])
            for place in starts.keys() & local_starts.keys()
        }
        counts = {topic.topic_id: len(topic.partitions) for topic in topics}
        return self._conversion.added_to(ClusterState(counts, bounds))


def _rows(topics: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    return ((topic, row) for topic in topics for row in topic.partitions)
