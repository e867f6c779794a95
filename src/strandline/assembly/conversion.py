"""What this broker does for the tiering pipeline."""

from __future__ import annotations

from typing import NamedTuple

from strandline.assembly.base import Base
from strandline.assembly.hybrid import HybridLayer
from strandline.assembly.metadata import MetadataLayer
from strandline.assembly.replicas import ReplicaLayer
from strandline.hybrid.conversion.figures import TieringFigures
from strandline.hybrid.conversion.keeper import ConvertedKeeper, KeeperPorts
from strandline.hybrid.conversion.led import LedPartitions
from strandline.hybrid.conversion.led_tiers import LedTiers
from strandline.hybrid.conversion.needed_metadata import ConvertedMetadata
from strandline.hybrid.conversion.read_plans import ReadPlans
from strandline.hybrid.conversion.service import TieringService
from strandline.hybrid.conversion.uploads import LeaderUploads


class ConversionLayer(NamedTuple):
    """What keeps converted records in order, and what answers the pipeline."""

    keeper: ConvertedKeeper
    service: TieringService


def build_conversion(base: Base, metadata: MetadataLayer, lower: ReplicaLayer, hybrid: HybridLayer) -> ConversionLayer:
    """For partitions that this broker leads."""
    settings, plane = metadata.settings, lower.plane
    figures, led = TieringFigures(), LedPartitions(metadata.loader, base.node_id)
    needed = ConvertedMetadata(hybrid.tiered, base.clock)
    # The keeper finishes uploads, and is woken by each that was committed.
    uploads = LeaderUploads(
        needed,
        led,
        uploads=plane.uploads,
        batches=plane.reads,
        topic_config=settings.topic_config,
        producer_id_expiration_ms=lambda: settings.now.transactions.producer_id_expiration_ms,
        on_committed=lambda partition: keeper.wake(),
        figures=figures,
        clock=base.clock,
        ids=base.ids,
    )
    keeper = ConvertedKeeper(
        _keeper_ports(lower),
        hybrid.diskless,
        hybrid.tiered,
        led,
        needed,
        uploads,
        hybrid.suffix_sizes,
        topic_config=settings.topic_config,
        figures=figures,
        clock=base.clock,
    )
    service = _build_service(base, metadata, lower, hybrid, uploads, led, figures)
    return ConversionLayer(keeper=keeper, service=service)


def _keeper_ports(lower: ReplicaLayer) -> KeeperPorts:
    plane = lower.plane
    return KeeperPorts(
        logs=plane.reads,
        conversion=plane.uploads,
        given_up=plane.given_up,
        trimming=plane.trimming,
        prefixes=plane.migrations,
        time=plane.files,
    )


def _build_service(
    base: Base,
    metadata: MetadataLayer,
    lower: ReplicaLayer,
    hybrid: HybridLayer,
    uploads: LeaderUploads,
    led: LedPartitions,
    figures: TieringFigures,
) -> TieringService:
    settings, plane = metadata.settings, lower.plane
    return TieringService(
        hybrid.diskless,
        uploads,
        ReadPlans(plane.reads, hybrid.partitions, hybrid.tiered, led),
        LedTiers(plane.reads, plane.uploads, hybrid.tiered, led, base.clock),
        metadata.loader,
        claims=plane.claims,
        merging=plane.merging,
        wishes=plane.wishes,
        settings=settings.current,
        topic_config=settings.topic_config,
        figures=figures,
        clock=base.clock,
    )
