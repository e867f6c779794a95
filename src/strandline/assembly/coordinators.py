"""Groups, share groups and transactions, and what connects them with partitions and with other brokers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from strandline.assembly.base import Base
from strandline.assembly.metadata import MetadataLayer
from strandline.assembly.partitions import PartitionLayers
from strandline.coordinators.groups import GroupCoordinator, offsets_topic
from strandline.coordinators.groups.share.coordinator import ShareGroupCoordinator
from strandline.coordinators.runtime import InternalTopic, ReplicatedCoordinatorLog
from strandline.coordinators.share_states import share_state_topic
from strandline.coordinators.transactions import (
    MarkerChannel,
    MarkerWriter,
    TransactionAdmissions,
    TransactionCoordinator,
    TransactionLimits,
    transaction_state_topic,
)
from strandline.metadata import ActiveController
from strandline.server.coordination import Coordination, StandIns, TransactionParts
from strandline.server.handlers.producers import ProducerIds
from strandline.server.handlers.topics.auto_creation import TopicAutoCreator
from strandline.server.log_ends import ClusterLogEnds
from strandline.server.peers import BrokerPeers, ParallelPeers, PeerLanes
from strandline.server.share_states.groups import ShareGroups
from strandline.server.share_states.membership import StatesOfGroups
from strandline.server.transactions.coordinators import CoordinatorsOfCluster
from strandline.server.transactions.gate import TransactionGate
from strandline.server.transactions.marker_transport import ClusterMarkerTransport


class _Below(NamedTuple):
    """The lower layers, and how coordinators reach their partitions and other brokers over them."""

    base: Base
    metadata: MetadataLayer
    partitions: PartitionLayers

    def log_of(self, topic: InternalTopic) -> ReplicatedCoordinatorLog:
        """The partitions of an internal topic, as logs of a coordinator."""
        loader, replicas = self.metadata.loader, self.partitions.replicas.replicas
        return ReplicatedCoordinatorLog(replicas, lambda: loader.image, topic, clock=self.base.clock)

    def peers_for(self, purpose: str) -> BrokerPeers:
        """Other brokers, over a connection to each."""
        return BrokerPeers(self.metadata.loader, node_id=self.base.node_id, listener=self._listener, purpose=purpose)

    def parallel_peers_for(self, purpose: str) -> ParallelPeers:
        """Other brokers, for requests that wait there."""
        return ParallelPeers(self.metadata.loader, node_id=self.base.node_id, listener=self._listener, purpose=purpose)

    @property
    def _listener(self) -> str:
        return self.metadata.settings.now.network.inter_broker_listener


def build_coordination(
    base: Base,
    metadata: MetadataLayer,
    partitions: PartitionLayers,
    controller: ActiveController,
    *,
    broker_epoch: Callable[[], int],
) -> Coordination:
    """Coordinators of what this broker leads."""
    settings, loader, hybrid = metadata.settings, metadata.loader, partitions.hybrid
    below = _Below(base=base, metadata=metadata, partitions=partitions)
    creator = TopicAutoCreator(loader, controller, settings.current, hybrid.diskless)
    producer_ids = ProducerIds(base.node_id, broker_epoch, controller)
    groups = _build_groups(below)
    transactions = _build_transactions(below, groups, producer_ids)
    shares = _build_shares(below, creator)
    ends = below.peers_for("log-ends")
    share_groups = ShareGroupCoordinator(
        groups,
        StatesOfGroups(shares.states),
        ClusterLogEnds(hybrid.partitions, ends, loader),
        loader,
        clock=base.clock,
        settings=settings.now.share_groups,
    )
    return Coordination(
        replicas=partitions.replicas.replicas,
        loader=loader,
        settings=settings.current,
        groups=groups,
        shares=shares,
        share_groups=share_groups,
        transaction_parts=transactions,
        end_peers=ends,
        creator=creator,
        producer_ids=producer_ids,
    )


def _build_groups(below: _Below) -> GroupCoordinator:
    now = below.metadata.settings.now
    return GroupCoordinator(
        below.log_of(offsets_topic(now.groups)),
        below.metadata.loader,
        clock=below.base.clock,
        ids=below.base.ids,
        settings=now.groups,
        share_settings=now.share_groups,
    )


def _build_transactions(below: _Below, groups: GroupCoordinator, producer_ids: ProducerIds) -> TransactionParts:
    settings, loader, partitions = below.metadata.settings, below.metadata.loader, below.partitions.hybrid.partitions
    clock, node_id = below.base.clock, below.base.node_id
    marker_peers, admission_peers = below.peers_for("markers"), below.parallel_peers_for("admissions")
    # A marker may make an admission invalid that is on its way, and admissions come from the coordinators, which send
    # markers. Neither can be made first, so a function connects them.
    writer = MarkerWriter(
        lambda topic, partition: partitions.find(topic, partition).appends,
        groups,
        clock,
        on_marker=lambda partition, producer_id: admissions.marker_comes(partition, producer_id),
    )
    markers = MarkerChannel(
        ClusterMarkerTransport(writer, marker_peers, node_id=node_id),
        lambda: loader.image,
        clock,
        stand_in=StandIns(node_id, partitions).of,
    )
    coordinator = TransactionCoordinator(
        below.log_of(transaction_state_topic(settings.now.transactions)),
        markers,
        producer_ids.next,
        clock=clock,
        limits=TransactionLimits.of(settings.now.transactions),
    )
    admissions = TransactionAdmissions(CoordinatorsOfCluster(coordinator, admission_peers, loader, node_id=node_id))
    return TransactionParts(
        coordinator=coordinator,
        marker_writer=writer,
        markers=markers,
        admissions=admissions,
        gate=TransactionGate(admissions, settings.current, clock),
        peers=(marker_peers, admission_peers),
    )


def _build_shares(below: _Below, creator: TopicAutoCreator) -> ShareGroups:
    settings = below.metadata.settings
    return ShareGroups(
        below.partitions.hybrid.diskless,
        below.partitions.hybrid.partitions,
        below.log_of(share_state_topic(settings.now.sharing)),
        PeerLanes(lambda: below.peers_for("share-states")),
        below.metadata.loader,
        creator,
        node_id=below.base.node_id,
        settings=settings.current,
        clock=below.base.clock,
    )
