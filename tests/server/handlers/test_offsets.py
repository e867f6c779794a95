"""ListOffsets and OffsetForLeaderEpoch."""

from __future__ import annotations

import pytest

from strandline.wire.api import API_VERSIONS, ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from strandline.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.moments import T0
from tests.server.handlers.producing import produce

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = range(-1, -7, -1)


def list_offset(
    client: Client, topic: str, timestamp: int, *, version: int = 11, partition: int = 0, epoch: int = -1
) -> ListOffsetsPartitionResponse:
    wish = ListOffsetsPartition(partition_index=partition, current_leader_epoch=epoch, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wish])])
    (answer,) = client.request(ApiKey.LIST_OFFSETS, request, version=version).topics
    (found,) = answer.partitions
    assert isinstance(found, ListOffsetsPartitionResponse)
    return found


@pytest.fixture
def filled(client: Client, topic: str) -> str:
    produce(client, topic, T0, T0 + 30, T0 + 10)
    produce(client, topic, T0 + 40, T0 + 20)
    return topic


@pytest.mark.parametrize("version", range(API_VERSIONS[ApiKey.LIST_OFFSETS].min, 12))
def test_both_ends_and_a_time_in_every_version(client: Client, filled: str, version: int) -> None:
    def found(timestamp: int) -> tuple[int, int, int, int]:
        answer = list_offset(client, filled, timestamp, version=version)
        return answer.error_code, answer.offset, answer.timestamp, answer.leader_epoch

    epoch = 0 if version >= 4 else -1
    assert found(EARLIEST) == (0, 0, -1, epoch)
    assert found(LATEST) == (0, 5, -1, epoch)
    assert found(T0 + 25) == (0, 1, T0 + 30, epoch)
    assert found(T0 + 41) == (0, -1, -1, -1)


@pytest.mark.parametrize(
    ("timestamp", "first_version", "expected"),
    [
        (MAX_TIMESTAMP, 7, (3, T0 + 40)),
        (EARLIEST_LOCAL, 8, (0, -1)),
        (LATEST_TIERED, 9, (-1, -1)),
        (PENDING_UPLOAD, 11, (-1, -1)),
    ],
)
def test_special_timestamps(
    client: Client, filled: str, timestamp: int, first_version: int, expected: tuple[int, int]
) -> None:
    answer = list_offset(client, filled, timestamp)
    assert (answer.error_code, answer.offset, answer.timestamp) == (ErrorCode.NONE, *expected)
    too_old = list_offset(client, filled, timestamp, version=first_version - 1)
    assert (too_old.error_code, too_old.offset) == (ErrorCode.UNSUPPORTED_VERSION, -1)


def test_an_empty_partition(client: Client, topic: str) -> None:
    for timestamp, offset in ((EARLIEST, 0), (LATEST, 0), (MAX_TIMESTAMP, -1), (T0, -1)):
        answer = list_offset(client, topic, timestamp, partition=2)
        assert (answer.error_code, answer.offset, answer.timestamp) == (ErrorCode.NONE, offset, -1)


def test_what_cannot_be_asked(client: Client, topic: str) -> None:
    assert list_offset(client, topic, -7).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert list_offset(client, topic, LATEST, partition=3).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list_offset(client, "absent", LATEST).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list_offset(client, topic, LATEST, epoch=5).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert list_offset(client, topic, LATEST, epoch=0).error_code == ErrorCode.NONE


def test_a_partition_asked_for_twice(client: Client, topic: str) -> None:
    wish = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wish, wish])])
    (answer,) = client.request(ApiKey.LIST_OFFSETS, request).topics
    assert [found.error_code for found in answer.partitions] == [ErrorCode.INVALID_REQUEST] * 2


def end_of(client: Client, topic: str, epoch: int, *, version: int = 4, current: int = -1) -> EpochEndOffset:
    wish = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[wish])])
    (answer,) = client.request(ApiKey.OFFSET_FOR_LEADER_EPOCH, request, version=version).topics
    (found,) = answer.partitions
    assert isinstance(found, EpochEndOffset)
    return found


@pytest.mark.parametrize("version", [2, 3, 4])
def test_the_end_of_an_epoch(client: Client, filled: str, version: int) -> None:
    found = end_of(client, filled, 0, version=version)
    assert (found.error_code, found.leader_epoch, found.end_offset) == (ErrorCode.NONE, 0, 5)


def test_epochs_nobody_knows(client: Client, filled: str) -> None:
    future = end_of(client, filled, 9)
    assert (future.error_code, future.leader_epoch, future.end_offset) == (ErrorCode.NONE, -1, -1)
    assert end_of(client, filled, 0, current=9).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert end_of(client, "absent", 0).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
