"""Which broker clients of a diskless partition are sent to while its leader is away: any broker can serve it.

Pure. Brokers that see the same cluster name the same stand-in, so that clients agree; partitions are spread by a hash.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Sequence
from uuid import UUID

from strandline.metadata import PartitionImage, TopicImage


def with_stand_ins(
    topic: TopicImage, reachable: Collection[int], *, may_move: Callable[[int], bool] = lambda partition: True
) -> TopicImage:
    """The topic as clients see it that can reach these brokers: every partition has a leader among them.

    Unless `may_move` says that no other broker can serve it.
    """
    if not reachable or all(partition.leader in reachable for partition in topic.partitions):
        return topic
    brokers = sorted(reachable)
    partitions = tuple(
        partition
        if partition.leader in reachable or not may_move(partition.partition)
        else _moved(partition, _chosen(topic.topic_id, partition, brokers))
        for partition in topic.partitions
    )
    return TopicImage(topic.name, topic.topic_id, partitions)


def _chosen(topic_id: UUID, partition: PartitionImage, brokers: Sequence[int]) -> int:
    return brokers[zlib.crc32(topic_id.bytes + partition.partition.to_bytes(4, "big")) % len(brokers)]


def _moved(partition: PartitionImage, broker: int) -> PartitionImage:
    return partition._replace(replicas=(broker,), isr=(broker,), leader=broker)
