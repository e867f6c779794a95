"""The keys of objects in remote storage, as in Kafka's directory-based storage, whose directories can be read in place.

`<topic>-<partition>-<topic id>/<base offset>-<segment id>.<kind>`, where a kind is `log` or a value of `IndexType`.
"""

from __future__ import annotations

from typing import Final

from strandline.model import TopicIdPartition, uuid_to_text
from strandline.remote.values import IndexType, RemoteLogSegmentMetadata

LOG: Final = "log"
# Names of topics have up to 249 characters, names of files up to 255.
_LONGEST_DIRECTORY: Final = 255


def segment_name(metadata: RemoteLogSegmentMetadata) -> str:
    """The key of a segment up to the dot, without the prefix of the storage."""
    segment = f"{metadata.start_offset:020d}-{uuid_to_text(metadata.segment_id.id)}"
    return f"{partition_directory(metadata.partition)}/{segment}"


def partition_directory(partition: TopicIdPartition) -> str:
    """The directory of a partition. A topic name that is too long is cut: the topic id identifies it."""
    rest = f"-{partition.partition}-{uuid_to_text(partition.topic_id)}"
    return f"{partition.topic[: _LONGEST_DIRECTORY - len(rest)]}{rest}"


class SegmentKeys:
    """The keys below one prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def log(self, metadata: RemoteLogSegmentMetadata) -> str:
        """The key of the log of a segment."""
        return f"{self._prefix}{segment_name(metadata)}.{LOG}"

    def index(self, metadata: RemoteLogSegmentMetadata, kind: IndexType) -> str:
        """The key of one of its indexes."""
        return f"{self._prefix}{segment_name(metadata)}.{kind.value}"
