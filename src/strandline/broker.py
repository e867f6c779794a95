"""The life of one broker: it starts its components in the order in which they need each other, and stops them in the
reverse order, in one exit stack. If a component fails, the whole broker stops: it is never half alive.

What the components are, and how they are connected, is in `strandline.assembly`.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from pathlib import Path
from typing import Final

from strandline.admin.http.listener import HttpListener
from strandline.admin.monitoring import Monitoring
from strandline.admin.reporting import BrokerReports
from strandline.assembly.base import Base
from strandline.assembly.coordinators import build_coordination
from strandline.assembly.handlers import ServedLayers
from strandline.assembly.metadata import (
    build_active_controller,
    build_controller,
    build_lifecycle,
    build_metadata,
    open_database,
)
from strandline.assembly.partitions import build_partitions
from strandline.assembly.replicas import (
    build_cleaner,
    build_directory_reports,
    build_fetchers,
    build_logs,
    load_logs,
)
from strandline.assembly.server import build_network, build_server, build_suspension_watch
from strandline.clock import SystemChance, SystemClock, SystemIds
from strandline.config import Settings
from strandline.errors import StrandlineError
from strandline.health import HealthStatus
from strandline.hybrid.learning import learn_ordered_topics
from strandline.metadata import MetadataDelta, MetadataImage
from strandline.replication.adoption import adopt, find_kafka_cluster
from strandline.server.network import BoundListener, bound_addresses
from strandline.signals import stop_signals
from strandline.sql import WaitGivenUp
from strandline.tasks import in_background_or_failed

logger = logging.getLogger(__name__)
SHUTDOWN_SECONDS: Final = 3.0


class BrokerFailed(StrandlineError):
    """A part of the broker that it cannot do without has failed."""


def run_broker(settings: Settings) -> None:
    """Run a broker in this process until SIGTERM or SIGINT. Raises StrandlineError if it cannot start or go on."""
    gc.set_threshold(10_000, 10, 10)  # with Python's 700 it looks at rows and requests that are still under way
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        runner.run(_run_until_signal(settings))


def _new_loop() -> asyncio.AbstractEventLoop:
    import uvloop

    return uvloop.new_event_loop()


async def _run_until_signal(settings: Settings) -> None:
    stop = asyncio.Event()
    with stop_signals(stop), suppress(WaitGivenUp):
        async with Broker(settings, stop) as broker:
            await broker.wait_stopped(stop)
            logger.info("broker %d is stopping", broker.node_id)


class Broker:
    """One broker. `async with Broker(settings)` serves clients inside the block."""

    def __init__(self, settings: Settings, stop: asyncio.Event | None = None) -> None:
        self._base = Base(static=settings, clock=SystemClock(), ids=SystemIds(), chance=SystemChance())
        self._stop = stop or asyncio.Event()
        self.node_id = self._base.node_id
        self.listeners: tuple[BoundListener, ...] = ()
        self._stack, self._failed = AsyncExitStack(), asyncio.Event()
        self._failure = ""
        self._started = self._base.clock.monotonic()

    @property
    def settings(self) -> Settings:
        """The settings as they are now, once the database is open."""
        return self._metadata.settings.now

    # Starting

    async def __aenter__(self) -> Broker:
        try:
            await self._start()
        except BaseException:
            gc.enable()
            await self._stack.aclose()
            raise
        return self

    async def _start(self) -> None:
        self._loop = asyncio.get_running_loop()
        _raise_file_limit()
        gc.disable()  # until the broker serves: building thousands of objects makes no garbage
        self._make_directories()
        await self._open_metadata()
        http = self._bind()
        self._follow_settings()
        self._build_partitions()
        await self._load_partitions()
        await self._join_cluster()
        await self._coordinate()
        self._serve()
        if not self._metadata.sql.is_exclusive:
            watch = build_suspension_watch(self._base, self.network, self.lifecycle)
            await self._stack.enter_async_context(self._background(watch.run, "suspension-watch"))
        self._stack.push_async_callback(self._leave)
        await self._stack.enter_async_context(http.serving(self.reports))

    def _make_directories(self) -> None:
        path = self._base.static.cluster.strandline_data_dir
        try:
            Path(path).mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise BrokerFailed(f"strandline.data.dir={path} is not a directory. Name another one.") from error

    async def _open_metadata(self) -> None:
        """The database, the metadata so far, and the controller."""
        enter = self._stack.enter_async_context
        sql = await enter(open_database(self._base, self._stop))
        metadata = self._metadata = build_metadata(self._base, sql)
        self.clock_watch, self.loader = metadata.clock_watch, metadata.loader
        await self.clock_watch.begin()
        await self.loader.load()
        found = None if self.loader.image.cluster_id else find_kafka_cluster(self.settings.log.log_dirs)
        await enter(self.loader.running())
        cluster_id = None if found is None else found.cluster_id
        self.controller = build_controller(self._base, metadata, cluster_id=cluster_id)
        await enter(self.controller.running())
        if found is not None:
            await adopt(found, self.controller, self.node_id)

    def _bind(self) -> HttpListener:
        """Addresses are taken before the broker registers with them; clients are served later."""
        self.network = build_network(self._base)
        self._stack.callback(self.network.close)
        endpoints = self.settings.network.endpoints
        self.listeners = tuple(self.network.bind(one.name, one.host, one.port) for one in endpoints)
        http = HttpListener(self.settings.admin.http_address)
        self._stack.callback(http.close)
        return http

    def _build_partitions(self) -> None:
        base, metadata = self._base, self._metadata
        self.logs = build_logs(base, metadata, on_directory_failure=self._directory_failed)
        self.active_controller = build_active_controller(base, metadata, self.controller)
        layers = self._layers = build_partitions(
            base,
            metadata,
            self.logs,
            self.active_controller,
            broker_epoch=lambda: self.lifecycle.broker_epoch,  # the broker registers when its logs are loaded
        )
        self.replicas, self.partitions = layers.replicas.replicas, layers.hybrid.partitions
        self.leader_upkeep = layers.replicas.upkeep
        self.diskless, self.tiered = layers.hybrid.diskless, layers.hybrid.tiered
        self.migrations, self.tiering = layers.switching.reports, layers.conversion.service

    async def _load_partitions(self) -> None:
        """What this broker has is known before it registers, and closed after it has left."""
        base, metadata, enter = self._base, self._metadata, self._stack.enter_async_context
        await enter(self.active_controller.running())
        self._layers.tiers.remote.check()
        lower = self._layers.replicas
        await learn_ordered_topics(lower.kinds, lower.plane.lifecycle, base.clock)
        await self._loop.run_in_executor(None, load_logs, base, metadata, self.logs)
        self.lifecycle = build_lifecycle(
            base, metadata, self.active_controller, self.listeners, self.logs, on_lost=self._fail
        )
        self._stack.push_async_callback(self._close_logs)
        await enter(self._background(self.logs.run, "log-housekeeping"))
        await enter(self._background(self.clock_watch.run, "clock-watch"))

    async def _join_cluster(self) -> None:
        """The broker registers, and its partitions follow the metadata from here on."""
        base, metadata, enter = self._base, self._metadata, self._stack.enter_async_context
        own = self.lifecycle.registration
        await self._loop.run_in_executor(
            None, self.logs.note_incarnation, own.previous_broker_epoch, own.incarnation_id
        )
        await enter(self.lifecycle.running())
        await self._loop.run_in_executor(None, self.logs.note_incarnation, self.lifecycle.broker_epoch)
        await self.lifecycle.unfence()
        self.cleaner = build_cleaner(base, metadata, self.logs)
        self.fetchers = build_fetchers(base, metadata, self.replicas, broker_epoch=lambda: self.lifecycle.broker_epoch)
        self._stack.push_async_callback(self.leader_upkeep.close)
        reports = build_directory_reports(
            base,
            metadata,
            self.replicas,
            self.logs,
            self.active_controller,
            broker_epoch=lambda: self.lifecycle.broker_epoch,
        )
        self._stack.push_async_callback(reports.close)
        self.replicas.add_replica_listener(reports)
        self.loader.subscribe(self._apply)
        self.loader.subscribe(reports.apply)
        await enter(self.fetchers.running())
        await enter(self._background(self.leader_upkeep.run, "in-sync-sets"))
        await enter(self._layers.tiers.serving.running(on_failure=self._fail))

    async def _coordinate(self) -> None:
        self.coordination = build_coordination(
            self._base,
            self._metadata,
            self._layers,
            self.active_controller,
            broker_epoch=lambda: self.lifecycle.broker_epoch,
        )
        self.groups = self.coordination.groups
        await self._stack.enter_async_context(self.coordination.running())
        await self._stack.enter_async_context(self._background(self.cleaner.run, "log-cleaner"))

    def _serve(self) -> None:
        served = ServedLayers(
            metadata=self._metadata,
            partitions=self._layers,
            controller=self.controller,
            active_controller=self.active_controller,
            coordination=self.coordination,
            network=self.network,
        )
        server = build_server(self._base, served)
        self.sessions, self.dispatcher = server.sessions, server.dispatcher
        self.telemetry, self.topic_settings = server.telemetry, server.topic_settings
        self.monitoring = Monitoring(self, self._base.clock)
        self.reports = BrokerReports(self, self._health, self._base.clock, started=self._started)
        self._stack.callback(server.deadlines.close)
        for part in (server.fetch, server.dispatcher, self.monitoring):
            self._stack.push_async_callback(part.close)
        # These objects live as long as the broker: the garbage collector need not look at them again.
        gc.freeze()
        gc.enable()
        self.network.start(self.dispatcher)
        where, cluster_id = bound_addresses(self.listeners), self.loader.image.cluster_id
        logger.info("broker %d of cluster %s serves clients on %s", self.node_id, cluster_id, where)

    def _background(self, work: Callable[[], Awaitable[None]], name: str) -> AbstractAsyncContextManager[None]:
        """Work that dies ends the broker."""
        return in_background_or_failed(work, name, on_failure=self._fail, log=logger)

    def _health(self) -> tuple[HealthStatus, ...]:
        """Of the database, and of the stores that are in use."""
        return (self._metadata.sql.health.status(), *self._layers.tiers.stores.health())

    # Following the metadata

    def _apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if delta.changed_configs:
            self._follow_settings()
            self.network.reconfigure(self.settings.network)
            self.cleaner.update_settings(self.settings.log)
            self.fetchers.follow_settings()
            self.tiered.storage.follow(self.settings.tiers)
        self._layers.tiers.following.apply(delta, image)

    def _follow_settings(self) -> None:
        for sentence in self._metadata.settings.follow():
            logger.warning("a dynamic setting is not used: %s", sentence)

    # Failures

    def _directory_failed(self, directory: Path) -> None:
        """Called from any thread, possibly in the middle of an append: act in the next turn of the loop."""
        self._loop.call_soon_threadsafe(self._drop_directory, directory)

    def _drop_directory(self, directory: Path) -> None:
        self.replicas.directory_failed(directory)
        self.lifecycle.directory_failed()
        if len(self.logs.offline_directories) == len(self.logs.directories):
            reasons = (f"{one.path}: {one.why_offline}." for one in self.logs.directories)
            self._fail(f"Every log directory has failed. {' '.join(reasons)}")

    def _fail(self, reason: str) -> None:
        self._failure = self._failure or reason
        self._failed.set()

    # Stopping

    async def wait_stopped(self, stop: asyncio.Event) -> None:
        """Return when `stop` is set. Raises BrokerFailed when the broker cannot go on."""
        waits = [asyncio.ensure_future(event.wait()) for event in (stop, self._failed)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if self._failed.is_set():
            raise BrokerFailed(self._failure)

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        logger.info("broker %d has stopped", self.node_id)

    async def _leave(self) -> None:
        """The first step of stopping: no new clients; partitions and the controller's lease go to other brokers."""
        self.reports.is_stopping = True
        self.network.stop_listening()
        if self.settings.cluster.controlled_shutdown_enable:
            await self.lifecycle.shut_down(SHUTDOWN_SECONDS)
        await self.controller.resign()
        self.diskless.engine.hurry()
        await self.network.drain(self._base.clock, is_uploading=lambda: self.diskless.engine.is_writing)
        self.network.close()

    async def _close_logs(self) -> None:
        self.replicas.close()
        epoch = self.lifecycle.broker_epoch
        await asyncio.to_thread(self.logs.shutdown, broker_epoch=epoch)


def _raise_file_limit() -> None:
    """Segments and connections are open files: take as many as the system lets us have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
