"""Where logs end: this broker says, or the leader does."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from strandline.errors import LeaderNotAvailable, NotLeaderOrFollower, StrandlineError, UnknownTopicOrPartition
from strandline.metadata.image import MetadataImage, PartitionImage, TopicImage
from strandline.model import NO_LEADER, BrokerId, TopicPartition
from strandline.reads import FetchIsolation, FoundOffset
from strandline.server.log_ends import ClusterLogEnds
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LED_HERE, LED_THERE, LED_BY_NOBODY = (TopicPartition("t", at) for at in range(3))


class EndOfLog:
    """A partition that ends at 12."""

    async def list_offset(self, timestamp: int, *, isolation: FetchIsolation, current_leader_epoch: int) -> FoundOffset:
        assert (timestamp, isolation) == (-1, FetchIsolation.HIGH_WATERMARK)
        return FoundOffset(offset=12, timestamp=-1, leader_epoch=3)


class OnePartition:
    """Partition 0 is served here."""

    def __init__(self) -> None:
        self.error: StrandlineError | None = None

    def find(self, topic: str, partition: int) -> EndOfLog:
        if self.error is not None:
            raise self.error
        if partition != 0:
            raise NotLeaderOrFollower(f"Partition {partition} is not served here.")
        return EndOfLog()


class LeaderElsewhere:
    """Broker 2, which answers with what a test sets."""

    def __init__(self) -> None:
        self.asked: list[ListOffsetsRequest] = []
        self.answer = [ListOffsetsPartitionResponse(partition_index=1, offset=34)]

    async def ask(self, broker: BrokerId, api_key: ApiKey, message: Any, *, within: float) -> ListOffsetsResponse:
        assert (broker, api_key) == (2, ApiKey.LIST_OFFSETS)
        self.asked.append(message)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=self.answer)])


class OneImage:
    def __init__(self) -> None:
        leaders = (1, 2, NO_LEADER)
        partitions = tuple(
            PartitionImage(partition=at, replicas=(1,), isr=(1,), leader=leader, leader_epoch=5, partition_epoch=0)
            for at, leader in enumerate(leaders)
        )
        self.image = MetadataImage(topics={"t": TopicImage("t", UUID(int=1), partitions)})


@pytest.fixture
def here() -> OnePartition:
    return OnePartition()


@pytest.fixture
def other() -> LeaderElsewhere:
    return LeaderElsewhere()


@pytest.fixture
def ends(here: OnePartition, other: LeaderElsewhere) -> ClusterLogEnds:
    return ClusterLogEnds(here, other, OneImage())


async def test_a_partition_that_this_broker_serves(ends: ClusterLogEnds, other: LeaderElsewhere) -> None:
    assert await ends.end_offset(LED_HERE) == 12
    assert other.asked == []


async def test_a_partition_of_another_broker(ends: ClusterLogEnds, other: LeaderElsewhere) -> None:
    assert await ends.end_offset(LED_THERE) == 34
    (request,) = other.asked
    (wanted,) = request.topics[0].partitions
    assert (request.replica_id, wanted.partition_index, wanted.timestamp, wanted.current_leader_epoch) == (-1, 1, -1, 5)


async def test_refusals_are_those_of_the_leader(
    ends: ClusterLogEnds, here: OnePartition, other: LeaderElsewhere
) -> None:
    other.answer = [ListOffsetsPartitionResponse(partition_index=1, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)]
    with pytest.raises(NotLeaderOrFollower):
        await ends.end_offset(LED_THERE)
    other.answer = []
    with pytest.raises(LeaderNotAvailable, match="does not name t-1"):
        await ends.end_offset(LED_THERE)
    with pytest.raises(LeaderNotAvailable, match="t-2 has no leader"):
        await ends.end_offset(LED_BY_NOBODY)
    with pytest.raises(UnknownTopicOrPartition, match="no partition t-3"):
        await ends.end_offset(TopicPartition("t", 3))
    with pytest.raises(UnknownTopicOrPartition):
        await ends.end_offset(TopicPartition("gone", 1))
    here.error = LeaderNotAvailable("The log is being loaded.")
    with pytest.raises(LeaderNotAvailable, match="being loaded"):
        await ends.end_offset(LED_HERE)
