"""The table of handlers: every API that this broker serves, beside Produce and Fetch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from strandline.assembly.metadata import MetadataLayer
from strandline.assembly.partitions import PartitionLayers
from strandline.clock import Clock
from strandline.hybrid.log_dirs import LogDirs
from strandline.metadata import ActiveController, Controller
from strandline.server.client_software import ClientSoftware
from strandline.server.context import Handler
from strandline.server.coordination import Coordination
from strandline.server.handlers.administration.acls import AclsHandler
from strandline.server.handlers.administration.features import FeaturesHandler
from strandline.server.handlers.administration.members import MembersHandler
from strandline.server.handlers.administration.quorum import QuorumHandler
from strandline.server.handlers.administration.quotas import ClientQuotasHandler
from strandline.server.handlers.administration.scram import ScramHandler
from strandline.server.handlers.administration.telemetry import TelemetryHandler
from strandline.server.handlers.api_versions import ApiVersionsHandler
from strandline.server.handlers.brokers import BrokersHandler
from strandline.server.handlers.cluster import ClusterHandler
from strandline.server.handlers.configs.alter import AlterConfigsHandler
from strandline.server.handlers.configs.describe import ConfigsHandler
from strandline.server.handlers.configs.loggers import BrokerLoggers
from strandline.server.handlers.elections import ElectionsHandler
from strandline.server.handlers.find_coordinator import FindCoordinatorHandler
from strandline.server.handlers.forwarding import ForwardingHandlers
from strandline.server.handlers.groups.administration import GroupAdminHandler
from strandline.server.handlers.groups.consumer import ConsumerGroupsHandler
from strandline.server.handlers.groups.membership import GroupsHandler
from strandline.server.handlers.groups.offset_commit import GroupOffsetsHandler
from strandline.server.handlers.groups.offset_fetch import OffsetFetchHandler
from strandline.server.handlers.groups.share import ShareGroupsHandler
from strandline.server.handlers.log_dirs import LogDirsHandler
from strandline.server.handlers.offsets import OffsetsHandler
from strandline.server.handlers.producers import ProducersHandler
from strandline.server.handlers.reassignments import ReassignmentsHandler
from strandline.server.handlers.records import RecordsHandler
from strandline.server.handlers.share.acknowledge import ShareAcknowledgeHandler
from strandline.server.handlers.share.fetch import ShareFetchHandler
from strandline.server.handlers.share.state import ShareStateHandler
from strandline.server.handlers.topics.changes import TopicsHandler
from strandline.server.handlers.topics.describe import TopicPartitionsHandler
from strandline.server.handlers.topics.metadata import MetadataHandler
from strandline.server.handlers.transactions.coordination import TransactionsHandler
from strandline.server.handlers.transactions.describe import DescribeTransactionsHandler
from strandline.server.handlers.transactions.markers import MarkersHandler
from strandline.server.handlers.transactions.offset_commit import TransactionalOffsetsHandler
from strandline.server.network import NetworkServer
from strandline.server.telemetry import ClientTelemetry
from strandline.wire.api import ApiKey


class _Routed(Protocol):
    """A module of handlers, and which APIs they serve."""

    def routes(self) -> Mapping[ApiKey, Handler]: ...


class ServedLayers(NamedTuple):
    """What requests are about."""

    metadata: MetadataLayer
    partitions: PartitionLayers
    controller: Controller
    active_controller: ActiveController
    coordination: Coordination
    network: NetworkServer


def build_handlers(served: ServedLayers, telemetry: ClientTelemetry, clock: Clock) -> Mapping[ApiKey, Handler]:
    """Every handler over the components it needs, by the APIs that it serves."""
    parts = (
        *_of_clients(served, telemetry),
        *_of_topics(served),
        *_of_partitions(served),
        *_of_groups(served),
        *_of_transactions(served),
        *_of_shares(served, clock),
        *_of_the_cluster(served),
    )
    served.network.on_closed.append(served.coordination.shares.partitions.sessions.connection_closed)
    table = {key: handler for part in parts for key, handler in part.routes().items()}
    return {**table, **ForwardingHandlers(served.active_controller, table).routes()}


def _of_clients(served: ServedLayers, telemetry: ClientTelemetry) -> tuple[_Routed, ...]:
    """What any client asks first, and what it tells of itself."""
    images, software = served.metadata.loader, ClientSoftware()
    coordination, diskless = served.coordination, served.partitions.hybrid.diskless
    groups, transactions, shares = coordination.groups, coordination.transactions, coordination.shares
    return (
        ApiVersionsHandler(images, software),
        MetadataHandler(images, coordination.creator, diskless),
        ClusterHandler(images),
        FindCoordinatorHandler(groups, transactions, shares.coordinator, images, coordination.creator),
        TelemetryHandler(telemetry, software),
    )


def _of_topics(served: ServedLayers) -> tuple[_Routed, ...]:
    images, settings, controller = served.metadata.loader, served.metadata.settings, served.controller
    diskless, switching, loggers = served.partitions.hybrid.diskless, served.partitions.switching, BrokerLoggers()
    return (
        TopicPartitionsHandler(images, diskless, settings.now.network.max_request_partition_size_limit),
        TopicsHandler(controller, images, settings.current, diskless),
        ConfigsHandler(controller.node_id, images, settings.current, loggers, switching.states),
        AlterConfigsHandler(controller, images, loggers, checks=switching.checks, states=switching.states),
    )


def _of_partitions(served: ServedLayers) -> tuple[_Routed, ...]:
    """Beside Produce and Fetch."""
    coordination, hybrid, lower = served.coordination, served.partitions.hybrid, served.partitions.replicas
    log_dirs = LogDirs(lower.logs, lower.replicas, hybrid.diskless, hybrid.tiered)
    return (
        OffsetsHandler(hybrid.partitions),
        RecordsHandler(hybrid.partitions),
        ProducersHandler(coordination.producer_ids, hybrid.partitions, coordination.transactions),
        LogDirsHandler(log_dirs, served.metadata.loader),
    )


def _of_groups(served: ServedLayers) -> tuple[_Routed, ...]:
    groups, images = served.coordination.groups, served.metadata.loader
    return (
        GroupsHandler(groups),
        ConsumerGroupsHandler(groups, images),
        GroupOffsetsHandler(groups, images),
        OffsetFetchHandler(groups, images),
        GroupAdminHandler(groups, served.coordination.share_groups),
    )


def _of_transactions(served: ServedLayers) -> tuple[_Routed, ...]:
    metadata, coordination = served.metadata, served.coordination
    groups, parts = coordination.groups, coordination.transaction_parts
    return (
        TransactionsHandler(parts.coordinator, groups, metadata.loader),
        TransactionalOffsetsHandler(groups, parts.admissions, metadata.loader, metadata.settings.current),
        MarkersHandler(parts.marker_writer),
        DescribeTransactionsHandler(parts.coordinator),
    )


def _of_shares(served: ServedLayers, clock: Clock) -> tuple[_Routed, ...]:
    """Share groups."""
    images, shares = served.metadata.loader, served.coordination.shares
    settings, memory = served.metadata.settings.current, served.network.memory.answers
    return (
        ShareGroupsHandler(served.coordination.share_groups, images),
        ShareStateHandler(shares.coordinator),
        ShareFetchHandler(shares.partitions, images, settings, memory=memory, clock=clock),
        ShareAcknowledgeHandler(shares.partitions, images),
    )


def _of_the_cluster(served: ServedLayers) -> tuple[_Routed, ...]:
    """What administrators and other brokers ask of the controller."""
    controller, images = served.controller, served.metadata.loader
    return (
        ElectionsHandler(controller),
        ReassignmentsHandler(controller),
        BrokersHandler(controller),
        ClientQuotasHandler(controller, images),
        ScramHandler(controller, images),
        FeaturesHandler(controller),
        AclsHandler(),
        QuorumHandler(controller),
        MembersHandler(controller),
    )
