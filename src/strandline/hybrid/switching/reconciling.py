"""Comparing a local log with its boundary: whenever a log is loaded, or led in a new epoch."""

from __future__ import annotations

import enum

from strandline.controlplane import DisklessLog
from strandline.log import UnifiedLog
from strandline.model import NO_EPOCH


class Fit(enum.Enum):
    """How a log and the boundary B0 fit together."""

    NO_BOUNDARY = enum.auto()
    """The log is not switched."""
    FITS = enum.auto()
    """The log ends at B0."""
    ENDS_ABOVE = enum.auto()
    """Records above B0 were never acknowledged by the control plane, which has others there: they are cut off."""
    ENDS_BELOW = enum.auto()
    """The log lacks records below B0."""
    BOUNDARY_BELOW_START = enum.auto()
    """The log starts above B0."""
    NOT_ITS_LOG = enum.auto()
    """The control plane has an empty log from offset 0 on that no switch made; the local records count."""

    def sentence(self, log: UnifiedLog, plane: DisklessLog | None) -> str:
        """What is wrong, and what to do; empty if nothing is."""
        name, boundary = log.topic_partition, -1 if plane is None else plane.diskless_log_start_offset
        match self:
            case Fit.ENDS_ABOVE:
                return (
                    f"{name} became diskless at offset {boundary}, but its log in {log.directory} ends at "
                    f"{log.log_end_offset}: the records above the boundary are removed from it."
                )
            case Fit.ENDS_BELOW:
                return (
                    f"{name} became diskless at offset {boundary}, but its log in {log.directory} ends at "
                    f"{log.log_end_offset}. Records below the boundary are not served by this broker: restore the "
                    "directory, or delete the records up to the boundary with DeleteRecords."
                )
            case Fit.BOUNDARY_BELOW_START:
                return (
                    f"{name} became diskless at offset {boundary}, but its log in {log.directory} starts at "
                    f"{log.log_start_offset}. The boundary is taken back, and set again at the end of the log, if "
                    "nothing was written behind it."
                )
            case Fit.NOT_ITS_LOG:
                return (
                    f"{name} has records in {log.directory}, and the control plane has an empty diskless log from "
                    "offset 0 on. The local records count: the partition stays classic."
                )
        return ""


def compare(log: UnifiedLog, plane: DisklessLog | None) -> Fit:
    """How the log and what the control plane has of it fit together. Pure."""
    if plane is None or plane.diskless_log_start_offset < 0:
        return Fit.NO_BOUNDARY
    boundary, end = plane.diskless_log_start_offset, log.log_end_offset
    if end > boundary and plane.high_watermark == 0 and plane.last_epoch == NO_EPOCH:
        return Fit.NOT_ITS_LOG
    if log.log_start_offset > boundary:
        return Fit.BOUNDARY_BELOW_START
    if end > boundary:
        return Fit.ENDS_ABOVE
    return Fit.ENDS_BELOW if end < boundary else Fit.FITS


def cut_to(log: UnifiedLog, boundary: int) -> None:
    """End the log at the boundary. What is known to be in remote storage stays known. Raises KafkaStorageError."""
    if log.truncate_above_boundary(boundary):
        log.roll()  # what is left of the segment can be copied
