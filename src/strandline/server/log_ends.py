"""Where logs end, whichever broker leads them: share groups need it for their lag."""

from __future__ import annotations

from typing import Final, Protocol

from strandline.errors import LeaderNotAvailable, NotLeaderOrFollower, UnknownTopicOrPartition
from strandline.metadata import Images
from strandline.model import NO_EPOCH, BrokerId, LeaderEpoch, TimestampMs, TopicPartition
from strandline.reads import LATEST, FetchIsolation, FoundOffset
from strandline.wire.api import ApiKey
from strandline.wire.errors import error_of
from strandline.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from strandline.wire.registry import Message

_SECONDS: Final = 10.0
_CONSUMER: Final = -1


class ListedOffsets(Protocol):
    """A partition that tells where it ends."""

    async def list_offset(
        self, timestamp: TimestampMs, *, isolation: FetchIsolation, current_leader_epoch: LeaderEpoch
    ) -> FoundOffset:
        """Raises a StrandlineError."""


class ServedLogs(Protocol):
    """The partitions that this broker serves. Implemented by `hybrid.Partitions`."""

    def find(self, topic: str, partition: int) -> ListedOffsets:
        """Raises NotLeaderOrFollower for a partition that another broker serves."""


class AskedBrokers(Protocol):
    """Requests to other brokers. Implemented by `BrokerPeers`."""

    async def ask(self, broker: BrokerId, api_key: ApiKey, message: Message, *, within: float) -> Message:
        """The broker's answer. Raises LeaderNotAvailable."""


class ClusterLogEnds:
    """`ShareLogEnds`: asks this broker first, because any broker serves a diskless partition, and then the leader."""

    def __init__(self, served: ServedLogs, brokers: AskedBrokers, images: Images) -> None:
        self._served, self._brokers, self._images = served, brokers, images

    async def end_offset(self, partition: TopicPartition) -> int:
        """The high watermark. Raises a StrandlineError if the leader does not say."""
        try:
            found = await self._served.find(*partition).list_offset(
                LATEST, isolation=FetchIsolation.HIGH_WATERMARK, current_leader_epoch=NO_EPOCH
            )
        except NotLeaderOrFollower:
            return await self._ask_leader(partition)
        return found.offset

    async def _ask_leader(self, partition: TopicPartition) -> int:
        topic = self._images.image.topics.get(partition.topic)
        known = None if topic is None else topic.partition(partition.partition)
        if known is None:
            raise UnknownTopicOrPartition(f"There is no partition {partition}.")
        if not known.has_leader:
            raise LeaderNotAvailable(f"Partition {partition} has no leader.")
        wanted = ListOffsetsPartition(
            partition_index=partition.partition, current_leader_epoch=known.leader_epoch, timestamp=LATEST
        )
        request = ListOffsetsRequest(
            replica_id=_CONSUMER, topics=[ListOffsetsTopic(name=partition.topic, partitions=[wanted])]
        )
        answer: ListOffsetsResponse = await self._brokers.ask(
            known.leader, ApiKey.LIST_OFFSETS, request, within=_SECONDS
        )
        for one in (one for topic_answer in answer.topics for one in topic_answer.partitions):
            if one.error_code:
                raise error_of(one.error_code)
            return one.offset
        raise LeaderNotAvailable(f"The answer to ListOffsets does not name {partition}.")
