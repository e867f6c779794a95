"""The table of handlers: every API this broker serves, beside Produce and Fetch."""

from __future__ import annotations

from collections.abc import Mapping

from strandline.clock import Clock
from strandline.coordinators.groups import GroupCoordinator
from strandline.hybrid.tiers import Tiers
from strandline.metadata import ActiveController, BrokerLifecycle, Controller, MetadataLoader
from strandline.server.context import Handler
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
from strandline.server.handlers.groups.membership import GroupsHandler
from strandline.server.handlers.groups.offset_commit import GroupOffsetsHandler
from strandline.server.handlers.groups.offset_fetch import OffsetFetchHandler
from strandline.server.handlers.log_dirs import LogDirsHandler
from strandline.server.handlers.offsets import OffsetsHandler
from strandline.server.handlers.producers import ProducerIds, ProducersHandler
from strandline.server.handlers.reassignments import ReassignmentsHandler
from strandline.server.handlers.records import RecordsHandler
from strandline.server.handlers.topics.auto_creation import TopicAutoCreator
from strandline.server.handlers.topics.changes import TopicsHandler
from strandline.server.handlers.topics.describe import TopicPartitionsHandler
from strandline.server.handlers.topics.metadata import MetadataHandler
from strandline.server.handlers.transactions import RefusedTransactions
from strandline.wire.api import ApiKey


def handler_table(
    *,
    images: MetadataLoader,
    controller: Controller,
    active_controller: ActiveController,
    lifecycle: BrokerLifecycle,
    tiers: Tiers,
    groups: GroupCoordinator,
    settings: CurrentSettings,
    clock: Clock,
) -> Mapping[ApiKey, Handler]:
    """Build every handler over the components it needs, and say which serves what."""
    diskless, partitions, states = tiers.diskless, tiers.partitions, tiers.migration_states
    creator = TopicAutoCreator(images, active_controller, settings, diskless)
    loggers = BrokerLoggers()
    transactions = RefusedTransactions(clock)
    node_id = controller.node_id
    handlers = (
        ApiVersionsHandler(),
        MetadataHandler(images, creator, diskless),
        ClusterHandler(images),
        TopicPartitionsHandler(images, diskless, settings().network.max_request_partition_size_limit),
        TopicsHandler(controller, images, settings, diskless),
        ConfigsHandler(node_id, images, settings, loggers, states),
        AlterConfigsHandler(controller, images, loggers, checks=tiers.switch_checks, states=states),
        OffsetsHandler(partitions),
        RecordsHandler(partitions),
        ProducersHandler(
            ProducerIds(node_id, lambda: lifecycle.broker_epoch, active_controller), partitions, transactions
        ),
        LogDirsHandler(tiers.log_dirs),
        ElectionsHandler(controller),
        ReassignmentsHandler(),
        FindCoordinatorHandler(groups, images, creator, transactions),
        GroupsHandler(groups),
        GroupOffsetsHandler(groups, images),
        OffsetFetchHandler(groups, images),
        GroupAdminHandler(groups),
        BrokersHandler(controller),
    )
    table = {key: handler for part in handlers for key, handler in part.routes().items()}
    return {**table, **ForwardingHandlers(active_controller, table).routes()}
