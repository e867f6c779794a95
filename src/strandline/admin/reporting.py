"""Builds the status of a broker from the status values of its components."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import version
from typing import Protocol

from strandline.admin.leaderless import leaderless_sentences
from strandline.admin.monitoring import Monitoring
from strandline.admin.status import (
    BrokerRow,
    BrokerStatus,
    DisklessStatus,
    LogDirRow,
    Readiness,
    TopicRow,
    TopicSettings,
)
from strandline.clock import Clock
from strandline.coordinators.groups import GroupCoordinator
from strandline.health import HealthStatus
from strandline.hybrid.conversion.source import TieringSource
from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.hybrid.partitions import Partitions
from strandline.hybrid.remote.topics import TieredTopics
from strandline.hybrid.switching.status import MigrationSource
from strandline.hybrid.traffic import NO_TRAFFIC
from strandline.log import LogManager
from strandline.log.cleaning import LogCleaner
from strandline.metadata import BrokerLifecycle, Controller, MetadataImage, MetadataLoader
from strandline.model import BrokerId
from strandline.replication import LeaderUpkeep, ReplicaFetchers, ReplicaManager
from strandline.server.coordination import Coordination
from strandline.server.dispatcher import ApiDispatcher
from strandline.server.fetch_sessions import FetchSessions
from strandline.server.network import BoundListener, NetworkServer
from strandline.server.telemetry import ClientTelemetry
from strandline.sql import ClockWatch


class BrokerParts(Protocol):
    """The components whose status values are gathered."""

    node_id: BrokerId
    listeners: tuple[BoundListener, ...]
    loader: MetadataLoader
    lifecycle: BrokerLifecycle
    clock_watch: ClockWatch
    replicas: ReplicaManager
    leader_upkeep: LeaderUpkeep
    partitions: Partitions
    diskless: DisklessTopics
    tiered: TieredTopics
    logs: LogManager
    cleaner: LogCleaner
    fetchers: ReplicaFetchers
    controller: Controller
    groups: GroupCoordinator
    coordination: Coordination
    monitoring: Monitoring
    network: NetworkServer
    dispatcher: ApiDispatcher
    sessions: FetchSessions
    telemetry: ClientTelemetry

    @property
    def migrations(self) -> MigrationSource: ...
    @property
    def tiering(self) -> TieringSource: ...
    @property
    def topic_settings(self) -> TopicSettings: ...


class BrokerReports:
    """`BrokerSource` over the components of a broker, from when it serves clients on."""

    def __init__(
        self, broker: BrokerParts, health: Callable[[], tuple[HealthStatus, ...]], clock: Clock, *, started: float
    ) -> None:
        """`health` is that of the database and the stores; `started` when the broker began to start."""
        self._broker, self._health, self._clock, self._started = broker, health, clock, started
        self.monitoring, self.migrations, self.tiering = broker.monitoring, broker.migrations, broker.tiering
        self.topic_settings = broker.topic_settings
        self.is_stopping = False
        """Set by the broker."""

    def status(self) -> BrokerStatus:
        """See `StatusSource`."""
        return describe_broker(
            self._broker,
            is_stopping=self.is_stopping,
            uptime_s=self._clock.monotonic() - self._started,
            dependencies=self._health(),
        )

    def readiness(self) -> Readiness:
        """See `StatusSource`."""
        return describe_readiness(self._broker, is_stopping=self.is_stopping, dependencies=self._health())


def reasons_not_ready(
    broker: BrokerParts, *, is_stopping: bool, dependencies: tuple[HealthStatus, ...]
) -> tuple[str, ...]:
    """Why clients cannot be served now; empty if they can.

    A store that does not answer is no reason: it comes back, and other topics do not need it. A store that is not the
    one of this cluster is a reason: it stays wrong until an operator acts.
    """
    reasons = {
        f"broker {broker.node_id} is stopping": is_stopping,
        f"broker {broker.node_id} is fenced by the controller": broker.lifecycle.is_fenced,
    }
    wrong = (f"{one.what} is not the one of this cluster" for one in dependencies if one.is_wrong)
    return (*(reason for reason, holds in reasons.items() if holds), *wrong)


def describe_readiness(broker: BrokerParts, *, is_stopping: bool, dependencies: tuple[HealthStatus, ...]) -> Readiness:
    """What `/readyz` says now."""
    return Readiness(
        not_ready_because=reasons_not_ready(broker, is_stopping=is_stopping, dependencies=dependencies),
        dependencies=dependencies,
        leaderless=leaderless_sentences(broker.monitoring.assignment.now().offline),
        clock_problem=broker.clock_watch.problem,
    )


def describe_broker(
    broker: BrokerParts, *, is_stopping: bool, uptime_s: float, dependencies: tuple[HealthStatus, ...]
) -> BrokerStatus:
    """The broker now. Looks at memory only."""
    image, network, assigned = broker.loader.image, broker.network, broker.monitoring.assignment.now()
    led = [partition for partition in broker.replicas.partitions() if partition.is_leader]
    # A hybrid partition is one of the replicas, and diskless too: it counts once.
    here = {partition.topic_partition for partition in broker.replicas.partitions()}
    diskless = sum(key not in here for key in assigned.diskless)
    return BrokerStatus(
        version=version("strandline"),
        node_id=broker.node_id,
        cluster_id=image.cluster_id,
        not_ready_because=reasons_not_ready(broker, is_stopping=is_stopping, dependencies=dependencies),
        uptime_s=uptime_s,
        listeners=tuple(f"{listener.name}://{listener.host}:{listener.port}" for listener in broker.listeners),
        controller_id=image.controller_id,
        controller_epoch=image.controller_epoch,
        metadata_offset=image.offset,
        brokers=tuple(_broker_rows(image)),
        topics=len(image.topics),
        partitions=assigned.partitions,
        local_partitions=len(broker.replicas) + diskless,
        led_partitions=len(led) + diskless,
        under_replicated_partitions=sum(len(p.isr) < len(p.replicas) for p in led),
        under_min_isr_partitions=sum(p.is_under_min_isr for p in led),
        unclean_elections=broker.controller.status().unclean_elections,
        isr_expands=broker.leader_upkeep.changes.expands,
        isr_shrinks=broker.leader_upkeep.changes.shrinks,
        offline_partitions=len(assigned.offline),
        leaderless=leaderless_sentences(assigned.offline),
        clock_problem=broker.clock_watch.problem,
        partitions_without_preferred_leader=assigned.without_preferred_leader,
        groups=broker.groups.group_count,
        groups_by_state={state.value: count for state, count in broker.groups.group_states.items()},
        transactions=broker.coordination.transactions.status(),
        connections=len(network.connections),
        client_memory={name: (budget.held, budget.limit) for name, budget in network.memory.by_name.items()},
        connections_accepted=network.accepted.total(),
        network_bytes_in=network.bytes_in,
        network_bytes_out=network.bytes_out,
        cold_reads=network.pages.loads,
        fetch_sessions=len(broker.sessions),
        fetch_session_partitions=broker.sessions.partitions,
        fetch_session_evictions=broker.sessions.evictions,
        telemetry=broker.telemetry.status(),
        requests={key.name: count for key, count in broker.dispatcher.times.requests().items()},
        cleaner=broker.cleaner.status(),
        log_dirs=tuple(_log_dir_rows(broker.logs)),
        diskless=_diskless(broker.diskless),
        tiered=broker.tiered.storage.status(),
        migration=replace(broker.migrations.figures(), topics=broker.monitoring.topic_states.known),
        tiering=broker.monitoring.conversion.status(),
        topic_rows=tuple(_topic_rows(broker)),
        traffic=broker.partitions.traffic.of_all(),
        load=broker.monitoring.load.status(),
        fetchers=broker.fetchers.status(),
        dependencies=dependencies,
    )


def _diskless(topics: DisklessTopics) -> DisklessStatus:
    return DisklessStatus(
        topics=len({partition.id.topic_id for partition in topics.by_key.values()}),
        partitions=len(topics.by_key),
        unserved_partitions=topics.unserved,
        tier=topics.engine.status(),
    )


def _topic_rows(broker: BrokerParts) -> Iterator[TopicRow]:
    traffic = broker.partitions.traffic.of_topics()
    found: dict[str, list[int]] = {}
    here = set(broker.diskless.by_key)
    for partition in broker.replicas.partitions():
        row = found.setdefault(partition.topic_partition.topic, [0, 0])
        row[0] += partition.topic_partition not in here
        row[1] += partition.log.size
    tiered = {replica.topic_partition.topic for replica in broker.replicas.partitions() if replica.log.is_remote}
    diskless = Counter(topic for topic, _ in broker.diskless.by_key)
    for key, log in broker.monitoring.figures.known.items():
        found.setdefault(key.topic, [0, 0])[1] += log.byte_size
    for name in sorted(found.keys() | diskless.keys()):
        partitions, size = found.get(name, (0, 0))
        yield TopicRow(
            name=name,
            is_diskless=name in diskless,
            is_tiered=name in tiered,
            partitions=partitions + diskless[name],
            bytes=size,
            traffic=traffic.get(name, NO_TRAFFIC),
        )


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
