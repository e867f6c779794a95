"""Gathers what a broker tells about itself from its components."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import Protocol

from strandline.admin.diskless_reporting import describe_diskless
from strandline.admin.status import BrokerRow, BrokerStatus, LogDirRow, TopicRow
from strandline.admin.tiered_reporting import describe_tiered
from strandline.coordinators.groups import GroupCoordinator
from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.hybrid.tiered.topics import TieredTopics
from strandline.log import LogManager
from strandline.log.cleaning import LogCleaner
from strandline.metadata import BrokerLifecycle, MetadataImage, MetadataLoader
from strandline.model import BrokerId
from strandline.replication import ReplicaManager
from strandline.server.dispatcher import ApiDispatcher
from strandline.server.fetch_sessions import FetchSessions
from strandline.server.network import BoundListener, NetworkServer
from strandline.wire.api import SERVED_APIS, ApiKey


class BrokerParts(Protocol):
    """The components that have something to tell."""

    node_id: BrokerId
    listeners: tuple[BoundListener, ...]
    loader: MetadataLoader
    lifecycle: BrokerLifecycle
    replicas: ReplicaManager
    diskless: DisklessTopics
    tiered: TieredTopics
    logs: LogManager
    cleaner: LogCleaner
    groups: GroupCoordinator
    network: NetworkServer
    dispatcher: ApiDispatcher
    sessions: FetchSessions


def describe_broker(broker: BrokerParts, *, is_stopping: bool, uptime_s: float) -> BrokerStatus:
    """The broker now. Looks at memory only."""
    image, cleaner, network = broker.loader.image, broker.cleaner.status(), broker.network
    led = [partition for partition in broker.replicas.partitions() if partition.is_leader]
    return BrokerStatus(
        version=version("strandline"),
        node_id=broker.node_id,
        cluster_id=image.cluster_id,
        not_ready_because=tuple(_reasons_not_ready(broker, is_stopping=is_stopping)),
        uptime_s=uptime_s,
        listeners=tuple(f"{listener.name}://{listener.host}:{listener.port}" for listener in broker.listeners),
        controller_id=image.controller_id,
        controller_epoch=image.controller_epoch,
        metadata_offset=image.offset,
        brokers=tuple(_broker_rows(image)),
        topics=len(image.topics),
        partitions=sum(len(topic.partitions) for topic in image.topics.values()),
        local_partitions=len(broker.replicas),
        led_partitions=len(led),
        under_replicated_partitions=sum(len(p.isr) < len(p.replicas) for p in led),
        under_min_isr_partitions=sum(p.is_under_min_isr for p in led),
        offline_partitions=sum(not p.has_leader for _, p in image.all_partitions()),
        groups=broker.groups.group_count,
        connections=len(network.connections),
        connections_accepted=network.connections_accepted,
        network_bytes_in=network.bytes_in,
        network_bytes_out=network.bytes_out,
        cold_reads=network.pages.loads,
        fetch_sessions=len(broker.sessions),
        fetch_session_partitions=broker.sessions.partitions,
        requests={ApiKey(key).name: n for key, n in broker.dispatcher.requests.items() if key in SERVED_APIS},
        uncleanable_partitions=len(cleaner.uncleanable),
        max_dirty_percent=100 * cleaner.max_dirty_ratio,
        log_dirs=tuple(_log_dir_rows(broker.logs)),
        diskless=describe_diskless(broker.diskless),
        tiered=describe_tiered(broker.tiered),
        topic_rows=tuple(_topic_rows(broker.replicas)),
    )


def _reasons_not_ready(broker: BrokerParts, *, is_stopping: bool) -> Iterator[str]:
    if is_stopping:
        yield f"broker {broker.node_id} is stopping"
    if broker.lifecycle.is_fenced:
        yield f"broker {broker.node_id} is fenced by the controller"


def _topic_rows(replicas: ReplicaManager) -> Iterator[TopicRow]:
    found: dict[str, list[int]] = {}
    for partition in replicas.partitions():
        row = found.setdefault(partition.topic_partition.topic, [0, 0, 0])
        row[0] += 1
        row[1] += partition.log.size
        row[2] += partition.log.log_end_offset if partition.is_leader else 0
    for name, (partitions, size, end_offsets) in sorted(found.items()):
        yield TopicRow(name=name, partitions=partitions, bytes=size, end_offsets=end_offsets)


def _log_dir_rows(logs: LogManager) -> Iterator[LogDirRow]:
    sizes: dict[str, list[int]] = {}
    for log in logs.all_logs():
        sizes.setdefault(log.env.directory.path, []).append(log.size)
    for directory in logs.directories:
        rows = sizes.get(directory.path, [])
        yield LogDirRow(path=directory.path, is_online=not directory.is_offline, partitions=len(rows), bytes=sum(rows))


def _broker_rows(image: MetadataImage) -> Iterator[BrokerRow]:
    for broker in image.brokers.values():
        address = next((f"{listener.host}:{listener.port}" for listener in broker.listeners), "")
        yield BrokerRow(node_id=broker.node_id, address=address, rack=broker.rack, is_fenced=broker.fenced)
