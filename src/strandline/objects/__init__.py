"""Bytes in and out of object storage: a directory, S3, GCS, Azure or memory behind one interface.

Here: whole objects written at once, files copied piece by piece, ranged reads, listing, deleting, retries, deadlines,
hedged reads, the marker that keeps two clusters apart. Not here: what the bytes mean; this package knows no topics and
no partitions.
"""

from strandline.objects.counting import CountingStore, ObjectStoreStatus, OperationStatus, Traffic
from strandline.objects.marker import MARKER_KEY, claim_prefix, prefix_owner
from strandline.objects.opening import harden, open_objects
from strandline.objects.options import ObjectOptions, Patience, S3Options
from strandline.objects.retrying import RetryingStore
from strandline.objects.store import (
    ObjectExists,
    ObjectInfo,
    ObjectNotFound,
    ObjectStore,
    ObjectStoreError,
    ObjectStoreMisconfigured,
    ObjectStoreUnavailable,
    SourceUnreadable,
)

__all__ = [
    "MARKER_KEY",
    "CountingStore",
    "ObjectExists",
    "ObjectInfo",
    "ObjectNotFound",
    "ObjectOptions",
    "ObjectStore",
    "ObjectStoreError",
    "ObjectStoreMisconfigured",
    "ObjectStoreStatus",
    "ObjectStoreUnavailable",
    "OperationStatus",
    "Patience",
    "RetryingStore",
    "S3Options",
    "SourceUnreadable",
    "Traffic",
    "claim_prefix",
    "harden",
    "open_objects",
    "prefix_owner",
]
