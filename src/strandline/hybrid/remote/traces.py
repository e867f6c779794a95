"""Whether segments may have been copied, by what a broker knows before it has read remote log metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from strandline.log import UnifiedLog
from strandline.metadata import MetadataImage
from strandline.model import REMOTE_LOG_METADATA_TOPIC, TopicIdPartition, TopicPartition


def may_have_segments(
    image: MetadataImage,
    logs: Iterable[UnifiedLog],
    is_tiered: Callable[[str], bool],
    *,
    has_built_in_metadata: bool,
    is_recorded: bool,
) -> bool:
    """Whether segments of classic topics may have been copied to the storage that is in use. Pure.

    Nothing is copied before the storage is recorded, and then brokers create the topic of remote log metadata. If it
    is there without a record, brokers of earlier versions have written it: they have copied nothing if all of it is
    here, and empty.
    """
    logs = tuple(logs)
    if any(map(_has_remote_part, logs)):
        return True
    if not has_built_in_metadata:  # what a plugin knows is not asked
        return is_recorded and any(map(is_tiered, image.topics))
    metadata = image.topics.get(REMOTE_LOG_METADATA_TOPIC)
    if metadata is None:
        return False
    if is_recorded:
        return True
    ends = {log.topic_partition: log.log_end_offset for log in logs}
    return any(ends.get(TopicPartition(metadata.name, one.partition)) != 0 for one in metadata.partitions)


def with_remote_part(image: MetadataImage, logs: Iterable[UnifiedLog]) -> Iterator[TopicIdPartition]:
    """The partitions whose log here has left the disk in part: remote storage has segments of each. Pure."""
    for log in logs:
        topic = image.topics.get(log.topic_partition.topic)
        if topic is not None and log.topic_id in (None, topic.topic_id) and _has_remote_part(log):
            yield TopicIdPartition(topic.topic_id, log.topic_partition)


def _has_remote_part(log: UnifiedLog) -> bool:
    return log.log_start_offset < log.local_log_start_offset
