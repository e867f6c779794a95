"""Reads the records of `__remote_log_metadata` into caches, which hold live segments only, packed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from strandline.errors import CorruptMessage
from strandline.model import REMOTE_LOG_METADATA_TOPIC, Offset, TopicIdPartition
from strandline.objects.comparing import Progress
from strandline.remote.fsck.values import FsckSource
from strandline.remote.ports import RemoteResourceNotFound
from strandline.remote.topic_based.cache import RemoteLogMetadataCache, RemotePartitionMetadataStore
from strandline.remote.topic_based.records import deserialize, partition_of
from strandline.remote.topic_based.topic import MetadataTopicRecord

_PROGRESS_EVERY: Final = 10_000
_PROBLEMS_KEPT: Final = 1000


class MetadataReplay:
    """Remote log metadata as of the last `catch_up`."""

    def __init__(self, source: FsckSource, progress: Progress) -> None:
        self._source, self._progress = source, progress
        self._store = RemotePartitionMetadataStore()
        self._partitions: set[TopicIdPartition] = set()
        self._positions: dict[int, Offset] = {}
        self._read = 0
        self.problems: dict[str, str] = {}
        """Records that could not be read, and why. If there are any, the metadata of a segment may be missing."""

    def catch_up(self) -> None:
        """Read the records that were written since the last call. Blocks."""
        for partition in range(self._source.metadata_partitions):
            position = self._positions.get(partition, 0)
            for record in self._source.records(partition, position):
                if record.offset > position == 0:
                    self._note(partition, 0, f"The records before offset {record.offset} are missing.")
                self._apply(partition, record)
                position = record.offset + 1
            self._positions[partition] = position

    def partitions(self) -> Collection[TopicIdPartition]:
        """All partitions that ever had metadata, including those whose deletion is over."""
        return self._partitions

    def cache(self, partition: TopicIdPartition) -> RemoteLogMetadataCache:
        """The metadata of one partition."""
        return self._store.cache(partition)

    def segment_count(self) -> int:
        """Segments that are not deleted."""
        return self._store.segment_count()

    def _apply(self, partition: int, record: MetadataTopicRecord) -> None:
        self._read += 1
        if self._read % _PROGRESS_EVERY == 0:
            self._progress("records read", self._read)
        if record.problem is not None or record.value is None:
            self._note(partition, record.offset, record.problem or "It has no value.")
            return
        try:
            message = deserialize(record.value)
        except CorruptMessage as error:
            self._note(partition, record.offset, str(error))
            return
        self._partitions.add(partition_of(message))
        try:
            self._store.apply(message)
        except (ValueError, RemoteResourceNotFound):
            # Brokers skip illegal moves too, such as a repeated end of a deletion.
            return

    def _note(self, partition: int, offset: Offset, problem: str) -> None:
        if len(self.problems) < _PROBLEMS_KEPT:
            self.problems[f"{REMOTE_LOG_METADATA_TOPIC}-{partition} offset {offset}"] = problem
