"""Copies closed segments of led partitions to remote storage.

`plan` decides which segments are copied next, `task` is the job of one partition, `segment` copies a single segment.
"""

from strandline.remote.manager.copying.segment import SegmentCopier
from strandline.remote.manager.copying.task import CopyTask

__all__ = ["CopyTask", "SegmentCopier"]
