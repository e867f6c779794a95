"""Remote storage as it is opened: storage, index cache, remote log metadata, reader and manager, in this order.

Loaded when `remote.log.storage.system.enable` is true; other brokers do not pay for it. Closed in the reverse order:
the manager stops before the remote log metadata that it writes, and both before the logs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from strandline.assembly.base import Base
from strandline.assembly.loading import RemoteNeeds
from strandline.assembly.metadata import MetadataLayer
from strandline.config import Settings, TierSettings
from strandline.config.remote import BUILT_IN_METADATA
from strandline.hybrid.remote.limits import check_one_storage, fetch_quota, manager_limits, reader_limits
from strandline.hybrid.remote.metadata_topic import MetadataTopicCreation
from strandline.hybrid.remote.replicas import TieredReplicas
from strandline.hybrid.remote.store_check import RemoteIdentity, checking, remote_identity
from strandline.hybrid.remote.subscriptions import MetadataSubscriptions
from strandline.hybrid.remote.tier import RemoteTier
from strandline.hybrid.store_watch import StoreWatch
from strandline.remote.indexes import RemoteIndexCache, open_index_cache
from strandline.remote.manager import PrefixCoverage, RemoteLogManager
from strandline.remote.plugins import MetadataPluginContext, add_class_paths, open_metadata_plugin, open_remote_storage
from strandline.remote.ports import RemoteLogMetadataManager
from strandline.remote.reader import RemoteLogReader
from strandline.remote.storage import DeadlineStorage
from strandline.remote.values import RemoteLogSegmentId
from strandline.replication.remote_metadata import ReplicatedMetadataTopic
from strandline.tasks import TaskSet, in_background

# Later than the deadline of the storage, which knows better what did not answer.
_CHECK_WITHIN_S: Final = 15.0
# A storage that answers does so by then; a start waits no longer.
_COMPARED_WITHIN_S: Final = 2.0
INDEX_CACHE_DIRECTORY: Final = "remote-log-index-cache"


@asynccontextmanager
async def open_remote_tier(base: Base, metadata: MetadataLayer, needs: RemoteNeeds) -> AsyncIterator[RemoteTier]:
    """The tier, until the block ends; it follows the replicas of this broker.

    Raises InvalidConfig for settings that cannot be used, RemoteStorageError if the storage must answer first and does
    not, WrongStore if it is not the one that holds the segments of this cluster.
    """
    settings, loader, clock = metadata.settings.now, metadata.loader, base.clock
    metadata_topic = _build_metadata_topic(base, metadata, needs)
    context = _plugin_context(base, metadata, metadata_topic)
    check_one_storage(settings, loader.image.brokers)
    tiers = settings.tiers
    add_class_paths(tiers.remote_log_storage_manager_class_path, tiers.remote_log_metadata_manager_class_path)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        stack.push_async_callback(metadata_topic.close)
        storage, identity = await enter(_open_storage(base, metadata, needs, context))
        need = asyncio.Event()
        tier = await enter(_open_over(base, settings, context, storage, need))
        following = _build_following(base, metadata, needs, tier)
        await enter(in_background({"tiered-topics-gone": following.run()}))
        if tiers.has_built_in_metadata:
            creation = MetadataTopicCreation(settings, loader, needs.controller, need, clock)
            await enter(in_background({"remote-log-metadata-topic": creation.run(identity)}))
        stack.callback(needs.replicas.add_replica_listener(following))
        yield tier


@asynccontextmanager
async def _open_storage(
    base: Base, metadata: MetadataLayer, needs: RemoteNeeds, context: MetadataPluginContext
) -> AsyncIterator[tuple[DeadlineStorage, RemoteIdentity | None]]:
    """The storage, compared with what the cluster has kept in it, and watched."""
    settings, clock = metadata.settings.now, base.clock
    async with AsyncExitStack() as stack:
        name = settings.tiers.remote_log_storage_manager_class_name
        opening = open_remote_storage(settings.rsm_config, context, class_name=name)
        storage = await stack.enter_async_context(opening)
        identity = remote_identity(
            storage,
            metadata.loader,
            needs.records,
            needs.logs,
            settings,
            topic_config=metadata.settings.topic_config,
            clock=clock,
            ids=base.ids,
        )
        if identity is not None:
            await identity.begin(within=_COMPARED_WITHIN_S)
        if storage.is_checkable:
            watch = StoreWatch(storage.health, checking(storage, identity), clock=clock, deadline=_CHECK_WITHIN_S)
            watching = TaskSet()
            watching.start(watch.run(), name="remote-storage-watch")
            stack.push_async_callback(watching.close)
        yield storage, identity


@asynccontextmanager
async def _open_over(
    base: Base, settings: Settings, context: MetadataPluginContext, storage: DeadlineStorage, need: asyncio.Event
) -> AsyncIterator[RemoteTier]:
    """What copies to the storage and reads from it. `need` is set when there is something to copy."""
    tiers, clock = settings.tiers, base.clock
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        place = context.log_dirs[0] / INDEX_CACHE_DIRECTORY
        cache = open_index_cache(place, storage, max_bytes=tiers.index_cache_max_bytes, clock=clock, ids=base.ids)
        indexes = await enter(cache)
        segments = await enter(_open_metadata(settings, context))
        quota, limits = fetch_quota(tiers, clock), reader_limits(tiers)
        reading = RemoteLogReader(storage, segments, indexes, limits=limits, clock=clock, quota=quota)
        reader = await enter(reading.running())
        managing = _build_manager(base, tiers, storage, segments, forget=_forgetting(indexes, reader))
        manager = await enter(managing.running())
        yield RemoteTier(
            storage=storage,
            metadata=segments,
            indexes=indexes,
            reader=reader,
            manager=manager,
            fetch_quota=quota,
            prefixes=PrefixCoverage(segments),
            on_need=need.set,
            subscriptions=MetadataSubscriptions(segments),
        )


@asynccontextmanager
async def _open_metadata(settings: Settings, context: MetadataPluginContext) -> AsyncIterator[RemoteLogMetadataManager]:
    tiers = settings.tiers
    name = BUILT_IN_METADATA if tiers.has_built_in_metadata else tiers.remote_log_metadata_manager_class_name
    metadata = await open_metadata_plugin(name, settings.rlmm_config, context)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(metadata.close)
        if tiers.has_built_in_metadata:
            await stack.enter_async_context(metadata.running())
        yield metadata


def _build_metadata_topic(base: Base, metadata: MetadataLayer, needs: RemoteNeeds) -> ReplicatedMetadataTopic:
    return ReplicatedMetadataTopic(
        needs.replicas,
        metadata.loader,
        node_id=base.node_id,
        listener=metadata.settings.now.network.inter_broker_listener,
        clock=base.clock,
    )


def _plugin_context(
    base: Base, metadata: MetadataLayer, metadata_topic: ReplicatedMetadataTopic
) -> MetadataPluginContext:
    settings = metadata.settings.now
    return MetadataPluginContext(
        data_dir=Path(settings.cluster.strandline_data_dir),
        log_dirs=tuple(map(Path, settings.log.log_dirs)),
        node_id=base.node_id,
        cluster_id=metadata.loader.image.cluster_id,
        clock=base.clock,
        ids=base.ids,
        chance=base.chance,
        serves_clients=True,
        metadata_topic=metadata_topic,
    )


def _build_manager(
    base: Base,
    tiers: TierSettings,
    storage: DeadlineStorage,
    segments: RemoteLogMetadataManager,
    *,
    forget: Callable[[Collection[RemoteLogSegmentId]], None],
) -> RemoteLogManager:
    return RemoteLogManager(
        storage,
        segments,
        broker_id=base.node_id,
        limits=manager_limits(tiers),
        clock=base.clock,
        ids=base.ids,
        chance=base.chance,
        on_segments_deleted=forget,
    )


def _forgetting(indexes: RemoteIndexCache, reader: RemoteLogReader) -> Callable[[Collection[RemoteLogSegmentId]], None]:
    def forget(segments: Collection[RemoteLogSegmentId]) -> None:
        indexes.forget(segments)
        reader.forget(segments)

    return forget


def _build_following(base: Base, metadata: MetadataLayer, needs: RemoteNeeds, tier: RemoteTier) -> TieredReplicas:
    return TieredReplicas(
        tier.manager,
        tier.metadata,
        metadata.loader,
        clock=base.clock,
        look_again_s=metadata.settings.now.tiers.remote_log_manager_task_interval_ms / 1000,
        on_need=tier.on_need,
        suffix_bytes=needs.suffix_bytes,
        tell_log_start=needs.tell_log_start,
        subscriptions=tier.subscriptions,
    )
