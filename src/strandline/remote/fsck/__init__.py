"""Compares remote storage with its description, and both with the topics and logs that there are.

Here: what can be wrong (`values`), the names of objects (`names`), the description as its records add up to it
(`description`), one segment (`segment`), what the description alone tells (`partitions`, `holes`), and the comparison
of everything (`comparison`). Not here: where records, topics and logs are read from; `FsckSource` is a port that
`admin` implements.
"""

from __future__ import annotations

from strandline.remote.fsck.comparison import RemoteFsck
from strandline.remote.fsck.values import (
    ClusterState,
    FsckSource,
    RemoteFindingKind,
    RemoteFsckOptions,
    RemoteFsckReport,
    TieredLogBounds,
)

__all__ = [
    "ClusterState",
    "FsckSource",
    "RemoteFindingKind",
    "RemoteFsck",
    "RemoteFsckOptions",
    "RemoteFsckReport",
    "TieredLogBounds",
]
