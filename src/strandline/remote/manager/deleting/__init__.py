"""Deletes remote segments: expired ones, those of topics that are no longer tiered, and those of deleted topics.

`plan` decides which segments expire, `expiration` is the job of one led partition, `withdrawal` its part while tiering
is switched off, `partition` the deletion of a whole partition, and `segment` deletes single segments.
"""

from strandline.remote.manager.deleting.expiration import ExpirationTask
from strandline.remote.manager.deleting.partition import PartitionDeletion
from strandline.remote.manager.deleting.segment import SegmentDeleter, SegmentsDeleted

__all__ = ["ExpirationTask", "PartitionDeletion", "SegmentDeleter", "SegmentsDeleted"]
