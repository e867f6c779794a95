"""The reader of diskless topics, and the memory that serves it.

`reader` is what others use; it answers from memory what it can. `tails` knows the offsets of each partition and its
watchers, `history` the commits that the database must not lose; `blocks` and `cache` hold batches in memory. What is
not there is found in the control plane and loaded from WAL objects (`reading`, `runs`, `planning`, `pieces`,
`loading`), also ahead of consumers that catch up (`readahead`). `lookups` answers ListOffsets. `memory` recycles the
buffers of batches.
"""

from strandline.diskless.reader.cache import CacheStatus
from strandline.diskless.reader.limits import DisklessReaderLimits
from strandline.diskless.reader.lookups import OffsetLookups
from strandline.diskless.reader.memory import RecycledMemory
from strandline.diskless.reader.reader import DisklessReader, DisklessReaderStatus

__all__ = [
    "CacheStatus",
    "DisklessReader",
    "DisklessReaderLimits",
    "DisklessReaderStatus",
    "OffsetLookups",
    "RecycledMemory",
]
