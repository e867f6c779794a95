"""The part of `strandline fsck` for tiered topics: remote storage compared with remote log metadata."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from strandline.admin.commands.fsck.remote_sources import Conversion, LogDirectories, RunningCluster, locked
from strandline.client import Cluster, CommandFailed
from strandline.clock import SystemClock
from strandline.config import Settings, TopicConfig
from strandline.config.remote import BUILT_IN_STORAGE
from strandline.controlplane import StoreRecords
from strandline.errors import InvalidConfig
from strandline.hybrid.remote.store_check import is_tiered, remote_use
from strandline.hybrid.store_identity import StoreUse
from strandline.metadata import MetadataImage
from strandline.model import REMOTE_LOG_METADATA_TOPIC
from strandline.objects import open_objects
from strandline.objects.comparing import Progress
from strandline.remote.fsck import FsckSource, RemoteFsck, RemoteFsckOptions, RemoteFsckReport
from strandline.remote.manager import ManagerLimits
from strandline.remote.storage import ObjectSettings, parse_object_settings

# No copy takes this long. Only for caution: remote log metadata is written before the objects are.
_GRACE_MS: Final = 3_600_000
# Copies and deletions that failed count as stuck after this many rounds of the RemoteLogManager.
_ROUNDS_MISSED: Final = 10


class PluginsInUse(CommandFailed):
    """Segments or remote log metadata are kept by a plugin, which this command cannot read."""


def remote_options(settings: Settings, *, deep: bool, repair: bool, grace: float | None) -> RemoteFsckOptions:
    """How far to look. `grace` in seconds holds for everything, if it is given."""
    missed_ms = _ROUNDS_MISSED * settings.tiers.remote_log_manager_task_interval_ms
    grace_ms = None if grace is None else round(grace * 1000)
    return RemoteFsckOptions(
        grace_ms=_GRACE_MS if grace_ms is None else grace_ms,
        stuck_ms=ManagerLimits().abandoned_copy_ms + missed_ms if grace_ms is None else grace_ms,
        deep=deep,
        repair=repair,
    )


def check_remote(settings: Settings) -> ObjectSettings:
    """Where remote storage is. Raises CommandFailed if there is none that this command can read."""
    tiers = settings.tiers
    if tiers.remote_log_storage_manager_class_name != BUILT_IN_STORAGE or not tiers.has_built_in_metadata:
        raise PluginsInUse(
            "remote.log.storage.manager.class.name or remote.log.metadata.manager.class.name names a plugin: only the "
            "built-in storage and remote log metadata can be compared. --tier diskless leaves remote storage out."
        )
    return check_remote_storage(settings)


def check_remote_storage(settings: Settings) -> ObjectSettings:
    """The same whatever keeps remote log metadata."""
    if settings.tiers.remote_log_storage_manager_class_name != BUILT_IN_STORAGE:
        raise PluginsInUse("remote.log.storage.manager.class.name names a plugin: only the built-in storage has an id.")
    try:
        found = parse_object_settings(settings.rsm_config, Path(settings.cluster.strandline_data_dir))
    except InvalidConfig as error:
        raise CommandFailed(str(error)) from error
    if found.url.startswith("memory://"):
        raise CommandFailed(
            "rsm.config.url=memory:// is a storage inside the broker's process, which no other process can read."
        )
    directory = found.url.removeprefix("file://")
    if found.url.startswith("file://") and not os.path.isdir(directory):
        raise CommandFailed(
            f"There is no directory {directory} for remote segments: name the settings of the broker with --data-dir, "
            "--config or --set rsm.config.url=URL. --tier diskless leaves remote storage out."
        )
    return found


def remote_use_of(storage: ObjectSettings, settings: Settings, image: MetadataImage, records: StoreRecords) -> StoreUse:
    """What is known of remote storage without the log directories, which may be those of other brokers."""

    def topic_config(topic: str) -> TopicConfig:
        return settings.topic_config(image.topic_overrides(topic))

    # Segments may have been copied if there are topics that have some.
    may_have_segments = REMOTE_LOG_METADATA_TOPIC in image.topics or any(
        is_tiered(topic_config(topic)) for topic in image.topics
    )
    return remote_use(
        storage,
        lambda: image,
        topic_config,
        records=records,
        may_have_segments=lambda _: may_have_segments,
        with_remote_part=tuple,
        may_move=lambda: False,
    )


async def compare_files(
    settings: Settings, image: MetadataImage, conversion: Conversion, options: RemoteFsckOptions, show: Progress
) -> RemoteFsckReport:
    """With the log directories of a stopped broker. Raises LogsOutOfReach, CommandFailed."""
    storage = check_remote(settings)
    topics = {topic_id: len(topic.partitions) for topic_id, topic in image.topics_by_id.items()}
    metadata = image.topics.get(REMOTE_LOG_METADATA_TOPIC)
    count = 0 if metadata is None else len(metadata.partitions)
    with locked(settings.log.log_dirs):
        source = LogDirectories(settings.log.log_dirs, topics, conversion, metadata_partitions=count)
        return await _compare(storage, source, options, show)


async def compare_cluster(
    settings: Settings, bootstrap: str, conversion: Conversion, options: RemoteFsckOptions, show: Progress
) -> RemoteFsckReport:
    """With what running brokers say. Raises CommandFailed."""
    storage = check_remote(settings)
    with Cluster(bootstrap) as cluster:
        return await _compare(storage, RunningCluster(cluster, conversion), options, show)


async def _compare(
    storage: ObjectSettings, source: FsckSource, options: RemoteFsckOptions, show: Progress
) -> RemoteFsckReport:
    async with open_objects(storage.url, storage.options) as store:
        return await RemoteFsck(source, store, storage.prefix, SystemClock(), options, show).run()
