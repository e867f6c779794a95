"""Settings of the group coordinator and of the topic in which it keeps offsets."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.config.declare import CLUSTER_WIDE, INT, LIST, LONG, SHORT, STRING, setting
from strandline.errors import InvalidConfig
from strandline.model import INT32_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """Settings of the group coordinator."""

    group_min_session_timeout_ms: int = setting(
        "group.min.session.timeout.ms", INT, 6000, "Shortest session timeout a member may ask for."
    )
    group_max_session_timeout_ms: int = setting(
        "group.max.session.timeout.ms", INT, 1_800_000, "Longest session timeout a member may ask for."
    )
    group_initial_rebalance_delay_ms: int = setting(
        "group.initial.rebalance.delay.ms",
        INT,
        3000,
        "How long an empty group waits for further members before its first rebalance ends.",
    )
    group_max_size: int = setting(
        "group.max.size", INT, INT32_MAX, "Members in one group; further ones are refused.", least=1
    )
    group_coordinator_rebalance_protocols: tuple[str, ...] = setting(
        "group.coordinator.rebalance.protocols",
        LIST,
        ("classic", "consumer", "streams"),
        "The group protocols that are served. The classic protocol is served whatever is named; without `consumer`, "
        "members of the consumer protocol are refused; `streams` has no effect yet, and `share` has none, as in Kafka: "
        "the feature share.version switches share groups.",
        allowed=("classic", "consumer", "streams", "share"),
        may_be_empty=False,
    )
    group_coordinator_threads: int = setting(
        "group.coordinator.threads",
        INT,
        4,
        "Threads of the coordinator.",
        least=1,
        no_effect="one event loop does the work",
    )
    group_coordinator_append_linger_ms: int = setting(
        "group.coordinator.append.linger.ms",
        INT,
        -1,
        "How long the coordinator collects changes before it writes them. -1: until the previous write has ended.",
        least=-1,
        no_effect="the coordinator does not collect changes by time",
    )
    offset_metadata_max_bytes: int = setting(
        "offset.metadata.max.bytes", INT, 4096, "Longest metadata text of a committed offset.", least=0
    )
    offsets_load_buffer_size: int = setting(
        "offsets.load.buffer.size", INT, 5_242_880, "Bytes read at a time when offsets are loaded.", least=1
    )
    offsets_topic_replication_factor: int = setting(
        "offsets.topic.replication.factor",
        SHORT,
        3,
        "Replicas of __consumer_offsets. A cluster with fewer brokers creates the topic with as many as it has.",
        least=1,
    )
    offsets_topic_num_partitions: int = setting(
        "offsets.topic.num.partitions",
        INT,
        50,
        "Partitions of __consumer_offsets. Do not change it once the topic exists.",
        least=1,
    )
    offsets_topic_segment_bytes: int = setting(
        "offsets.topic.segment.bytes",
        INT,
        104_857_600,
        "segment.bytes of __consumer_offsets; small segments make loading and compaction quick.",
        least=1,
    )
    offsets_topic_compression_codec: int = setting(
        "offsets.topic.compression.codec",
        INT,
        0,
        "The codec of batches in __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
        least=0,
        most=4,
    )
    offsets_retention_minutes: int = setting(
        "offsets.retention.minutes",
        INT,
        10_080,
        "How long the offsets of a group without members, or of a topic it no longer reads, are kept.",
        least=1,
    )
    offsets_retention_check_interval_ms: int = setting(
        "offsets.retention.check.interval.ms", LONG, 600_000, "How often expired offsets are looked for.", least=1
    )
    offsets_commit_timeout_ms: int = setting(
        "offsets.commit.timeout.ms",
        INT,
        5000,
        "How long a commit waits until its record is replicated.",
        least=1,
    )
    group_consumer_session_timeout_ms: int = setting(
        "group.consumer.session.timeout.ms",
        INT,
        45_000,
        "Session timeout of the consumer protocol.",
        least=1,
    )
    group_consumer_min_session_timeout_ms: int = setting(
        "group.consumer.min.session.timeout.ms",
        INT,
        45_000,
        "The least session timeout that a group may set.",
        least=1,
    )
    group_consumer_max_session_timeout_ms: int = setting(
        "group.consumer.max.session.timeout.ms",
        INT,
        60_000,
        "The greatest session timeout that a group may set.",
        least=1,
    )
    group_consumer_heartbeat_interval_ms: int = setting(
        "group.consumer.heartbeat.interval.ms",
        INT,
        5000,
        "Heartbeat interval of the consumer protocol.",
        least=1,
    )
    group_consumer_min_heartbeat_interval_ms: int = setting(
        "group.consumer.min.heartbeat.interval.ms",
        INT,
        5000,
        "The least heartbeat interval that a group may set.",
        least=1,
    )
    group_consumer_max_heartbeat_interval_ms: int = setting(
        "group.consumer.max.heartbeat.interval.ms",
        INT,
        15_000,
        "The greatest heartbeat interval that a group may set.",
        least=1,
    )
    group_consumer_assignment_interval_ms: int = setting(
        "group.consumer.assignment.interval.ms",
        INT,
        1000,
        "The least time between two target assignments of a group of the consumer protocol. Members that come and go "
        "within it are assigned together.",
        least=0,
        dynamic=CLUSTER_WIDE,
    )
    group_consumer_min_assignment_interval_ms: int = setting(
        "group.consumer.min.assignment.interval.ms",
        INT,
        0,
        "The least assignment interval that a group may set.",
        least=0,
    )
    group_consumer_max_assignment_interval_ms: int = setting(
        "group.consumer.max.assignment.interval.ms",
        INT,
        15_000,
        "The greatest assignment interval that a group may set.",
        least=0,
    )
    group_consumer_max_size: int = setting(
        "group.consumer.max.size",
        INT,
        INT32_MAX,
        "Members in one group of the consumer protocol.",
        least=1,
    )
    group_consumer_assignors: tuple[str, ...] = setting(
        "group.consumer.assignors",
        LIST,
        ("uniform", "range"),
        "Assignors of the consumer protocol; the first is the default.",
        allowed=("uniform", "range"),
        may_be_empty=False,
    )
    group_consumer_migration_policy: str = setting(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        "Which way a group may move between the classic and the consumer protocol while it has members.",
        allowed=("bidirectional", "upgrade", "downgrade", "disabled"),
    )
    group_consumer_regex_refresh_interval_ms: int = setting(
        "group.consumer.regex.refresh.interval.ms",
        INT,
        600_000,
        "How often subscriptions by regular expression are matched against the topics again.",
        least=10_000,
    )

    def check(self) -> None:
        """Raise InvalidConfig if settings of this area contradict each other."""
        if self.group_max_session_timeout_ms < self.group_min_session_timeout_ms:
            raise InvalidConfig(
                f"group.max.session.timeout.ms ({self.group_max_session_timeout_ms}) must not be less than "
                f"group.min.session.timeout.ms ({self.group_min_session_timeout_ms})."
            )
        for what in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"):
            attribute = what.replace(".", "_")
            least = getattr(self, f"group_consumer_min_{attribute}")
            value = getattr(self, f"group_consumer_{attribute}")
            most = getattr(self, f"group_consumer_max_{attribute}")
            if not least <= value <= most:
                raise InvalidConfig(
                    f"group.consumer.{what} must be from group.consumer.min.{what} ({least}) to "
                    f"group.consumer.max.{what} ({most}), but is {value}."
                )
