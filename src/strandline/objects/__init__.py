"""Bytes in and out of object storage: a directory, S3, GCS, Azure or memory behind one interface.

Here: whole objects written at once, ranged reads, listing, deleting, retries, deadlines, hedged reads, the marker that
keeps two clusters apart. Not here: what the bytes mean; this package knows no topics and no partitions.
"""

from strandline.objects.store import (
    ObjectExists,
    ObjectInfo,
    ObjectNotFound,
    ObjectStore,
    ObjectStoreError,
    ObjectStoreMisconfigured,
    ObjectStoreUnavailable,
)

__all__ = [
    "ObjectExists",
    "ObjectInfo",
    "ObjectNotFound",
    "ObjectStore",
    "ObjectStoreError",
    "ObjectStoreMisconfigured",
    "ObjectStoreUnavailable",
]
