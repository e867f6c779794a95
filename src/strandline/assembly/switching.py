"""The switch of classic topics to diskless."""

from __future__ import annotations

from typing import NamedTuple

from strandline.assembly.base import Base
from strandline.assembly.hybrid import HybridLayer
from strandline.assembly.metadata import MetadataLayer
from strandline.assembly.replicas import ReplicaLayer
from strandline.hybrid.diskless.prefix_watch import PrefixWatch
from strandline.hybrid.switching.checks import TopicSwitchChecks
from strandline.hybrid.switching.prefixes import PrefixKeeper
from strandline.hybrid.switching.reports import SwitchReports
from strandline.hybrid.switching.states import TopicMigrationStates
from strandline.hybrid.switching.switches import TopicSwitches


class SwitchingLayer(NamedTuple):
    """What switches topics, follows their older part, and says how far it is."""

    switches: TopicSwitches
    prefixes: PrefixKeeper
    prefix_watch: PrefixWatch
    reports: SwitchReports
    checks: TopicSwitchChecks
    states: TopicMigrationStates


def build_switching(base: Base, metadata: MetadataLayer, lower: ReplicaLayer, hybrid: HybridLayer) -> SwitchingLayer:
    """Switches on the replicas of this broker."""
    switches = _build_switches(base, metadata, lower, hybrid)
    lower.replicas.add_replica_listener(switches)
    return SwitchingLayer(
        switches=switches,
        prefixes=_build_prefixes(base, metadata, lower, hybrid, switches),
        prefix_watch=_build_prefix_watch(base, metadata, lower, hybrid),
        reports=SwitchReports(
            switches,
            metadata.loader,
            lower.plane.migrations,
            topic_config=metadata.settings.topic_config,
            without_log=hybrid.diskless.registry.without_log.values,
            node_id=base.node_id,
        ),
        checks=TopicSwitchChecks(
            metadata.loader, lower.replicas, hybrid.tiered, hybrid.diskless, settings=metadata.settings.current
        ),
        states=TopicMigrationStates(lower.plane.migrations, metadata.settings.topic_config),
    )


def _build_switches(base: Base, metadata: MetadataLayer, lower: ReplicaLayer, hybrid: HybridLayer) -> TopicSwitches:
    return TopicSwitches(
        hybrid.partitions,
        hybrid.diskless,
        boundaries=lower.plane.migrations,
        logs=lower.plane.reads,
        kinds=lower.kinds,
        settings=lambda: metadata.settings.now.diskless,
        clock=base.clock,
    )


def _build_prefixes(
    base: Base, metadata: MetadataLayer, lower: ReplicaLayer, hybrid: HybridLayer, switches: TopicSwitches
) -> PrefixKeeper:
    """Older parts of which this broker has the log."""
    return PrefixKeeper(
        lambda: switches.switches,
        hybrid.diskless,
        hybrid.tiered,
        hybrid.suffix_sizes,
        logs=lower.plane.reads,
        reports=lower.plane.migrations,
        copying_ms=lambda: metadata.settings.now.diskless.inkless_migration_segment_wait_ms,
        on_lost=switches.boundary_lost,
        clock=base.clock,
    )


def _build_prefix_watch(base: Base, metadata: MetadataLayer, lower: ReplicaLayer, hybrid: HybridLayer) -> PrefixWatch:
    """Older parts of which another broker has the log."""
    diskless = hybrid.diskless
    return PrefixWatch(
        diskless.registry,
        lower.plane.reads,
        learn=lambda log: diskless.engine.learn(log),
        is_prefix_served=lambda: metadata.settings.now.diskless.inkless_hybrid_read_enabled,
        on_lost=diskless.boundary_lost,
        clock=base.clock,
    )
