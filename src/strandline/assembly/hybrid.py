"""Partitions as request handlers find them, and the topics of each tier."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from strandline.assembly.base import Base
from strandline.assembly.loading import load_diskless_tier
from strandline.assembly.metadata import MetadataLayer
from strandline.assembly.replicas import ReplicaLayer
from strandline.hybrid.diskless.leftovers import Leftovers
from strandline.hybrid.diskless.store_check import objects_identity, watch_objects
from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.hybrid.partitions import Partitions
from strandline.hybrid.remote.topics import TieredTopics
from strandline.hybrid.store_identity import StoreIdentity
from strandline.hybrid.store_watch import StoreWatch
from strandline.hybrid.suffix_sizes import SuffixSizes
from strandline.hybrid.tiers import DisklessOpening


class DisklessStore(NamedTuple):
    """The object store of diskless topics, before it is opened."""

    identity: StoreIdentity
    watch: StoreWatch
    opening: DisklessOpening


class HybridLayer(NamedTuple):
    """What serves partitions, whatever tiers hold their records."""

    tiered: TieredTopics
    suffix_sizes: SuffixSizes
    partitions: Partitions
    store: DisklessStore
    diskless: DisklessTopics


def build_hybrid(base: Base, metadata: MetadataLayer, lower: ReplicaLayer) -> HybridLayer:
    """Partitions over both tiers; neither is open yet."""
    tiered, replicas = TieredTopics(), lower.replicas
    # Diskless topics are served as partitions, and say why one is missing among these: they are asked when it is.
    partitions = Partitions(
        tiered,
        topic_name=replicas.topic_name,
        why_missing=lambda topic, number: diskless.why_missing(topic, number) or replicas.why_missing(topic, number),
    )
    replicas.add_replica_listener(partitions)
    # The store is wanted while there are diskless topics, and they are not created while its watch says it is away.
    store = _build_store(base, metadata, lower, has_topics=lambda: bool(diskless.by_key or diskless.unserved))
    diskless = _build_diskless(base, metadata, lower, partitions, store)
    return HybridLayer(tiered=tiered, suffix_sizes=SuffixSizes(), partitions=partitions, store=store, diskless=diskless)


def _build_store(
    base: Base, metadata: MetadataLayer, lower: ReplicaLayer, *, has_topics: Callable[[], bool]
) -> DisklessStore:
    now, loader, kinds = metadata.settings.now, metadata.loader, lower.kinds
    identity = objects_identity(now, loader, lower.plane.stores, base.ids)
    watch = watch_objects(
        now,
        lambda: loader.image.cluster_id,
        identity,
        has_topics=has_topics,
        clock=base.clock,
        ids=base.ids,
    )
    open_tier = partial(
        load_diskless_tier,
        base,
        metadata,
        lower.plane,
        topics=lambda: filter(kinds.is_diskless_topic, loader.image.topics.values()),
        health=watch.health,
        identity=identity,
    )
    return DisklessStore(identity=identity, watch=watch, opening=DisklessOpening(open_tier, watch.health))


def _build_diskless(
    base: Base, metadata: MetadataLayer, lower: ReplicaLayer, partitions: Partitions, store: DisklessStore
) -> DisklessTopics:
    settings, plane = metadata.settings, lower.plane
    return DisklessTopics(
        base.node_id,
        metadata.loader,
        store.opening.opened,
        logs=plane.reads,
        creation=plane.lifecycle,
        leftovers=Leftovers(plane.lifecycle, plane.files, metadata.loader),
        kinds=lower.kinds,
        partitions=partitions,
        topic_config=settings.topic_config,
        store_health=store.watch.health,
        on_log_wanted=lower.replicas.follow,
        clock=base.clock,
        is_enabled=settings.now.diskless.diskless_storage_system_enable,
    )
