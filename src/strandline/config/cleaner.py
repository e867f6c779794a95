"""Settings of compaction."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.config.declare import BOOLEAN, CLUSTER_WIDE, DOUBLE, INT, LONG, setting
from strandline.errors import InvalidConfig
from strandline.model import INT64_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerSettings:
    """Settings of compaction. Part of `LogSettings`."""

    log_cleaner_enable: bool = setting(
        "log.cleaner.enable", BOOLEAN, True, "Compaction runs. Switched off, compacted topics only grow."
    )
    log_cleaner_threads: int = setting(
        "log.cleaner.threads", INT, 1, "Partitions compacted at the same time.", least=0, dynamic=CLUSTER_WIDE
    )
    log_cleaner_dedupe_buffer_size: int = setting(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        134_217_728,
        "Memory in bytes, over all cleaner threads, for the map from keys to their newest offset.",
        least=1,
        dynamic=CLUSTER_WIDE,
    )
    log_cleaner_io_buffer_size: int = setting(
        "log.cleaner.io.buffer.size",
        INT,
        524_288,
        "Memory in bytes, over all cleaner threads, for reading and writing.",
        least=0,
        dynamic=CLUSTER_WIDE,
        no_effect="compaction sizes its buffers itself",
    )
    log_cleaner_io_buffer_load_factor: float = setting(
        "log.cleaner.io.buffer.load.factor",
        DOUBLE,
        0.9,
        "How full the map from keys to offsets may get.",
        least=0.0,
        most=1.0,
        dynamic=CLUSTER_WIDE,
        no_effect="compaction sizes its map by log.cleaner.dedupe.buffer.size alone",
    )
    log_cleaner_io_max_bytes_per_second: float = setting(
        "log.cleaner.io.max.bytes.per.second",
        DOUBLE,
        1.7976931348623157e308,
        "Limit on what compaction reads and writes together. The default is no limit.",
        least=1.0,
        dynamic=CLUSTER_WIDE,
    )
    log_cleaner_backoff_ms: int = setting(
        "log.cleaner.backoff.ms",
        LONG,
        15_000,
        "How long the cleaner rests when no partition is worth compacting.",
        least=0,
        dynamic=CLUSTER_WIDE,
    )
    log_cleaner_min_cleanable_ratio: float = setting(
        "log.cleaner.min.cleanable.ratio",
        DOUBLE,
        0.5,
        "A partition is compacted when at least this part of it is not compacted yet.",
        least=0.0,
        most=1.0,
        dynamic=CLUSTER_WIDE,
    )
    log_cleaner_delete_retention_ms: int = setting(
        "log.cleaner.delete.retention.ms",
        LONG,
        86_400_000,
        "How long a tombstone stays after compaction has seen it.",
        least=0,
        dynamic=CLUSTER_WIDE,
    )
    log_cleaner_min_compaction_lag_ms: int = setting(
        "log.cleaner.min.compaction.lag.ms",
        LONG,
        0,
        "Records younger than this are not compacted.",
        least=0,
        dynamic=CLUSTER_WIDE,
    )
    log_cleaner_max_compaction_lag_ms: int = setting(
        "log.cleaner.max.compaction.lag.ms",
        LONG,
        INT64_MAX,
        "Records older than this are compacted whatever the ratio.",
        least=1,
        dynamic=CLUSTER_WIDE,
    )

    def check(self) -> None:
        """Raise InvalidConfig if settings of this area contradict each other."""
        least, most = self.log_cleaner_min_compaction_lag_ms, self.log_cleaner_max_compaction_lag_ms
        if least > most:
            raise InvalidConfig(
                f"log.cleaner.min.compaction.lag.ms ({least}) must not be greater than "
                f"log.cleaner.max.compaction.lag.ms ({most})."
            )
