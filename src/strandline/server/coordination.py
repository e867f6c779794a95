"""The coordinators of a broker, and what connects them with partitions and with other brokers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from strandline.clock import Clock, Ids
from strandline.coordinators.groups import GroupCoordinator, offsets_topic
from strandline.coordinators.groups.share.coordinator import ShareGroupCoordinator
from strandline.coordinators.runtime import InternalTopic, ReplicatedCoordinatorLog
from strandline.coordinators.share_states import share_state_topic
from strandline.coordinators.transactions import TransactionCoordinator, TransactionLimits, transaction_state_topic
from strandline.coordinators.transactions.admissions import TransactionAdmissions
from strandline.coordinators.transactions.marker_writer import MarkerWriter
from strandline.coordinators.transactions.markers import MarkerChannel
from strandline.hybrid.tiers import Tiers
from strandline.metadata import MetadataDelta, MetadataImage, MetadataLoader
from strandline.model import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC, BrokerId
from strandline.server.handlers.common import CurrentSettings
from strandline.server.handlers.producers import ProducerIds
from strandline.server.handlers.topics.auto_creation import TopicAutoCreator, TopicMaker
from strandline.server.log_ends import ClusterLogEnds
from strandline.server.peers import BrokerPeers, ParallelPeers, PeerLanes
from strandline.server.share_states.groups import ShareGroups
from strandline.server.share_states.membership import StatesOfGroups
from strandline.server.transactions.coordinators import CoordinatorsOfCluster
from strandline.server.transactions.gate import TransactionGate
from strandline.server.transactions.marker_transport import ClusterMarkerTransport
from strandline.tasks import in_background


class Coordination:
    """Groups, share groups and transactions. `async with coordination.running()` serves them inside the block."""

    def __init__(
        self,
        tiers: Tiers,
        loader: MetadataLoader,
        producer_ids: ProducerIds,
        controller: TopicMaker,
        *,
        node_id: BrokerId,
        settings: CurrentSettings,
        clock: Clock,
        ids: Ids,
    ) -> None:
        replicas, partitions = tiers.replicas, tiers.partitions
        self._replicas, self._partitions, self._node_id = replicas, partitions, node_id
        self._loader, self.clock = loader, clock
        creator = self.creator = TopicAutoCreator(loader, controller, settings, tiers.diskless)
        self.producer_ids = producer_ids
        static = settings()
        self._settings = settings

        def log_of(topic: InternalTopic) -> ReplicatedCoordinatorLog:
            return ReplicatedCoordinatorLog(replicas, lambda: loader.image, topic, clock=clock)

        listener = static.network.inter_broker_listener

        def peers_for(purpose: str) -> BrokerPeers:
            return BrokerPeers(loader, node_id=node_id, listener=listener, purpose=purpose)

        admissions = ParallelPeers(loader, node_id=node_id, listener=listener, purpose="admissions")
        self._peers: tuple[BrokerPeers, ...] = (peers_for("markers"), admissions)
        self.groups = GroupCoordinator(
            log_of(offsets_topic(static.groups)),
            loader,
            clock=clock,
            ids=ids,
            settings=static.groups,
            share_settings=static.share_groups,
        )
        # A marker may make an admission invalid that is on its way, and admissions come from the coordinators, which
        # send markers. Neither can be made first, so a method connects them.
        self.marker_writer = MarkerWriter(
            lambda topic, partition: partitions.find(topic, partition).appends,
            self.groups,
            clock,
            on_marker=lambda partition, producer_id: self.admissions.marker_comes(partition, producer_id),
        )
        transport = ClusterMarkerTransport(self.marker_writer, self._peers[0], node_id=node_id)
        self.markers = MarkerChannel(
            transport,
            lambda: loader.image,
            clock,
            stand_in=lambda partition: self.stand_in(*partition),
        )
        self.transactions = TransactionCoordinator(
            log_of(transaction_state_topic(static.transactions)),
            self.markers,
            producer_ids.next,
            clock=clock,
            limits=TransactionLimits.of(static.transactions),
        )
        self.admissions = TransactionAdmissions(
            CoordinatorsOfCluster(self.transactions, admissions, loader, node_id=node_id)
        )
        self.gate = TransactionGate(self.admissions, settings, clock)
        self.shares = ShareGroups(
            tiers,
            log_of(share_state_topic(static.sharing)),
            PeerLanes(lambda: peers_for("share-states")),
            loader,
            creator,
            node_id=node_id,
            settings=settings,
            clock=clock,
        )
        ends = peers_for("log-ends")
        self._peers = (*self._peers, ends)
        self.share_groups = ShareGroupCoordinator(
            self.groups,
            StatesOfGroups(self.shares.states),
            ClusterLogEnds(partitions, ends, loader),
            loader,
            clock=clock,
            settings=static.share_groups,
        )

    def stand_in(self, topic: str, partition: int) -> BrokerId | None:
        """This broker if it takes records for a partition that has no leader, as every broker does for diskless ones.

        No broker serves a classic partition that has no leader, also if its replica is here.
        """
        return self._node_id if self._partitions.is_taken(topic, partition) else None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve what this broker leads. Leaving the block ends the coordinators: waiting requests are refused."""
        async with (
            self.groups.running(),
            self.transactions.running(),
            self.shares.running(),
            self.share_groups.running(),
            in_background({"transaction markers": self.markers.run()}),
        ):
            self._replicas.add_listener(GROUP_METADATA_TOPIC, self.groups.runtime)
            self._replicas.add_listener(TRANSACTION_STATE_TOPIC, self.transactions.runtime)
            self._replicas.add_listener(SHARE_GROUP_STATE_TOPIC, self.shares.coordinator.runtime)
            self._loader.subscribe(self._apply)
            try:
                yield
            finally:
                await self.admissions.close()
                await self.gate.close()
                for peers in self._peers:
                    peers.close()

    def _apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if delta.changed_configs:
            now = self._settings()
            self.groups.follow_settings(now.groups, now.share_groups)
        self.groups.apply(delta, image)
        self.shares.apply(delta, image)
        self.markers.metadata_changed()
        if delta.deleted_topics:
            deleted = {topic.name for topic in delta.deleted_topics.values()}
            self.admissions.forget_topics(deleted)
            self.gate.forget_topics(deleted)
