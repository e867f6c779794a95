"""The coordinators of a broker at work: while they run, they lead what the metadata says, and follow its changes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

from strandline.coordinators.groups import GroupCoordinator
from strandline.coordinators.groups.share.coordinator import ShareGroupCoordinator
from strandline.coordinators.transactions import (
    MarkerChannel,
    MarkerWriter,
    TransactionAdmissions,
    TransactionCoordinator,
)
from strandline.hybrid.partitions import Partitions
from strandline.metadata import MetadataDelta, MetadataImage, MetadataLoader
from strandline.model import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC, BrokerId
from strandline.replication import ReplicaManager
from strandline.server.handlers.common import CurrentSettings
from strandline.server.handlers.producers import ProducerIds
from strandline.server.handlers.topics.auto_creation import TopicAutoCreator
from strandline.server.peers import BrokerPeers
from strandline.server.share_states.groups import ShareGroups
from strandline.server.transactions.gate import TransactionGate
from strandline.tasks import in_background


class StandIns:
    """Who takes markers of a partition that has no leader."""

    def __init__(self, node_id: BrokerId, partitions: Partitions) -> None:
        self._node_id, self._partitions = node_id, partitions

    def of(self, partition: tuple[str, int]) -> BrokerId | None:
        """This broker if it takes records for the partition, as every broker does for diskless ones.

        No broker serves a classic partition that has no leader, also if its replica is here.
        """
        return self._node_id if self._partitions.is_taken(*partition) else None


class TransactionParts(NamedTuple):
    """What transactions consist of."""

    coordinator: TransactionCoordinator
    marker_writer: MarkerWriter
    markers: MarkerChannel
    admissions: TransactionAdmissions
    gate: TransactionGate
    peers: tuple[BrokerPeers, ...]
    """Connections to other brokers: for markers, and for admissions."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coordination:
    """Groups, share groups and transactions. `async with coordination.running()` serves them inside the block."""

    replicas: ReplicaManager
    loader: MetadataLoader
    settings: CurrentSettings
    groups: GroupCoordinator
    shares: ShareGroups
    share_groups: ShareGroupCoordinator
    transaction_parts: TransactionParts
    end_peers: BrokerPeers
    """Connections to other brokers, which are asked for the ends of logs."""
    creator: TopicAutoCreator
    """Creates topics that clients ask for, and those of the coordinators."""
    producer_ids: ProducerIds

    @property
    def transactions(self) -> TransactionCoordinator:
        """The coordinator of transactions."""
        return self.transaction_parts.coordinator

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve what this broker leads. Leaving the block ends the coordinators: waiting requests are refused."""
        parts = self.transaction_parts
        async with (
            self.groups.running(),
            self.transactions.running(),
            self.shares.running(),
            self.share_groups.running(),
            in_background({"transaction markers": parts.markers.run()}),
        ):
            self.replicas.add_listener(GROUP_METADATA_TOPIC, self.groups.runtime)
            self.replicas.add_listener(TRANSACTION_STATE_TOPIC, self.transactions.runtime)
            self.replicas.add_listener(SHARE_GROUP_STATE_TOPIC, self.shares.coordinator.runtime)
            self.loader.subscribe(self._apply)
            try:
                yield
            finally:
                await parts.admissions.close()
                await parts.gate.close()
                for peers in (*parts.peers, self.end_peers):
                    peers.close()

    def _apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if delta.changed_configs:
            now = self.settings()
            self.groups.follow_settings(now.groups, now.share_groups)
        self.groups.apply(delta, image)
        self.shares.apply(delta, image)
        parts = self.transaction_parts
        for node_id in delta.fenced_brokers():
            for peers in (*parts.peers, self.end_peers):
                peers.give_up(node_id)
        parts.markers.metadata_changed()
        if delta.deleted_topics:
            deleted = {topic.name for topic in delta.deleted_topics.values()}
            parts.admissions.forget_topics(deleted)
            parts.gate.forget_topics(deleted)
