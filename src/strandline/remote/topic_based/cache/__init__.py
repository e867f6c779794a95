"""What the records of `__remote_log_metadata` add up to, in memory.

`store` holds all partitions of one metadata partition, `partition` the segments of one of them, `epochs` which of its
segments answers for an offset in one leader epoch. No I/O.
"""

from strandline.remote.topic_based.cache.epochs import RemoteLogLeaderEpochState
from strandline.remote.topic_based.cache.partition import CacheImage, RemoteLogMetadataCache
from strandline.remote.topic_based.cache.store import RemotePartitionMetadataStore, StoreImage

__all__ = [
    "CacheImage",
    "RemoteLogLeaderEpochState",
    "RemoteLogMetadataCache",
    "RemotePartitionMetadataStore",
    "StoreImage",
]
