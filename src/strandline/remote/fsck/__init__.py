"""Compares remote storage with remote log metadata, and both with the topics and logs of the cluster.

`comparison` is the entry. `listing` lists the objects, `replay` reads the metadata, `segment` checks one segment,
`partitions` and `holes` check metadata against topics and logs, `values` are options and findings. Not here: where
records, topics and logs are read from; `FsckSource` is a port that `admin` implements.
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
