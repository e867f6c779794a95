"""Settings of the local log: directories, rolling, retention, compaction, flushing.

The settings that a topic may override (`config.topic`) are here under their broker names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from strandline.config.cleaner import CleanerSettings
from strandline.config.declare import BOOLEAN, CLUSTER_WIDE, INT, LIST, LONG, STRING, setting
from strandline.model import INT64_MAX

COMPRESSION_TYPES: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
CLEANUP_POLICIES: Final = ("compact", "delete")
TIMESTAMP_TYPES: Final = ("CreateTime", "LogAppendTime")
SMALLEST_SEGMENT: Final = 1024 * 1024
HOUR_MS: Final = 3_600_000
MINUTE_MS: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings(CleanerSettings):
    """Settings of the local log. `log_dirs` is never empty in settings made from properties."""

    log_dir: str | None = setting(
        "log.dir", STRING, None, "One directory for partitions. Used when log.dirs is not set.", may_be_empty=False
    )
    log_dirs: tuple[str, ...] = setting(
        "log.dirs",
        LIST,
        ("strandline-data/logs",),
        "The directories that hold partitions, separated by commas. A directory that fails takes only its own "
        "partitions offline. Without it: log.dir, or the directory logs below strandline.data.dir.",
        may_be_empty=False,
    )
    log_segment_bytes: int = setting(
        "log.segment.bytes",
        INT,
        1024**3,
        "A segment file is closed and a new one begun before it would grow past this size.",
        least=SMALLEST_SEGMENT,
        dynamic=CLUSTER_WIDE,
    )
    log_roll_ms: int | None = setting(
        "log.roll.ms",
        LONG,
        None,
        "A segment is closed when its records span this time, even if it is small. Without it: log.roll.hours.",
        least=1,
        dynamic=CLUSTER_WIDE,
    )
    log_roll_hours: int = setting(
        "log.roll.hours", INT, 168, "As log.roll.ms, in hours; log.roll.ms wins if both are set.", least=1
    )
    log_roll_jitter_ms: int | None = setting(
        "log.roll.jitter.ms",
        LONG,
        None,
        "Rolling by time happens up to this much earlier, by chance, so that partitions do not all roll at once. "
        "Without it: log.roll.jitter.hours.",
        least=0,
        dynamic=CLUSTER_WIDE,
    )
    log_roll_jitter_hours: int = setting(
        "log.roll.jitter.hours", INT, 0, "As log.roll.jitter.ms, in hours; log.roll.jitter.ms wins.", least=0
    )
    log_index_size_max_bytes: int = setting(
        "log.index.size.max.bytes",
        INT,
        10 * 1024 * 1024,
        "Largest size of an offset or time index; a full index closes its segment.",
        least=4,
        dynamic=CLUSTER_WIDE,
    )
    log_index_interval_bytes: int = setting(
        "log.index.interval.bytes",
        INT,
        4096,
        "An index entry is added after at least this many bytes of records.",
        least=0,
        dynamic=CLUSTER_WIDE,
    )
    log_retention_bytes: int = setting(
        "log.retention.bytes",
        LONG,
        -1,
        "Oldest segments are deleted while a partition is larger than this. -1 keeps any size.",
        dynamic=CLUSTER_WIDE,
    )
    log_retention_ms: int | None = setting(
        "log.retention.ms",
        LONG,
        None,
        "A segment is deleted when its newest record is older than this. -1 keeps records for ever. "
        "Without it: log.retention.minutes, then log.retention.hours.",
        least=1,
        also=(-1,),
        dynamic=CLUSTER_WIDE,
    )
    log_retention_minutes: int | None = setting(
        "log.retention.minutes",
        INT,
        None,
        "As log.retention.ms, in minutes. log.retention.ms wins over it, and it wins over log.retention.hours.",
        least=1,
        also=(-1,),
    )
    log_retention_hours: int = setting(
        "log.retention.hours",
        INT,
        168,
        "As log.retention.ms, in hours; log.retention.ms and log.retention.minutes win over it.",
        least=1,
        also=(-1,),
    )
    log_retention_check_interval_ms: int = setting(
        "log.retention.check.interval.ms", LONG, 300_000, "How often retention looks for old segments.", least=1
    )
    log_cleanup_policy: tuple[str, ...] = setting(
        "log.cleanup.policy",
        LIST,
        ("delete",),
        "What happens to old records: delete drops old segments, compact keeps the newest record of each key. "
        "Both may be given; an empty list keeps everything.",
        allowed=CLEANUP_POLICIES,
        dynamic=CLUSTER_WIDE,
    )
    log_segment_delete_delay_ms: int = setting(
        "log.segment.delete.delay.ms",
        LONG,
        60_000,
        "How long the files of a deleted segment stay on disk, renamed.",
        least=0,
        dynamic=CLUSTER_WIDE,
    )
    log_flush_interval_messages: int = setting(
        "log.flush.interval.messages",
        LONG,
        INT64_MAX,
        "fsync a partition after this many records. The default leaves flushing to the operating system, "
        "because replication makes records durable; 1 makes an acknowledged record survive a power failure.",
        least=1,
        dynamic=CLUSTER_WIDE,
    )
    log_flush_interval_ms: int | None = setting(
        "log.flush.interval.ms",
        LONG,
        None,
        "fsync a partition when its oldest unflushed record is this old. Without it: log.flush.scheduler.interval.ms.",
        least=0,
        dynamic=CLUSTER_WIDE,
    )
    log_flush_scheduler_interval_ms: int = setting(
        "log.flush.scheduler.interval.ms",
        LONG,
        INT64_MAX,
        "How often the flusher looks for partitions whose log.flush.interval.ms has passed.",
        least=1,
    )
    log_flush_offset_checkpoint_interval_ms: int = setting(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        60_000,
        "How often the recovery points are written to their checkpoint file.",
        least=0,
        no_effect="checkpoints of all kinds are written together",
    )
    log_flush_start_offset_checkpoint_interval_ms: int = setting(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        60_000,
        "How often the log start offsets are written to their checkpoint file.",
        least=0,
        no_effect="checkpoints of all kinds are written together",
    )
    log_initial_task_delay_ms: int = setting(
        "log.initial.task.delay.ms",
        LONG,
        30_000,
        "How long after the start the periodic work of the log begins.",
        least=0,
        is_internal=True,
    )
    log_dir_failure_timeout_ms: int = setting(
        "log.dir.failure.timeout.ms",
        LONG,
        30_000,
        "A broker that cannot report a failed directory to the controller within this time stops.",
        least=1,
    )
    num_recovery_threads_per_data_dir: int = setting(
        "num.recovery.threads.per.data.dir",
        INT,
        2,
        "Threads for each log directory that load partitions at start and flush them at stop.",
        least=1,
        dynamic=CLUSTER_WIDE,
    )
    log_preallocate: bool = setting(
        "log.preallocate",
        BOOLEAN,
        False,
        "New segment files are created at full size and truncated when they are closed.",
        dynamic=CLUSTER_WIDE,
    )
    log_message_timestamp_type: str = setting(
        "log.message.timestamp.type",
        STRING,
        "CreateTime",
        "The timestamp of a record: CreateTime is the producer's, LogAppendTime the broker's.",
        allowed=TIMESTAMP_TYPES,
        dynamic=CLUSTER_WIDE,
    )
    log_message_timestamp_before_max_ms: int = setting(
        "log.message.timestamp.before.max.ms",
        LONG,
        INT64_MAX,
        "A record whose create time lies further back than this is refused.",
        least=0,
        dynamic=CLUSTER_WIDE,
    )
    log_message_timestamp_after_max_ms: int = setting(
        "log.message.timestamp.after.max.ms",
        LONG,
        HOUR_MS,
        "A record whose create time lies further ahead than this is refused.",
        least=0,
        dynamic=CLUSTER_WIDE,
    )
    message_max_bytes: int = setting(
        "message.max.bytes",
        INT,
        1_048_588,
        "Largest record batch, compressed, that a producer may send.",
        least=0,
        dynamic=CLUSTER_WIDE,
    )
    compression_type: str = setting(
        "compression.type",
        STRING,
        "producer",
        "The codec in which batches are stored. producer keeps whatever the producer used.",
        allowed=COMPRESSION_TYPES,
        dynamic=CLUSTER_WIDE,
    )
    compression_gzip_level: int = setting(
        "compression.gzip.level",
        INT,
        -1,
        "The level of gzip when the broker compresses; -1 is the codec's own choice.",
        least=1,
        most=9,
        also=(-1,),
        dynamic=CLUSTER_WIDE,
    )
    compression_lz4_level: int = setting(
        "compression.lz4.level", INT, 9, "The level of lz4.", least=1, most=17, dynamic=CLUSTER_WIDE
    )
    compression_zstd_level: int = setting(
        "compression.zstd.level", INT, 3, "The level of zstd.", least=-131_072, most=22, dynamic=CLUSTER_WIDE
    )
    min_insync_replicas: int = setting(
        "min.insync.replicas",
        INT,
        1,
        "With acks=all a write is refused while fewer replicas than this are in sync.",
        least=1,
        dynamic=CLUSTER_WIDE,
    )
    unclean_leader_election_enable: bool = setting(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        "A replica that is not in sync may become leader when no other is left, losing records.",
        dynamic=CLUSTER_WIDE,
    )
    log_local_retention_ms: int = setting(
        "log.local.retention.ms",
        LONG,
        -2,
        "Tiered topics: how long records stay on the broker's disks. -2 means as long as log.retention.ms.",
        least=-2,
        dynamic=CLUSTER_WIDE,
    )
    log_local_retention_bytes: int = setting(
        "log.local.retention.bytes",
        LONG,
        -2,
        "Tiered topics: how much stays on the broker's disks. -2 means as much as log.retention.bytes.",
        least=-2,
        dynamic=CLUSTER_WIDE,
    )

    @property
    def retention_ms(self) -> int:
        """The retention time in force, whichever of the three settings gives it; -1 keeps records forever."""
        if self.log_retention_ms is not None:
            return self.log_retention_ms
        if self.log_retention_minutes is not None:
            return _scaled(self.log_retention_minutes, MINUTE_MS)
        return _scaled(self.log_retention_hours, HOUR_MS)

    @property
    def roll_ms(self) -> int:
        """The time after which a segment is closed, from whichever setting gives it."""
        return self.log_roll_ms if self.log_roll_ms is not None else self.log_roll_hours * HOUR_MS

    @property
    def roll_jitter_ms(self) -> int:
        """The jitter of rolling by time, from whichever setting gives it."""
        return self.log_roll_jitter_ms if self.log_roll_jitter_ms is not None else self.log_roll_jitter_hours * HOUR_MS

    @property
    def flush_interval_ms(self) -> int:
        """The longest time a record stays unflushed, from whichever setting gives it."""
        scheduled = self.log_flush_scheduler_interval_ms
        return self.log_flush_interval_ms if self.log_flush_interval_ms is not None else scheduled


def _scaled(value: int, unit_ms: int) -> int:
    return value if value < 0 else value * unit_ms
