"""Settings of share groups: how records are delivered, and of the topic in which the share coordinator keeps that."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.config.declare import INT, SHORT, STRING, setting
from strandline.errors import InvalidConfig

_LIMITED = ("delivery.count.limit", "record.lock.duration.ms", "partition.max.record.locks")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareSettings:
    """Settings of share groups and of the share coordinator."""

    group_share_delivery_count_limit: int = setting(
        "group.share.delivery.count.limit",
        INT,
        5,
        "How often a record is delivered before it is given up.",
        least=2,
        most=10,
    )
    group_share_min_delivery_count_limit: int = setting(
        "group.share.min.delivery.count.limit",
        INT,
        2,
        "The least that a group may set as share.delivery.count.limit.",
        least=2,
        most=5,
    )
    group_share_max_delivery_count_limit: int = setting(
        "group.share.max.delivery.count.limit",
        INT,
        10,
        "The most that a group may set as share.delivery.count.limit.",
        least=5,
        most=25,
    )
    group_share_record_lock_duration_ms: int = setting(
        "group.share.record.lock.duration.ms",
        INT,
        30_000,
        "How long a member may keep a record before it is given to others.",
        least=1000,
        most=3_600_000,
    )
    group_share_min_record_lock_duration_ms: int = setting(
        "group.share.min.record.lock.duration.ms",
        INT,
        15_000,
        "The least that a group may set as share.record.lock.duration.ms.",
        least=1000,
        most=30_000,
    )
    group_share_max_record_lock_duration_ms: int = setting(
        "group.share.max.record.lock.duration.ms",
        INT,
        60_000,
        "The most that a group may set as share.record.lock.duration.ms.",
        least=30_000,
        most=3_600_000,
    )
    group_share_partition_max_record_locks: int = setting(
        "group.share.partition.max.record.locks",
        INT,
        2000,
        "How far the records of a partition that are delivered may reach beyond the first that is not settled.",
        least=100,
        most=10_000,
    )
    group_share_min_partition_max_record_locks: int = setting(
        "group.share.min.partition.max.record.locks",
        INT,
        100,
        "The least that a group may set as share.partition.max.record.locks.",
        least=100,
        most=2000,
    )
    group_share_max_partition_max_record_locks: int = setting(
        "group.share.max.partition.max.record.locks",
        INT,
        4000,
        "The most that a group may set as share.partition.max.record.locks.",
        least=2000,
        most=20_000,
    )
    group_share_max_share_sessions: int = setting(
        "group.share.max.share.sessions", INT, 2000, "Share sessions of this broker; further ones are refused.", least=1
    )
    group_share_persister_class_name: str = setting(
        "group.share.persister.class.name",
        STRING,
        "org.apache.kafka.server.share.persister.DefaultStatePersister",
        "What keeps the state of share partitions.",
        is_internal=True,
        no_effect="the share coordinator keeps it, whatever is named",
    )
    share_fetch_purgatory_purge_interval_requests: int = setting(
        "share.fetch.purgatory.purge.interval.requests",
        INT,
        1000,
        "How often waiting share fetches are cleaned up.",
        no_effect="waiting requests are tasks, not purgatory entries",
    )
    share_coordinator_state_topic_num_partitions: int = setting(
        "share.coordinator.state.topic.num.partitions",
        INT,
        50,
        "Partitions of __share_group_state. Do not change it once the topic exists.",
        least=1,
    )
    share_coordinator_state_topic_replication_factor: int = setting(
        "share.coordinator.state.topic.replication.factor",
        SHORT,
        3,
        "Replicas of __share_group_state. A cluster with fewer brokers creates the topic with as many as it has.",
        least=1,
    )
    share_coordinator_state_topic_min_isr: int = setting(
        "share.coordinator.state.topic.min.isr", SHORT, 2, "min.insync.replicas of __share_group_state.", least=1
    )
    share_coordinator_state_topic_segment_bytes: int = setting(
        "share.coordinator.state.topic.segment.bytes",
        INT,
        104_857_600,
        "segment.bytes of __share_group_state.",
        least=1,
    )
    share_coordinator_state_topic_compression_codec: int = setting(
        "share.coordinator.state.topic.compression.codec",
        INT,
        0,
        "Codec of the batches in __share_group_state: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
        least=0,
        most=4,
    )
    share_coordinator_state_topic_prune_interval_ms: int = setting(
        "share.coordinator.state.topic.prune.interval.ms",
        INT,
        300_000,
        "How often records of __share_group_state that newer snapshots replace are deleted.",
        least=1,
        is_internal=True,
    )
    share_coordinator_cold_partition_snapshot_interval_ms: int = setting(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        INT,
        300_000,
        "A share partition whose snapshot is this old gets a new one, so that older records can be deleted.",
        least=1,
        is_internal=True,
    )
    share_coordinator_snapshot_update_records_per_snapshot: int = setting(
        "share.coordinator.snapshot.update.records.per.snapshot",
        INT,
        500,
        "How many changes of a share partition are written before its whole state is written again.",
        least=0,
    )
    share_coordinator_load_buffer_size: int = setting(
        "share.coordinator.load.buffer.size",
        INT,
        5_242_880,
        "Bytes read at a time when the state of share partitions is loaded.",
        least=1,
    )
    share_coordinator_write_timeout_ms: int = setting(
        "share.coordinator.write.timeout.ms",
        INT,
        5000,
        "How long a write to __share_group_state waits until it is committed.",
        least=1,
    )
    share_coordinator_threads: int = setting(
        "share.coordinator.threads",
        INT,
        1,
        "Threads of the share coordinator.",
        least=1,
        no_effect="one event loop does the work",
    )
    share_coordinator_append_linger_ms: int = setting(
        "share.coordinator.append.linger.ms",
        INT,
        -1,
        "How long the coordinator collects changes before it writes them. -1: until the previous write has ended.",
        least=-1,
        no_effect="the coordinator does not collect changes by time",
    )
    share_coordinator_cached_buffer_max_bytes: int = setting(
        "share.coordinator.cached.buffer.max.bytes",
        INT,
        1_048_588,
        "The largest buffer for writes that is kept for the next one.",
        least=524_288,
        no_effect="no buffers are kept",
    )

    def check(self) -> None:
        """Raise InvalidConfig if settings of this area contradict each other."""
        for what in _LIMITED:
            tail = what.replace(".", "_")
            least, most = getattr(self, f"group_share_min_{tail}"), getattr(self, f"group_share_max_{tail}")
            value = getattr(self, f"group_share_{tail}")
            if not least <= value <= most:
                raise InvalidConfig(
                    f"group.share.{what} must be from group.share.min.{what} ({least}) to group.share.max.{what} "
                    f"({most}), but is {value}."
                )
