"""Everything that partitions need, from the logs on disk up to what serves the tiers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from strandline.assembly.base import Base
from strandline.assembly.conversion import ConversionLayer, build_conversion
from strandline.assembly.hybrid import HybridLayer, build_hybrid
from strandline.assembly.metadata import MetadataLayer
from strandline.assembly.replicas import ReplicaLayer, build_replicas
from strandline.assembly.switching import SwitchingLayer, build_switching
from strandline.assembly.tiers import TierLayer, build_tiers
from strandline.log import LogManager
from strandline.metadata import ActiveController


class PartitionLayers(NamedTuple):
    """Lowest first."""

    replicas: ReplicaLayer
    hybrid: HybridLayer
    switching: SwitchingLayer
    conversion: ConversionLayer
    tiers: TierLayer


def build_partitions(
    base: Base,
    metadata: MetadataLayer,
    logs: LogManager,
    controller: ActiveController,
    *,
    broker_epoch: Callable[[], int],
) -> PartitionLayers:
    """Nothing is loaded or opened yet."""
    replicas = build_replicas(base, metadata, logs, controller, broker_epoch=broker_epoch)
    hybrid = build_hybrid(base, metadata, replicas)
    switching = build_switching(base, metadata, replicas, hybrid)
    conversion = build_conversion(base, metadata, replicas, hybrid)
    tiers = build_tiers(base, metadata, replicas, hybrid, switching, conversion, controller)
    return PartitionLayers(replicas=replicas, hybrid=hybrid, switching=switching, conversion=conversion, tiers=tiers)
