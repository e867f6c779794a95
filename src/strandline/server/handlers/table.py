"""The table of handlers: every API this broker serves, beside Produce and Fetch."""

from __future__ import annotations

from collections.abc import Mapping

from strandline.hybrid.tiers import Tiers
from strandline.metadata import ActiveController, Controller, MetadataLoader
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
from strandline.server.handlers.common import CurrentSettings
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


def handler_table(
    *,
    images: MetadataLoader,
    controller: Controller,
    active_controller: ActiveController,
    tiers: Tiers,
    coordination: Coordination,
    telemetry: ClientTelemetry,
    network: NetworkServer,
    settings: CurrentSettings,
) -> Mapping[ApiKey, Handler]:
    """Build every handler over the components it needs, and say which serves what."""
    diskless, partitions, states = tiers.diskless, tiers.partitions, tiers.migration_states
    creator, shares = coordination.creator, coordination.shares
    groups, transactions = coordination.groups, coordination.transactions
    loggers, software = BrokerLoggers(), ClientSoftware()
    node_id = controller.node_id
    handlers = (
        ApiVersionsHandler(images, software),
        MetadataHandler(images, creator, diskless),
        ClusterHandler(images),
        TopicPartitionsHandler(images, diskless, settings().network.max_request_partition_size_limit),
        TopicsHandler(controller, images, settings, diskless),
        ConfigsHandler(node_id, images, settings, loggers, states),
        AlterConfigsHandler(controller, images, loggers, checks=tiers.switch_checks, states=states),
        OffsetsHandler(partitions),
        RecordsHandler(partitions),
        ProducersHandler(coordination.producer_ids, partitions, transactions),
        LogDirsHandler(tiers.log_dirs, images),
        ElectionsHandler(controller),
        ReassignmentsHandler(controller),
        FindCoordinatorHandler(groups, transactions, shares.coordinator, images, creator),
        GroupsHandler(groups),
        ConsumerGroupsHandler(groups, images),
        GroupOffsetsHandler(groups, images),
        OffsetFetchHandler(groups, images),
        GroupAdminHandler(groups, coordination.share_groups),
        TransactionsHandler(transactions, groups, images),
        TransactionalOffsetsHandler(groups, coordination.admissions, images, settings),
        MarkersHandler(coordination.marker_writer),
        DescribeTransactionsHandler(transactions),
        ShareGroupsHandler(coordination.share_groups, images),
        ShareStateHandler(shares.coordinator),
        ShareFetchHandler(shares.partitions, images, settings, memory=network.memory.answers, clock=coordination.clock),
        ShareAcknowledgeHandler(shares.partitions, images),
        BrokersHandler(controller),
        ClientQuotasHandler(controller, images),
        ScramHandler(controller, images),
        FeaturesHandler(controller),
        AclsHandler(),
        QuorumHandler(controller),
        MembersHandler(controller),
        TelemetryHandler(telemetry, software),
    )
    network.on_closed.append(shares.partitions.sessions.connection_closed)
    table = {key: handler for part in handlers for key, handler in part.routes().items()}
    return {**table, **ForwardingHandlers(active_controller, table).routes()}
