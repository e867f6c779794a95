"""Which tier serves which offsets of a partition. Pure: decided from known offsets, without I/O."""

from __future__ import annotations

import enum
from typing import NamedTuple

from strandline.model import INT64_MAX, Offset


class Tier(enum.Enum):
    """Where the bytes of a record are read from."""

    LOCAL = enum.auto()
    """Segment files on this broker's disks."""
    REMOTE = enum.auto()
    """Segments in remote storage (KIP-405)."""
    DISKLESS = enum.auto()
    """WAL objects, in the order that the control plane gives."""


class Extent(NamedTuple):
    """The offsets from `start` up to, but not including, `end` that one tier serves."""

    tier: Tier
    start: Offset
    end: Offset = INT64_MAX
    """The largest offset there is stands for a tier that still grows."""


class PartitionLayout(NamedTuple):
    """Which tier serves which offset of a partition.

    The extents of one layout leave no offset between the log start and the log end without a tier. They may overlap:
    the first one that holds an offset serves it. A tier that grows knows by itself where it ends; an offset beyond
    that is out of range although the layout names the tier.
    """

    extents: tuple[Extent, ...]

    def tier_of(self, offset: Offset) -> Tier | None:
        """The tier that serves a read of this offset; None below the log start."""
        for tier, start, end in self.extents:
            if start <= offset < end:
                return tier
        return None


def classic_layout(log_start: Offset, local_start: Offset, has_remote: bool) -> PartitionLayout:
    """A local log, whose older part may be in remote storage only.

    Without remote storage nothing below the local log can be read, even if the log start has not followed yet.
    """
    local = Extent(Tier.LOCAL, local_start)
    if has_remote and log_start < local_start:
        return PartitionLayout((local, Extent(Tier.REMOTE, log_start, local_start)))
    return PartitionLayout((local,))


def suffix_layout(boundary: Offset, read_boundary: Offset) -> PartitionLayout:
    """A diskless log that begins at B0, and is converted into remote segments up to the read boundary.

    What is known of the log start may be older than the control plane's: an offset below it is refused by the reader.
    """
    rows = Extent(Tier.DISKLESS, read_boundary)
    if boundary < read_boundary:
        return PartitionLayout((rows, Extent(Tier.REMOTE, boundary, read_boundary)))
    return PartitionLayout((rows,))


def hybrid_layout(
    log_start: Offset, local_start: Offset, has_remote: bool, boundary: Offset, read_boundary: Offset
) -> PartitionLayout:
    """A classic log that ends at the boundary, and the diskless log that begins there."""
    before = classic_layout(log_start, local_start, has_remote).extents
    prefix = (Extent(tier, start, min(end, boundary)) for tier, start, end in before if start < boundary)
    return PartitionLayout((*suffix_layout(boundary, read_boundary).extents, *prefix))
