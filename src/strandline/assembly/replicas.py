"""The logs on this broker's disks, and the replicas that they are of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from strandline.assembly.base import Base
from strandline.assembly.metadata import MetadataLayer
from strandline.controlplane import SqlControlPlane
from strandline.hybrid.kinds import PartitionKinds
from strandline.log import LogManager, read_boot_id
from strandline.log.cleaning import LogCleaner
from strandline.metadata import ActiveController
from strandline.model import TopicPartition
from strandline.replication import (
    DirectoryReports,
    IsrChangeSender,
    LeaderEnvironment,
    LeaderUpkeep,
    ReplicaBrokers,
    ReplicaFetchers,
    ReplicaManager,
)


class ReplicaLayer(NamedTuple):
    """What this broker has logs of."""

    plane: SqlControlPlane
    logs: LogManager
    kinds: PartitionKinds
    replicas: ReplicaManager
    upkeep: LeaderUpkeep
    """Of the partitions that this broker leads."""


def build_logs(base: Base, metadata: MetadataLayer, *, on_directory_failure: Callable[[Path], None]) -> LogManager:
    """Logs are not loaded yet. `on_directory_failure` is called from any thread."""
    now = metadata.settings.now
    return LogManager(
        now.log,
        node_id=base.node_id,
        cluster_id=metadata.loader.image.cluster_id,
        clock=base.clock,
        ids=base.ids,
        chance=base.chance,
        producer_expiration_ms=now.transactions.producer_id_expiration_ms,
        on_directory_failure=on_directory_failure,
        checkpoint_interval_ms=now.replication.replica_high_watermark_checkpoint_interval_ms,
        remote_enabled=now.tiers.remote_log_storage_system_enable,
        boot_id=read_boot_id(),
    )


def load_logs(base: Base, metadata: MetadataLayer, logs: LogManager) -> None:
    """Open the logs of the replicas that the metadata assigns to this broker. Blocking."""
    image = metadata.loader.image

    def is_stray(partition: TopicPartition, topic_id: UUID | None) -> bool:
        topic = image.topics.get(partition.topic)
        known = None if topic is None else topic.partition(partition.partition)
        if topic is None or known is None or base.node_id not in known.replicas:
            return True
        return topic_id is not None and topic_id != topic.topic_id

    def place_of(partition: TopicPartition) -> UUID | None:
        """Where the log is, as the metadata says. Not of an only replica: which of two logs is better is not known."""
        known = image.partition(partition.topic, partition.partition)
        return None if known is None or len(known.replicas) == 1 else known.directory_of(base.node_id)

    logs.load(metadata.settings.topic_config, is_stray=is_stray, place_of=place_of)


def build_cleaner(base: Base, metadata: MetadataLayer, logs: LogManager) -> LogCleaner:
    """Compacts logs."""
    cleaner = LogCleaner(metadata.settings.now.log, logs.all_logs, base.clock)
    logs.on_truncation(cleaner.note_truncation)
    return cleaner


def build_replicas(
    base: Base,
    metadata: MetadataLayer,
    logs: LogManager,
    controller: ActiveController,
    *,
    broker_epoch: Callable[[], int],
) -> ReplicaLayer:
    """Replicas, and which partitions have one. The broker epoch is known once the broker has registered."""
    # Apart: brokers keep their sessions and the controller its lease while commits and reads wait for the database.
    plane = SqlControlPlane(metadata.sql.apart(), clock=base.clock)
    topic_config = metadata.settings.topic_config
    kinds = PartitionKinds(topic_config=topic_config, has_local_log=logs.holds)
    changes = IsrChangeSender(controller, node_id=base.node_id, broker_epoch=broker_epoch, clock=base.clock)
    lag_seconds = metadata.settings.now.replication.replica_lag_time_max_ms / 1000
    replicas = ReplicaManager(
        base.node_id,
        logs,
        loop=asyncio.get_running_loop(),
        topic_config=topic_config,
        local_partitions=kinds.classic_partitions,
        environment=LeaderEnvironment(ReplicaBrokers(metadata.loader, broker_epoch), changes, lag_seconds),
    )
    upkeep = LeaderUpkeep(replicas, changes, base.clock, lag_seconds=lag_seconds)
    return ReplicaLayer(plane=plane, logs=logs, kinds=kinds, replicas=replicas, upkeep=upkeep)


def build_fetchers(
    base: Base, metadata: MetadataLayer, replicas: ReplicaManager, *, broker_epoch: Callable[[], int]
) -> ReplicaFetchers:
    """Copies what other brokers lead."""
    settings = metadata.settings
    return ReplicaFetchers(
        replicas,
        metadata.loader,
        node_id=base.node_id,
        listener=settings.now.network.inter_broker_listener,
        settings=lambda: settings.now.replication,
        broker_epoch=broker_epoch,
        clock=base.clock,
    )


def build_directory_reports(
    base: Base,
    metadata: MetadataLayer,
    replicas: ReplicaManager,
    logs: LogManager,
    controller: ActiveController,
    *,
    broker_epoch: Callable[[], int],
) -> DirectoryReports:
    """Tells the controller where replicas are."""
    return DirectoryReports(
        controller,
        metadata.loader,
        replicas,
        directory_of=lambda partition: logs.directory_id_of(partition.log),
        has_several=len(logs.directories) > 1,
        node_id=base.node_id,
        broker_epoch=broker_epoch,
        clock=base.clock,
    )
