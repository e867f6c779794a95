"""Indexes of remote segments, cached so that reads do not fetch them again.

`cache` is what readers use: it looks in `memory`, then on `disk` (`files`), then in remote storage. `segment` is what
it hands out: the indexes of one segment, and the checks that their bytes have passed. Not here: the indexes of local
segments (`log`).
"""

from strandline.remote.indexes.cache import IndexCacheStatus, RemoteIndexCache, open_index_cache
from strandline.remote.indexes.segment import (
    RemoteIndexDamaged,
    RemoteIndexes,
    SegmentAbortedTransactions,
    check_index,
)

__all__ = [
    "IndexCacheStatus",
    "RemoteIndexCache",
    "RemoteIndexDamaged",
    "RemoteIndexes",
    "SegmentAbortedTransactions",
    "check_index",
    "open_index_cache",
]
