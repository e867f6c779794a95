"""Settings of a topic: Kafka's names, and the broker settings they fall back to. Rules between them: `rules`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from strandline.config.declare import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    STRING,
    Declaration,
    Value,
    attribute_of,
    declarations_of,
    setting,
)
from strandline.config.log import (
    CLEANUP_POLICIES,
    COMPRESSION_TYPES,
    HOUR_MS,
    SMALLEST_SEGMENT,
    TIMESTAMP_TYPES,
    LogSettings,
)
from strandline.model import INT64_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """The settings in force for one topic: its overrides, and the broker's settings for everything else."""

    cleanup_policy: tuple[str, ...] = setting(
        "cleanup.policy",
        LIST,
        ("delete",),
        "delete drops old segments, compact keeps the newest record of each key; both may be given.",
        allowed=CLEANUP_POLICIES,
        broker_name="log.cleanup.policy",
    )
    compression_type: str = setting(
        "compression.type",
        STRING,
        "producer",
        "The codec in which batches are stored; producer keeps the producer's.",
        allowed=COMPRESSION_TYPES,
        broker_name="compression.type",
    )
    compression_gzip_level: int = setting(
        "compression.gzip.level",
        INT,
        -1,
        "The level of gzip when the broker compresses; -1 is the codec's own choice.",
        least=1,
        most=9,
        also=(-1,),
        broker_name="compression.gzip.level",
    )
    compression_lz4_level: int = setting(
        "compression.lz4.level", INT, 9, "The level of lz4.", least=1, most=17, broker_name="compression.lz4.level"
    )
    compression_zstd_level: int = setting(
        "compression.zstd.level",
        INT,
        3,
        "The level of zstd.",
        least=-131_072,
        most=22,
        broker_name="compression.zstd.level",
    )
    delete_retention_ms: int = setting(
        "delete.retention.ms",
        LONG,
        86_400_000,
        "How long a tombstone stays after compaction has seen it.",
        least=0,
        broker_name="log.cleaner.delete.retention.ms",
    )
    diskless_enable: bool = setting(
        "diskless.enable",
        BOOLEAN,
        False,
        "The records are kept in object storage and on no broker's disk. Set to true on a classic topic it makes new "
        "records diskless, while older ones stay where they are; it can be set back to false only until the first "
        "partition has become diskless. A topic created without it takes log.diskless.enable.",
    )
    file_delete_delay_ms: int = setting(
        "file.delete.delay.ms",
        LONG,
        60_000,
        "How long the files of a deleted segment stay on disk, renamed.",
        least=0,
        broker_name="log.segment.delete.delay.ms",
    )
    flush_messages: int = setting(
        "flush.messages",
        LONG,
        INT64_MAX,
        "fsync after this many records; 1 makes an acknowledged record survive a power failure.",
        least=1,
        broker_name="log.flush.interval.messages",
    )
    flush_ms: int = setting(
        "flush.ms",
        LONG,
        INT64_MAX,
        "fsync when the oldest unflushed record is this old.",
        least=0,
        broker_name="log.flush.interval.ms",
    )
    follower_replication_throttled_replicas: tuple[str, ...] = setting(
        "follower.replication.throttled.replicas",
        LIST,
        (),
        "Replicas throttled as followers: partition:broker pairs, or * for all.",
        no_effect="replication is not throttled yet",
    )
    index_interval_bytes: int = setting(
        "index.interval.bytes",
        INT,
        4096,
        "An index entry is added after at least this many bytes of records.",
        least=0,
        broker_name="log.index.interval.bytes",
    )
    leader_replication_throttled_replicas: tuple[str, ...] = setting(
        "leader.replication.throttled.replicas",
        LIST,
        (),
        "Replicas throttled as leaders: partition:broker pairs, or * for all.",
        no_effect="replication is not throttled yet",
    )
    local_retention_bytes: int = setting(
        "local.retention.bytes",
        LONG,
        -2,
        "Tiered topics: how much stays on the broker's disks. -2 means as much as retention.bytes. Not more than "
        "retention.bytes, for diskless topics too, which are converted by local.retention.ms alone.",
        least=-2,
        broker_name="log.local.retention.bytes",
    )
    local_retention_ms: int = setting(
        "local.retention.ms",
        LONG,
        -2,
        "Tiered topics: how long records stay on the broker's disks. -2 means as long as retention.ms. Diskless "
        "topics: how old records are when they are converted into tiered segments (strandline tiering run). -2 means "
        "inkless.tiering.default.local.retention.ms, -1 not before somebody triggers it. Not longer than retention.ms.",
        least=-2,
        broker_name="log.local.retention.ms",
    )
    max_compaction_lag_ms: int = setting(
        "max.compaction.lag.ms",
        LONG,
        INT64_MAX,
        "Records older than this are compacted whatever the ratio.",
        least=1,
        broker_name="log.cleaner.max.compaction.lag.ms",
    )
    max_message_bytes: int = setting(
        "max.message.bytes",
        INT,
        1_048_588,
        "Largest record batch, compressed, that a producer may send.",
        least=0,
        broker_name="message.max.bytes",
    )
    message_timestamp_after_max_ms: int = setting(
        "message.timestamp.after.max.ms",
        LONG,
        HOUR_MS,
        "A record whose create time lies further ahead than this is refused.",
        least=0,
        broker_name="log.message.timestamp.after.max.ms",
    )
    message_timestamp_before_max_ms: int = setting(
        "message.timestamp.before.max.ms",
        LONG,
        INT64_MAX,
        "A record whose create time lies further back than this is refused.",
        least=0,
        broker_name="log.message.timestamp.before.max.ms",
    )
    message_timestamp_type: str = setting(
        "message.timestamp.type",
        STRING,
        "CreateTime",
        "The timestamp of a record: CreateTime is the producer's, LogAppendTime the broker's.",
        allowed=TIMESTAMP_TYPES,
        broker_name="log.message.timestamp.type",
    )
    min_cleanable_dirty_ratio: float = setting(
        "min.cleanable.dirty.ratio",
        DOUBLE,
        0.5,
        "A partition is compacted when at least this part of it is not compacted yet.",
        least=0.0,
        most=1.0,
        broker_name="log.cleaner.min.cleanable.ratio",
    )
    min_compaction_lag_ms: int = setting(
        "min.compaction.lag.ms",
        LONG,
        0,
        "Records younger than this are not compacted.",
        least=0,
        broker_name="log.cleaner.min.compaction.lag.ms",
    )
    min_insync_replicas: int = setting(
        "min.insync.replicas",
        INT,
        1,
        "With acks=all a write is refused while fewer replicas than this are in sync.",
        least=1,
        broker_name="min.insync.replicas",
    )
    preallocate: bool = setting(
        "preallocate",
        BOOLEAN,
        False,
        "New segment files are created at full size and truncated when they are closed.",
        broker_name="log.preallocate",
    )
    remote_log_copy_disable: bool = setting(
        "remote.log.copy.disable",
        BOOLEAN,
        False,
        "Tiered topics: no further segments are copied. Those in remote storage are still read, and expire.",
    )
    remote_log_delete_on_disable: bool = setting(
        "remote.log.delete.on.disable",
        BOOLEAN,
        False,
        "Tiered topics: remote.storage.enable may be set to false, which deletes the remote segments of the topic.",
    )
    remote_storage_enable: bool = setting(
        "remote.storage.enable",
        BOOLEAN,
        False,
        "Closed segments are copied to remote storage, and leave the broker's disks by local.retention.*. Needs "
        "remote.log.storage.system.enable on the broker, and cleanup.policy delete.",
    )
    retention_bytes: int = setting(
        "retention.bytes",
        LONG,
        -1,
        "Oldest segments are deleted while a partition is larger than this. -1 keeps any size.",
        broker_name="log.retention.bytes",
    )
    retention_ms: int = setting(
        "retention.ms",
        LONG,
        168 * HOUR_MS,
        "A segment is deleted when its newest record is older than this. -1 keeps records for ever.",
        least=-1,
        broker_name="log.retention.ms",
    )
    segment_bytes: int = setting(
        "segment.bytes",
        INT,
        1024**3,
        "A segment file is closed before it would grow past this size.",
        least=SMALLEST_SEGMENT,
        broker_name="log.segment.bytes",
    )
    segment_index_bytes: int = setting(
        "segment.index.bytes",
        INT,
        10 * 1024 * 1024,
        "Largest size of an offset or time index; a full index closes its segment.",
        least=4,
        broker_name="log.index.size.max.bytes",
    )
    segment_jitter_ms: int = setting(
        "segment.jitter.ms",
        LONG,
        0,
        "Rolling by time happens up to this much earlier, by chance.",
        least=0,
        broker_name="log.roll.jitter.ms",
    )
    segment_ms: int = setting(
        "segment.ms",
        LONG,
        168 * HOUR_MS,
        "A segment is closed when its records span this time, even if it is small.",
        least=1,
        broker_name="log.roll.ms",
    )
    unclean_leader_election_enable: bool = setting(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        "A replica that is not in sync may become leader when no other is left, losing records.",
        broker_name="unclean.leader.election.enable",
    )
    internal_segment_bytes: int | None = setting(
        "internal.segment.bytes",
        INT,
        None,
        "As segment.bytes without its lower limit, for tests that want small segments.",
        least=1,
        is_internal=True,
    )

    @property
    def effective_segment_bytes(self) -> int:
        """The size at which a segment is closed."""
        return self.segment_bytes if self.internal_segment_bytes is None else self.internal_segment_bytes

    @property
    def is_compacted(self) -> bool:
        """True if the topic is compacted. Tiered topics are not, even if that is the broker's default."""
        return "compact" in self.cleanup_policy and not self.remote_storage_enable

    @property
    def is_deleted_by_retention(self) -> bool:
        """True if retention.ms and retention.bytes delete segments of the topic."""
        return "delete" in self.cleanup_policy


TOPIC_DECLARATIONS: Final[Mapping[str, Declaration]] = declarations_of(TopicConfig)
# Settings that the broker has in several units have a property for the value in force.
_BROKER_ATTRIBUTES: Final[Mapping[str, str]] = {
    **{d.name: attribute_of(d.broker_name) for d in TOPIC_DECLARATIONS.values() if d.broker_name is not None},
    "retention.ms": "retention_ms",
    "segment.ms": "roll_ms",
    "segment.jitter.ms": "roll_jitter_ms",
    "flush.ms": "flush_interval_ms",
}


def broker_value(declaration: Declaration, log: LogSettings) -> Value:
    """What a topic setting is when the topic does not override it."""
    attribute = _BROKER_ATTRIBUTES.get(declaration.name)
    if attribute is None:
        return declaration.default
    value: Value = getattr(log, attribute)
    return value


def topic_values(overrides: Mapping[str, str], log: LogSettings) -> dict[str, Value]:
    """Constructor arguments of TopicConfig. Raises InvalidConfig for an illegal value; other names are left out.

    Names this version does not know are not an error here: they may come from a newer controller.
    """
    values: dict[str, Value] = {}
    for name, declaration in TOPIC_DECLARATIONS.items():
        given = overrides.get(name)
        values[declaration.attribute] = broker_value(declaration, log) if given is None else declaration.parse(given)
    return values
