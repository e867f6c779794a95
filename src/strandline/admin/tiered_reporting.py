"""Gathers what a broker tells about tiered storage from its components."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from strandline.admin.tiered_status import StorageCalls, TieredStatus, TieredTopic
from strandline.hybrid.tiered.tier import RemoteTier
from strandline.hybrid.tiered.topics import TieredTopics
from strandline.model import TopicIdPartition
from strandline.replication import ReplicaManager

if TYPE_CHECKING:  # a broker without tiered storage does not load them
    from strandline.remote.manager import PartitionTierStatus, TopicTierStatus
    from strandline.remote.reader import TopicReads


def describe_tiered(tiered: TieredTopics) -> TieredStatus:
    """Tiered storage now. Looks at memory only."""
    return TieredStatus() if tiered.tier is None else _describe(tiered.tier)


def describe_partitions(
    tiered: TieredTopics, replicas: ReplicaManager, topic: str
) -> tuple[PartitionTierStatus, ...] | None:
    """The tiered partitions of a topic that are led here, in order; None without tiered storage."""
    if tiered.tier is None:
        return None
    partitions = (p for p in replicas.partitions() if p.topic_partition.topic == topic and p.is_leader)
    found = (tiered.tier.manager.partition_status(TopicIdPartition(p.topic_id, p.topic_partition)) for p in partitions)
    return tuple(sorted((status for status in found if status is not None), key=lambda row: row.partition.partition))


def _describe(tier: RemoteTier) -> TieredStatus:
    manager, reader, storage, indexes = (
        tier.manager.status(),
        tier.reader.status(),
        tier.storage.status(),
        tier.indexes.status(),
    )
    return TieredStatus(
        storage_url=storage.url,
        topics={
            name: _topic(manager.topics.get(name), reader.topics.get(name))
            for name in sorted(manager.topics.keys() | reader.topics.keys())
        },
        partitions=manager.partitions,
        reads_running=reader.running,
        reads_waiting=reader.waiting,
        reader_idle_percent=reader.idle_percent,
        reads_throttled=reader.throttled,
        manager_idle_percent=(manager.copier_idle_percent + manager.expiration_idle_percent) / 2,
        copies_running=manager.copies_running,
        oldest_copy_s=manager.oldest_copy_seconds,
        deletions_running=manager.deletions,
        storage_calls={
            name: StorageCalls(
                calls=calls.calls,
                errors=calls.errors,
                timeouts=calls.timeouts,
                bytes=calls.bytes,
                oldest_pending_s=calls.oldest_pending_seconds,
            )
            for name, calls in storage.operations.items()
        },
        storage_stuck=storage.stuck,
        index_cache_bytes=indexes.bytes,
        index_cache_limit=indexes.max_bytes,
        index_memory_bytes=indexes.memory_bytes,
        index_memory_limit=indexes.max_memory_bytes,
        read_cache_bytes=reader.cache_bytes,
        read_cache_limit=reader.cache_limit,
    )


def _topic(copied: TopicTierStatus | None, read: TopicReads | None) -> TieredTopic:
    topic = TieredTopic()
    if copied is not None:
        topic = TieredTopic(
            copy_requests=copied.copy_requests,
            copy_bytes=copied.copy_bytes,
            copy_errors=copied.copy_errors,
            delete_requests=copied.delete_requests,
            delete_errors=copied.delete_errors,
            copy_lag_segments=copied.copy_lag_segments,
            copy_lag_bytes=copied.copy_lag_bytes,
            delete_lag_segments=copied.delete_lag_segments,
            delete_lag_bytes=copied.delete_lag_bytes,
            remote_segments=copied.metadata_count,
            remote_bytes=copied.remote_bytes,
        )
    if read is not None:
        topic = replace(topic, fetch_requests=read.requests, fetch_bytes=read.bytes, fetch_errors=read.errors)
    return topic
