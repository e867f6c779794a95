"""DeleteRecords."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from strandline.model import REMOTE_LOG_METADATA_TOPIC
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from strandline.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.moments import T0
from tests.server.handlers.conftest import create_topic
from tests.server.handlers.producing import produce
from tests.server.handlers.test_offsets import EARLIEST, list_offset


def delete(client: Client, topic: str, offset: int, *, version: int = 2, partition: int = 0) -> tuple[ErrorCode, int]:
    wish = DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[wish])], timeout_ms=5000)
    (answer,) = client.request(ApiKey.DELETE_RECORDS, request, version=version).topics
    (found,) = answer.partitions
    assert found.partition_index == partition
    return ErrorCode(found.error_code), found.low_watermark


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_log_starts_where_we_say(client: Client, topic: str, version: int) -> None:
    produce(client, topic, T0, T0, T0, T0)
    assert delete(client, topic, 2, version=version) == (ErrorCode.NONE, 2)
    assert list_offset(client, topic, EARLIEST).offset == 2
    assert delete(client, topic, 1, version=version) == (ErrorCode.NONE, 2)
    assert delete(client, topic, -1, version=version) == (ErrorCode.NONE, 4)


def test_records_that_cannot_be_deleted(client: Client, topic: str, new_name: Callable[[], str]) -> None:
    produce(client, topic, T0)
    assert delete(client, topic, 2) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert delete(client, topic, -2) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert delete(client, topic, 0, partition=3) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    compacted = create_topic(client, new_name(), configs={"cleanup.policy": "compact"})
    assert delete(client, compacted, 0) == (ErrorCode.POLICY_VIOLATION, -1)


def test_internal_topics_keep_their_records(client: Client) -> None:
    client.request(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=["group"]))
    assert delete(client, "__consumer_offsets", 0) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)


def test_what_describes_remote_storage_keeps_its_records(client: Client) -> None:
    assert delete(client, REMOTE_LOG_METADATA_TOPIC, 0) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
