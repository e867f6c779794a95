"""Offsets of partitions, asked of their leaders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from strandline.admin.client import Cluster
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

EARLIEST: Final = -2
LATEST: Final = -1
EARLIEST_LOCAL: Final = -4
_CONSUMER: Final = -1


def list_offsets(
    cluster: Cluster, leaders: Mapping[tuple[str, int], int], timestamp: int
) -> dict[tuple[str, int], int]:
    """The offset of each partition at a (special) timestamp; a partition that cannot tell is left out.

    `leaders` has the leader of each (topic, partition).
    """
    by_leader: dict[int, dict[str, list[ListOffsetsPartition]]] = defaultdict(lambda: defaultdict(list))
    for (topic, partition), leader in leaders.items():
        by_leader[leader][topic].append(ListOffsetsPartition(partition_index=partition, timestamp=timestamp))
    found: dict[tuple[str, int], int] = {}
    for leader, topics in by_leader.items():
        wanted = [ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()]
        request = ListOffsetsRequest(replica_id=_CONSUMER, topics=wanted, timeout_ms=30_000)
        answer = cluster.broker(leader).request(ApiKey.LIST_OFFSETS, request)
        for row in answer.topics:
            for partition in row.partitions:
                if partition.error_code == ErrorCode.NONE:
                    found[row.name, partition.partition_index] = partition.offset
    return found
