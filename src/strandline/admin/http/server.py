"""The HTTP application and its listener, on the event loop of the broker.

Import it after the Kafka listener is up: starlette and uvicorn take longer to load than the rest of the broker.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from strandline.admin.http.answers import TRY_AGAIN, in_sentences
from strandline.admin.http.converted_json import with_converted
from strandline.admin.http.metrics.exposition import exposition
from strandline.admin.http.migration import migration_routes
from strandline.admin.http.migration_json import with_migration
from strandline.admin.http.page import render_page
from strandline.admin.http.rates import RateMeter
from strandline.admin.http.status_json import broker_status, partition_tiers
from strandline.admin.http.tiering import tiering_routes
from strandline.admin.status import BrokerSource
from strandline.admin.text import sentence
from strandline.errors import StrandlineError
from strandline.wire.errors import ErrorCode

if TYPE_CHECKING:  # a broker without tiered storage does not load it
    from strandline.hybrid.conversion.led_tiers import DisklessTiers
    from strandline.hybrid.switching.status import PartitionMigration
    from strandline.remote.manager import PartitionTierStatus

_GRACE_S: Final = 1
_BACKLOG: Final = 128


def build_app(source: BrokerSource, registry: CollectorRegistry) -> Starlette:
    """The HTTP application over a broker's status and its metrics."""

    meter = RateMeter()

    async def healthz(_: Request) -> Response:
        """Alive: the event loop answers. Says nothing about being able to serve clients."""
        return PlainTextResponse("ok\n")

    async def readyz(_: Request) -> Response:
        """200 once the broker is registered and unfenced, 503 with the reasons before and after.

        What is away and which partitions have no leader is named in both, and changes neither: topics that do not need
        it are served, and a restart of this broker would not help.
        """
        status = source.readiness()
        lines = ["ready"] if status.is_ready else list(status.not_ready_because)
        lines += [sentence(health) for health in status.dependencies if health.is_away]
        lines += filter(None, (*status.leaderless, status.clock_problem))
        return PlainTextResponse("".join(f"{line}\n" for line in lines), status_code=200 if status.is_ready else 503)

    async def metrics(_: Request) -> Response:
        return Response(await exposition(source, registry), media_type=CONTENT_TYPE_LATEST)

    async def status_json(_: Request) -> Response:
        return JSONResponse(broker_status(source.status()))

    async def tiers(request: Request) -> Response:
        """Which segments of a topic are where, in the partitions that this broker leads."""
        topic = request.path_params["topic"]
        found, led = await source.monitoring.tiers(topic), source.migrations.figures().of_topics().get(topic, ())
        try:
            diskless = await source.tiering.tiers(topic)
        except StrandlineError:
            if not found and not led:
                raise
            diskless = ()  # what this broker knows without the control plane is better than nothing
        if found is None and not led and not diskless:
            return JSONResponse({"error": "remote.log.storage.system.enable is false on this broker"}, status_code=404)
        body = await asyncio.to_thread(_tiers_json, found or (), led, diskless)
        return Response(body, media_type="application/json")

    async def page(_: Request) -> Response:
        await source.monitoring.refresh()  # a lag needs the ends of diskless partitions
        status = source.status()
        return HTMLResponse(render_page(status, meter.look(status), source.monitoring.group_rows()))

    return Starlette(
        routes=[
            Route("/", page),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
            Route("/status", status_json),
            Route("/topics/{topic}/tiers", in_sentences(tiers, {ErrorCode.KAFKA_STORAGE_ERROR: TRY_AGAIN})),
            *migration_routes(source),
            *tiering_routes(source),
        ]
    )


def _tiers_json(
    found: Sequence[PartitionTierStatus], led: Sequence[PartitionMigration], diskless: Sequence[DisklessTiers]
) -> str:
    """For a thread: there may be a hundred thousand segments.

    `json.dumps` would keep the event loop from running until it has finished: it holds the interpreter's lock.
    """
    rows = [partition_tiers(status) for status in found]
    content = {"partitions": with_converted(with_migration(rows, led), diskless)}
    return "".join(json.JSONEncoder(separators=(",", ":")).iterencode(content))


class _Server(uvicorn.Server):
    """uvicorn on a loop that is not its own: the broker handles signals."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


@asynccontextmanager
async def open_http(
    source: BrokerSource, registry: CollectorRegistry, listener: socket.socket
) -> AsyncIterator[tuple[str, int]]:
    """Serve HTTP on the running event loop while the block lasts, on a socket that is bound; gives its address.

    Leaving the block closes the socket, and ends open requests after a second.
    """
    listener.listen(_BACKLOG)
    process = ProcessCollector(registry=None)
    registry.register(process)
    config = uvicorn.Config(
        build_app(source, registry),
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_S,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="http")
    try:
        yield listener.getsockname()[:2]
    finally:
        server.should_exit = True
        await serving
        listener.close()
        registry.unregister(process)
