"""What is measured of a broker, beyond the status values of its components, so that it can be shown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from strandline.admin.group_lag import describe_groups
from strandline.admin.load import Load
from strandline.admin.partition_rows import PartitionRow, partition_rows
from strandline.admin.status import GroupRow
from strandline.clock import Clock
from strandline.controlplane import MigrationState
from strandline.coordinators.groups import GroupCoordinator
from strandline.hybrid.conversion.progress import ConversionProgress
from strandline.hybrid.conversion.service import TieringService
from strandline.hybrid.diskless.assigned import Assignment
from strandline.hybrid.diskless.figures import DisklessFigures
from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.hybrid.partitions import Partitions
from strandline.hybrid.refreshing import Refreshing
from strandline.hybrid.remote.topics import TieredTopics
from strandline.hybrid.switching.status import MigrationSource
from strandline.metadata import MetadataLoader
from strandline.model import BrokerId, TopicPartition
from strandline.replication import ReplicaManager
from strandline.server.dispatcher import ApiDispatcher
from strandline.server.network import NetworkServer

if TYPE_CHECKING:  # a broker without tiered storage does not load it
    from strandline.remote.manager import PartitionTierStatus

_FRESH_SECONDS: Final = 5.0


class MonitoredParts(Protocol):
    """The components that are measured."""

    node_id: BrokerId
    loader: MetadataLoader
    replicas: ReplicaManager
    diskless: DisklessTopics
    tiered: TieredTopics
    partitions: Partitions
    groups: GroupCoordinator
    network: NetworkServer
    dispatcher: ApiDispatcher

    @property
    def migrations(self) -> MigrationSource: ...
    @property
    def tiering(self) -> TieringService: ...


class Monitoring:
    """The measurements of one broker, from when it serves clients on."""

    def __init__(self, broker: MonitoredParts, clock: Clock) -> None:
        self._replicas, self._tiered = broker.replicas, broker.tiered
        self._groups, self._partitions = broker.groups, broker.partitions
        self.assignment = Assignment(broker.node_id, lambda: broker.loader.image, broker.diskless)
        self._migrations = broker.migrations
        self.figures = DisklessFigures(broker.diskless, self._ordered_elsewhere, clock)
        self.conversion = ConversionProgress(broker.tiering, self._ordered_elsewhere, clock)
        nothing: Mapping[MigrationState, int] = {}
        self.topic_states = Refreshing(
            broker.migrations.count_topics, nothing, what="states of topics", fresh_seconds=_FRESH_SECONDS, clock=clock
        )
        self.load = Load(broker.network, broker.dispatcher.times, clock)

    def _ordered_elsewhere(self) -> Sequence[TopicPartition]:
        """Partitions that count here and whose ends only the control plane knows: diskless ones, and hybrid ones."""
        hybrid = (key for key, row in self._migrations.figures().led.items() if row.b0 >= 0)
        return tuple(dict.fromkeys((*self.assignment.now().diskless, *hybrid)))

    async def tiers(self, topic: str) -> Sequence[PartitionTierStatus] | None:
        """See `MonitoringSource`."""
        led = [p.id for p in self._replicas.partitions() if p.topic_partition.topic == topic and p.is_leader]
        return await self._tiered.storage.partition_rows(led)

    def group_rows(self) -> Sequence[GroupRow]:
        """See `MonitoringSource`."""
        return describe_groups(self._groups, self._partitions, self.figures)

    def partition_rows(self) -> Iterable[PartitionRow]:
        """See `MonitoringSource`."""
        return partition_rows(self._replicas, self.assignment, self.figures)

    async def refresh(self) -> None:
        """See `MonitoringSource`."""
        await asyncio.gather(self.figures.refresh(), self.conversion.refresh(), self.topic_states.refresh())

    async def close(self) -> None:
        """Measure nothing more."""
        await self.figures.close()
        await self.conversion.close()
        await self.topic_states.close()
