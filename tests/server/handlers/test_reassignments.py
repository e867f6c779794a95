"""ListPartitionReassignments."""

from __future__ import annotations

import pytest

from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)

EVERYTHING = None
SOME = [ListPartitionReassignmentsTopics(name="missing", partition_indexes=[0, 7])]


@pytest.mark.parametrize("topics", [EVERYTHING, [], SOME])
def test_nothing_is_being_reassigned(client: Client, topics: list[ListPartitionReassignmentsTopics] | None) -> None:
    answer = client.request(ApiKey.LIST_PARTITION_REASSIGNMENTS, ListPartitionReassignmentsRequest(topics=topics))
    assert (answer.error_code, answer.error_message, answer.topics) == (ErrorCode.NONE, None, [])
