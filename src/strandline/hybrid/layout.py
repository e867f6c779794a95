"""Which tier serves which offsets of a partition. Pure: decided from known offsets, without I/O."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple

from strandline.hybrid.reading import Engine
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
    """The offsets from `start` up to, but not including, `end` that one tier serves, and what reads them there."""

    tier: Tier
    engine: Engine
    start: Offset
    end: Offset = INT64_MAX
    """The largest offset there is stands for a tier that still grows, which has that offset, too."""


class PartitionLayout(NamedTuple):
    """Which tier serves which offset of a partition, newest extents first.

    The extents of one layout leave no offset between the log start and the log end without a tier. They may overlap:
    the first one that holds an offset serves it. A tier that grows knows by itself where it ends; an offset beyond
    that is out of range although the layout names the tier.
    """

    extents: tuple[Extent, ...] = ()

    def extent_of(self, offset: Offset) -> Extent | None:
        """The extent that serves a read of this offset; None below the log start."""
        for extent in self.extents:
            if extent.start <= offset < extent.end:
                return extent
        if offset == INT64_MAX:
            return next((extent for extent in self.extents if extent.end == INT64_MAX), None)
        return None

    def tier_of(self, offset: Offset) -> Tier | None:
        """The tier that serves a read of this offset; None below the log start."""
        extent = self.extent_of(offset)
        return None if extent is None else extent.tier


def replica_layout(local: Extent, log_start: Offset, remote: Engine | None) -> PartitionLayout:
    """The log of a replica, whose older part may be in remote storage only.

    Without remote storage nothing below the local log can be read, even if the log start has not followed yet.
    """
    if remote is not None and log_start < local.start:
        return PartitionLayout((local, Extent(Tier.REMOTE, remote, log_start, local.start)))
    return PartitionLayout((local,))


def diskless_layout(rows: Extent, boundary: Offset, converted: Engine) -> PartitionLayout:
    """A diskless log that begins at `boundary`, and is converted into remote segments up to where its rows begin.

    What is known of the log start may be older than the control plane's: an offset below it is refused by the reader.
    """
    if boundary < rows.start:
        return PartitionLayout((rows, Extent(Tier.REMOTE, converted, boundary, rows.start)))
    return PartitionLayout((rows,))


def joined(newest_first: Iterable[PartitionLayout]) -> PartitionLayout:
    """The parts of one log, each of which ends where the next newer one begins.

    A part's own layout ends there already; one whose log start has moved beyond its end has no offset left.
    """
    extents = (extent for layout in newest_first for extent in layout.extents)
    return PartitionLayout(tuple(extent for extent in extents if extent.start < extent.end))
