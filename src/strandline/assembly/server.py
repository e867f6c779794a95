"""What serves requests of clients, and what is measured and shown of a broker."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from strandline.admin.topic_settings import TopicSettingsChanges
from strandline.assembly.base import Base
from strandline.assembly.handlers import ServedLayers, build_handlers
from strandline.metadata import BrokerLifecycle
from strandline.server.deadlines import Deadlines
from strandline.server.dispatcher import ApiDispatcher
from strandline.server.fetch_sessions import FetchSessions
from strandline.server.handlers.fetch.handler import FetchHandler
from strandline.server.handlers.produce import ProduceHandler
from strandline.server.network import NetworkServer
from strandline.server.suspension import SuspensionWatch
from strandline.server.telemetry import ClientTelemetry
from strandline.wire.api import ApiKey


class ServerLayer(NamedTuple):
    """What answers requests."""

    deadlines: Deadlines
    sessions: FetchSessions
    fetch: FetchHandler
    dispatcher: ApiDispatcher
    telemetry: ClientTelemetry
    topic_settings: TopicSettingsChanges


def build_network(base: Base) -> NetworkServer:
    """Listens nowhere yet."""
    return NetworkServer(base.static.network, asyncio.get_running_loop())


def build_suspension_watch(base: Base, network: NetworkServer, lifecycle: BrokerLifecycle) -> SuspensionWatch:
    """For brokers that other brokers can replace while they are suspended."""
    return SuspensionWatch(
        network,
        network.suspended,
        lifecycle.confirm,
        base.clock,
        network.loop.time,
        session_seconds=base.static.cluster.broker_session_timeout_ms / 1000,
    )


def build_server(base: Base, served: ServedLayers) -> ServerLayer:
    """Produce, Fetch, and every other API."""
    metadata, network, partitions = served.metadata, served.network, served.partitions.hybrid.partitions
    now, loop = metadata.settings.now, asyncio.get_running_loop()
    deadlines = Deadlines(loop)
    sessions = FetchSessions(now.network.max_incremental_fetch_session_cache_slots, base.clock, base.chance)
    fetch = FetchHandler(
        partitions,
        sessions,
        deadlines,
        memory=network.memory.answers,
        pages=network.pages,
        loop=loop,
        max_bytes=now.network.fetch_max_bytes,
    )
    telemetry = ClientTelemetry(metadata.loader, base.clock, base.ids, now.admin.telemetry_max_bytes)
    handlers = build_handlers(served, telemetry, base.clock)
    dispatcher = ApiDispatcher(
        produce=ProduceHandler(partitions, deadlines, served.coordination.transaction_parts.gate),
        fetch=fetch,
        handlers=handlers,
        clock=base.clock,
    )
    return ServerLayer(
        deadlines=deadlines,
        sessions=sessions,
        fetch=fetch,
        dispatcher=dispatcher,
        telemetry=telemetry,
        topic_settings=TopicSettingsChanges(handlers[ApiKey.INCREMENTAL_ALTER_CONFIGS]),
    )
