"""Settings of the pipeline that converts diskless batches into tiered segments. Its driver asks a broker for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from strandline.config.declare import CLUSTER_WIDE, INT, LONG, setting
from strandline.errors import InvalidConfig
from strandline.model import INT32_MAX

_MEGABYTE: Final = 1024 * 1024
_HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TieringSettings:
    """What is converted when, into segments of which size, and how much at once."""

    # Which records

    inkless_tiering_default_local_retention_ms: int = setting(
        "inkless.tiering.default.local.retention.ms",
        LONG,
        _HOUR_MS,
        "Records of a diskless topic whose local.retention.ms is -2 are converted into tiered segments when they are "
        "older than this. -1: not before somebody triggers it.",
        least=-1,
        dynamic=CLUSTER_WIDE,
    )

    # Splitting

    inkless_tiering_splitter_interval_ms: int = setting(
        "inkless.tiering.splitter.interval.ms",
        LONG,
        60_000,
        "strandline tiering run --follow: the pause between two looks for WAL objects to split.",
        least=1,
        dynamic=CLUSTER_WIDE,
    )
    inkless_tiering_splitter_max_files_per_run: int = setting(
        "inkless.tiering.splitter.max.files.per.run",
        INT,
        10,
        "WAL objects that are claimed at a time, more if they are small; there are as many rounds as there is work.",
        least=1,
        dynamic=CLUSTER_WIDE,
    )
    inkless_tiering_splitter_claim_duration_ms: int = setting(
        "inkless.tiering.splitter.claim.duration.ms",
        LONG,
        300_000,
        "How long a claim of a WAL object or of a segment lasts. The driver renews it while it works; after a crash "
        "others may take over when it has expired.",
        least=1000,
        dynamic=CLUSTER_WIDE,
    )
    inkless_tiering_max_batches_per_run: int = setting(
        "inkless.tiering.max.batches.per.run",
        INT,
        1000,
        "Rows of the control plane that are claimed, or recorded as split, at a time. A WAL object with more of them "
        "is taken alone.",
        least=1,
        dynamic=CLUSTER_WIDE,
    )

    # Merging

    inkless_tiering_merger_interval_ms: int = setting(
        "inkless.tiering.merger.interval.ms",
        LONG,
        300_000,
        "strandline tiering run --follow: the pause between two looks for split files to merge into segments.",
        least=1,
        dynamic=CLUSTER_WIDE,
    )
    inkless_tiering_merger_initial_delay_ms: int = setting(
        "inkless.tiering.merger.initial.delay.ms",
        LONG,
        60_000,
        "strandline tiering run --follow: the pause before the first look for split files to merge, so that the first "
        "splits are there, and drivers that start together do not ask together.",
        least=0,
        dynamic=CLUSTER_WIDE,
    )
    inkless_tiering_merger_max_wait_ms: int = setting(
        "inkless.tiering.merger.max.wait.ms",
        LONG,
        _HOUR_MS,
        "Split files that have waited this long are merged although they are fewer than "
        "inkless.tiering.min.segment.bytes, so that topics with little traffic are converted as well.",
        least=0,
        dynamic=CLUSTER_WIDE,
    )
    inkless_tiering_min_segment_bytes: int = setting(
        "inkless.tiering.min.segment.bytes",
        LONG,
        _MEGABYTE,
        "Split files of a partition are merged when they have at least this many bytes, or segment.bytes of the topic "
        "if that is less.",
        least=1,
        dynamic=CLUSTER_WIDE,
    )
    inkless_tiering_max_segment_bytes: int = setting(
        "inkless.tiering.max.segment.bytes",
        LONG,
        1024 * _MEGABYTE,
        "The largest segment that is made, or segment.bytes of the topic if that is less.",
        least=1,
        most=INT32_MAX,
        dynamic=CLUSTER_WIDE,
    )

    # Running

    inkless_tiering_task_buffer_bytes: int = setting(
        "inkless.tiering.task.buffer.bytes",
        INT,
        16 * _MEGABYTE,
        "Memory for record bytes in one Spark task, whatever the size of objects and segments.",
        least=4096,
        dynamic=CLUSTER_WIDE,
    )
    inkless_tiering_alert_after_failures: int = setting(
        "inkless.tiering.alert.after.failures",
        INT,
        5,
        "strandline tiering run --follow goes on for ever, with longer and longer pauses; from this many failures in a "
        "row on it says so as an error.",
        least=1,
        dynamic=CLUSTER_WIDE,
    )

    def check(self) -> None:
        """Raise InvalidConfig if settings of this area contradict each other."""
        if self.inkless_tiering_min_segment_bytes > self.inkless_tiering_max_segment_bytes:
            raise InvalidConfig(
                f"inkless.tiering.min.segment.bytes ({self.inkless_tiering_min_segment_bytes}) must not be greater "
                f"than inkless.tiering.max.segment.bytes ({self.inkless_tiering_max_segment_bytes})."
            )
