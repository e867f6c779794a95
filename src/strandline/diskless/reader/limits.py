"""Limits of the reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DEFAULT_LAGGING_MS: Final = 60_000
DEFAULT_MAX_ROWS: Final = 1000
# A store that reads many ranges at once does so in a thread. These are half of those that a directory has.
THREADS_AHEAD: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class DisklessReaderLimits:
    """How much memory and how many reads at once. The settings are named in brackets."""

    cache_max_bytes: int = 256 * 1024 * 1024
    """Memory of the cache; 0 turns it off (inkless.consume.cache.max.bytes)."""
    parallel_reads: int = 32
    """Objects read at the same time (inkless.fetch.data.thread.pool.size)."""
    parallel_lagging_reads: int = 16
    """The same for lagging consumers; 0: they share the others' (inkless.fetch.lagging.consumer.thread.pool.size)."""
    lagging_threshold_ms: int = -1
    """Age of records from which their consumer lags; -1: a minute (inkless.fetch.lagging.consumer.threshold.ms)."""
    max_rows: int = 0
    """Rows of one partition used by one read; 0: the default (inkless.fetch.find.batches.max.per.partition)."""

    def calls_ahead(self, ranges_at_once: int) -> int:
        """Calls of the object store at the same time for blocks that no consumer waits for yet."""
        return THREADS_AHEAD if ranges_at_once > 1 else self.parallel_lagging_reads or self.parallel_reads

    @property
    def lagging_after_ms(self) -> int:
        """The age of records from which their consumer lags."""
        return DEFAULT_LAGGING_MS if self.lagging_threshold_ms < 0 else self.lagging_threshold_ms

    @property
    def rows_at_once(self) -> int:
        """Rows of one partition to ask for with one query."""
        return self.max_rows or DEFAULT_MAX_ROWS
