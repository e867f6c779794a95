"""What serves the tiers from the start of a broker to its end."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from strandline.assembly.base import Base
from strandline.assembly.conversion import ConversionLayer
from strandline.assembly.hybrid import HybridLayer
from strandline.assembly.loading import RemoteNeeds, load_remote_tier
from strandline.assembly.metadata import MetadataLayer
from strandline.assembly.replicas import ReplicaLayer
from strandline.assembly.switching import SwitchingLayer
from strandline.hybrid.following import FollowingPartitions
from strandline.hybrid.log_starts import LogStarts
from strandline.hybrid.serving import TierServing
from strandline.hybrid.tiers import RemoteStorageUse, WithoutRemoteStorage, WithRemoteStorage
from strandline.hybrid.used_stores import UsedStores
from strandline.metadata import ActiveController


class TierLayer(NamedTuple):
    """What the life of a broker asks of its tiers."""

    remote: RemoteStorageUse
    serving: TierServing
    following: FollowingPartitions
    stores: UsedStores


def build_tiers(
    base: Base,
    metadata: MetadataLayer,
    lower: ReplicaLayer,
    hybrid: HybridLayer,
    switching: SwitchingLayer,
    conversion: ConversionLayer,
    controller: ActiveController,
) -> TierLayer:
    """Joins what serves partitions with what works for them in the background."""
    hybrid.store.opening.when_opened(switching.switches.wake)  # the first topic to be switched has waited for the store
    starts = LogStarts(switching.switches, switching.prefixes)
    needs = RemoteNeeds(
        controller=controller,
        replicas=lower.replicas,
        records=lower.plane.stores,
        logs=lower.logs,
        suffix_bytes=hybrid.suffix_sizes,
        tell_log_start=starts.tell,
    )
    remote = _build_use(base, metadata, hybrid, needs)
    serving = TierServing(
        sql=metadata.sql,
        objects_watch=hybrid.store.watch,
        objects_identity=hybrid.store.identity,
        diskless=hybrid.diskless,
        remote=remote,
        switches=switching.switches,
        prefixes=switching.prefixes,
        prefix_watch=switching.prefix_watch,
        converted=conversion.keeper,
    )
    return TierLayer(
        remote=remote,
        serving=serving,
        following=FollowingPartitions(lower.replicas, hybrid.diskless, hybrid.partitions),
        stores=UsedStores(hybrid.store.watch, hybrid.tiered),
    )


def _build_use(base: Base, metadata: MetadataLayer, hybrid: HybridLayer, needs: RemoteNeeds) -> RemoteStorageUse:
    settings = metadata.settings
    if settings.now.tiers.remote_log_storage_system_enable:
        return WithRemoteStorage(hybrid.tiered, partial(load_remote_tier, base, metadata, needs))
    return WithoutRemoteStorage(base.node_id, metadata.loader, topic_config=settings.topic_config)
