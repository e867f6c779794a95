"""Which tier holds an offset."""

from __future__ import annotations

from strandline.controlplane.values import DisklessLog, OffsetBoundary
from strandline.model import Offset


def boundary_of(log: DisklessLog, offset: Offset) -> OffsetBoundary:
    """The high watermark itself counts as diskless: that is where the next record will be."""
    if not log.log_start_offset <= offset <= log.high_watermark:
        return OffsetBoundary.OUT_OF_RANGE
    return OffsetBoundary.TIERED if offset < log.diskless_start_offset else OffsetBoundary.DISKLESS
