"""Opens tiered storage: storage, index cache, remote log metadata, reader and manager, in this order.

Loaded when `remote.log.storage.system.enable` is true; other brokers do not pay for it. Closed in the reverse order:
the manager stops before the remote log metadata that it writes, and both before the logs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from strandline.clock import Chance, Clock, Ids
from strandline.config import Settings, TierSettings
from strandline.config.passed_on import handed_on
from strandline.config.remote import BUILT_IN_METADATA, BUILT_IN_STORAGE
from strandline.config.topic import TopicConfig
from strandline.controlplane.store_records import StoreRecords
from strandline.errors import InvalidConfig, StrandlineError
from strandline.hybrid.remote.replicas import TieredReplicas
from strandline.hybrid.remote.store_check import RemoteIdentity, checking, remote_identity
from strandline.hybrid.remote.subscriptions import MetadataSubscriptions
from strandline.hybrid.remote.tier import RemoteTier
from strandline.hybrid.store_watch import StoreWatch
from strandline.log import LogManager
from strandline.metadata import ActiveController, MetadataLoader, wanted_topic
from strandline.model import REMOTE_LOG_METADATA_TOPIC, TopicIdPartition
from strandline.remote.indexes import open_index_cache
from strandline.remote.manager import ManagerLimits, PrefixCoverage, RemoteLogManager
from strandline.remote.plugins import MetadataPluginContext, add_class_paths, open_metadata_plugin, open_remote_storage
from strandline.remote.ports import RemoteLogMetadataManager
from strandline.remote.quota import RateQuota
from strandline.remote.reader import RemoteLogReader, RemoteReaderLimits
from strandline.remote.values import RemoteLogSegmentId
from strandline.replication import Partition, ReplicaManager
from strandline.replication.remote_metadata import ReplicatedMetadataTopic
from strandline.tasks import TaskSet, in_background

logger = logging.getLogger(__name__)

# Later than the deadline of the storage, which knows better what did not answer.
_CHECK_WITHIN_S: Final = 15.0
# A storage that answers does so by then; a start waits no longer.
_COMPARED_WITHIN_S: Final = 2.0
INDEX_CACHE_DIRECTORY: Final = "remote-log-index-cache"


@asynccontextmanager
async def open_remote_tier(
    settings: Settings,
    loader: MetadataLoader,
    controller: ActiveController,
    replicas: ReplicaManager,
    records: StoreRecords,
    logs: LogManager,
    *,
    topic_config: Callable[[str], TopicConfig],
    clock: Clock,
    ids: Ids,
    chance: Chance,
    suffix_bytes: Callable[[TopicIdPartition], int],
    tell_log_start: Callable[[Partition], Awaitable[None]],
) -> AsyncIterator[RemoteTier]:
    """The tier, until the block ends; it follows the replicas of this broker.

    `suffix_bytes` is the size of the diskless part of a partition, which counts for retention.bytes; `tell_log_start`
    tells others that serve a partition where it starts, before segments are deleted.

    Raises InvalidConfig for settings that cannot be used, RemoteStorageError if the storage must answer first and does
    not, WrongStore if it is not the one that holds the segments of this cluster.
    """
    tiers, node_id = settings.tiers, settings.cluster.node_id
    metadata_topic = ReplicatedMetadataTopic(
        replicas,
        loader,
        node_id=node_id,
        listener=settings.network.inter_broker_listener,
        clock=clock,
    )
    context = MetadataPluginContext(
        data_dir=Path(settings.cluster.strandline_data_dir),
        log_dirs=tuple(map(Path, settings.log.log_dirs)),
        node_id=node_id,
        cluster_id=loader.image.cluster_id,
        clock=clock,
        ids=ids,
        chance=chance,
        serves_clients=True,
        metadata_topic=metadata_topic,
    )
    _check_shared(settings, loader.image.brokers)
    add_class_paths(tiers.remote_log_storage_manager_class_path, tiers.remote_log_metadata_manager_class_path)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        stack.push_async_callback(metadata_topic.close)
        name = tiers.remote_log_storage_manager_class_name
        storage = await enter(open_remote_storage(settings.rsm_config, context, class_name=name))
        identity = remote_identity(
            storage, loader, records, logs, settings, topic_config=topic_config, clock=clock, ids=ids
        )
        if identity is not None:
            await identity.begin(within=_COMPARED_WITHIN_S)
        if storage.is_checkable:
            watch = StoreWatch(storage.health, checking(storage, identity), clock=clock, deadline=_CHECK_WITHIN_S)
            watching = TaskSet()
            watching.start(watch.run(), name="remote-storage-watch")
            stack.push_async_callback(watching.close)
        indexes = await enter(
            open_index_cache(
                context.log_dirs[0] / INDEX_CACHE_DIRECTORY,
                storage,
                max_bytes=tiers.index_cache_max_bytes,
                clock=clock,
                ids=ids,
            )
        )
        metadata = await enter(_open_metadata(settings, context))
        quota = _fetch_quota(tiers, clock)
        reader = await enter(
            RemoteLogReader(
                storage, metadata, indexes, limits=_reader_limits(tiers), clock=clock, quota=quota
            ).running()
        )

        def forget(segments: Collection[RemoteLogSegmentId]) -> None:
            indexes.forget(segments)
            reader.forget(segments)

        manager = await enter(
            RemoteLogManager(
                storage,
                metadata,
                broker_id=node_id,
                limits=_manager_limits(tiers),
                clock=clock,
                ids=ids,
                chance=chance,
                on_segments_deleted=forget,
            ).running()
        )
        need = asyncio.Event()
        subscriptions = MetadataSubscriptions(metadata)
        following = TieredReplicas(
            manager,
            metadata,
            loader,
            clock=clock,
            look_again_s=tiers.remote_log_manager_task_interval_ms / 1000,
            on_need=need.set,
            suffix_bytes=suffix_bytes,
            tell_log_start=tell_log_start,
            subscriptions=subscriptions,
        )
        await enter(in_background({"tiered-topics-gone": following.run()}))
        if tiers.has_built_in_metadata:
            creating = _create_when_needed(need, identity, settings, loader, controller, clock)
            await enter(in_background({"remote-log-metadata-topic": creating}))
        stack.callback(replicas.add_replica_listener(following))
        yield RemoteTier(
            storage=storage,
            metadata=metadata,
            indexes=indexes,
            reader=reader,
            manager=manager,
            fetch_quota=quota,
            prefixes=PrefixCoverage(metadata),
            on_need=need.set,
            subscriptions=subscriptions,
        )


def _check_shared(settings: Settings, brokers: Collection[int]) -> None:
    """Refuse a default storage in a cluster: each broker would have its own, which the others cannot read."""
    others = sorted(set(brokers) - {settings.cluster.node_id})
    is_own = settings.tiers.remote_log_storage_manager_class_name == BUILT_IN_STORAGE
    if others and is_own and not handed_on(settings.static, settings.tiers.remote_log_storage_manager_impl_prefix):
        names = ", ".join(map(str, others))
        raise InvalidConfig(
            f"The cluster has other brokers ({names}), and all of them have to keep segments in one storage, but "
            f"{settings.tiers.rsm_config_url} would be used by this broker alone. Give every broker the same "
            "rsm.config.url."
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


async def _create_when_needed(
    need: asyncio.Event,
    identity: RemoteIdentity | None,
    settings: Settings,
    loader: MetadataLoader,
    controller: ActiveController,
    clock: Clock,
) -> None:
    """Create the topic of remote log metadata as soon as there is a tiered replica, and the storage is recorded."""
    tiers = settings.tiers
    pause = tiers.rlmm_config_remote_log_metadata_initialization_retry_interval_ms / 1000
    patience = tiers.rlmm_config_remote_log_metadata_initialization_retry_max_timeout_ms / 1000
    await need.wait()
    if identity is not None:  # until then nothing can be copied; its watch says why
        await identity.wait_settled()
    complain_at = clock.monotonic() + patience
    while REMOTE_LOG_METADATA_TOPIC not in loader.image.topics:
        wanted = wanted_topic(REMOTE_LOG_METADATA_TOPIC, settings, loader.image)
        try:
            (answer,) = await controller.create_topics([wanted])
        except StrandlineError as error:
            answer = error
        if not isinstance(answer, StrandlineError):
            return
        if clock.monotonic() >= complain_at:
            logger.error("nothing can be tiered, %s cannot be created: %s", REMOTE_LOG_METADATA_TOPIC, answer)
            complain_at = clock.monotonic() + patience
        await clock.sleep(pause)


def _manager_limits(tiers: TierSettings) -> ManagerLimits:
    return ManagerLimits(
        copier_thread_pool_size=tiers.remote_log_manager_copier_thread_pool_size,
        expiration_thread_pool_size=tiers.remote_log_manager_expiration_thread_pool_size,
        task_interval_ms=tiers.remote_log_manager_task_interval_ms,
        task_retry_backoff_ms=tiers.remote_log_manager_task_retry_backoff_ms,
        task_retry_backoff_max_ms=tiers.remote_log_manager_task_retry_backoff_max_ms,
        task_retry_jitter=tiers.remote_log_manager_task_retry_jitter,
        copy_max_bytes_per_second=tiers.remote_log_manager_copy_max_bytes_per_second,
        copy_quota_window_num=tiers.remote_log_manager_copy_quota_window_num,
        copy_quota_window_size_seconds=tiers.remote_log_manager_copy_quota_window_size_seconds,
        custom_metadata_max_bytes=tiers.remote_log_metadata_custom_metadata_max_bytes,
    )


def _reader_limits(tiers: TierSettings) -> RemoteReaderLimits:
    return RemoteReaderLimits(
        parallel_reads=tiers.remote_log_reader_threads,
        max_pending=tiers.remote_log_reader_max_pending_tasks,
        cache_max_bytes=tiers.strandline_remote_read_cache_max_bytes,
        fetch_max_wait_ms=tiers.remote_fetch_max_wait_ms,
        list_offsets_timeout_ms=tiers.remote_list_offsets_request_timeout_ms,
    )


def _fetch_quota(tiers: TierSettings, clock: Clock) -> RateQuota:
    return RateQuota(
        tiers.remote_log_manager_fetch_max_bytes_per_second,
        windows=tiers.remote_log_manager_fetch_quota_window_num,
        window_seconds=tiers.remote_log_manager_fetch_quota_window_size_seconds,
        clock=clock,
    )
