"""Where the records of the diskless partitions are that this broker leads: to be shown; nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.clock import Clock
from strandline.controlplane import DisklessLog, DisklessLogs
from strandline.controlplane.conversion import SegmentUpload, UploadList
from strandline.hybrid.conversion.led import LedPartitions
from strandline.hybrid.diskless.refusals import storage_errors
from strandline.hybrid.remote.topics import TieredTopics
from strandline.metadata import TopicImage
from strandline.model import Offset, TopicIdPartition, TopicPartition
from strandline.remote.values import RemoteLogSegmentMetadata, RemoteLogSegmentState


@dataclass(frozen=True, slots=True, kw_only=True)
class DisklessTiers:
    """One partition: its offsets as the control plane has them, its segments, and those that are under way."""

    log: DisklessLog
    segments: Sequence[RemoteLogSegmentMetadata] = ()
    """By start offset, in any state but deleted; none while this broker has not read their metadata."""
    uploads: Sequence[SegmentUpload] = ()

    @property
    def partition(self) -> int:
        return self.log.partition.partition

    @property
    def finished(self) -> Sequence[RemoteLogSegmentMetadata]:
        """The segments that are read."""
        return [one for one in self.segments if one.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED]

    @property
    def remote_end(self) -> Offset:
        """Behind the last offset that is read from remote segments."""
        return self.log.tiered_high_offset + 1


class LedTiers:
    """Asks the control plane, and the remote log metadata that the keeper of converted partitions has subscribed to."""

    def __init__(
        self, logs: DisklessLogs, uploads: UploadList, tiered: TieredTopics, led: LedPartitions, clock: Clock
    ) -> None:
        self._logs, self._uploads = logs, uploads
        self._tiered, self._led, self._clock = tiered, led, clock

    async def of_topic(self, topic: TopicImage) -> tuple[DisklessTiers, ...]:
        """The partitions of a topic that are led here and have a diskless log. Raises StrandlineError."""
        places = (TopicPartition(topic.name, image.partition) for image in topic.partitions)
        keys = [TopicIdPartition(topic.topic_id, place) for place in places]
        led = [key for key in keys if self._led.epoch_of(key) is not None]
        if not led:
            return ()
        with storage_errors(f"the tiers of {topic.name}"):
            logs = await self._logs.logs(led)
            uploads = await self._uploads.segment_uploads(logs)
        return tuple(
            [
                DisklessTiers(
                    log=log,
                    segments=await self._tiered.storage.segments_of(key, self._clock),
                    uploads=[one for one in uploads if one.partition == key],
                )
                for key, log in sorted(logs.items(), key=lambda item: item[0].partition)
                if log.diskless_log_start_offset >= 0
            ]
        )
