"""Builds a broker out of its components, connects them, and runs it until it is stopped.

The only place where components meet. Each is opened in the order in which it needs the others and closed in the
reverse order, in one exit stack; if a component fails, the whole broker stops: it is never half alive.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import UUID

from strandline.admin.http.listener import HttpListener
from strandline.admin.monitoring import Monitoring
from strandline.admin.reporting import describe_broker, describe_readiness
from strandline.admin.status import BrokerStatus, Readiness
from strandline.admin.topic_settings import TopicSettingsChanges
from strandline.clock import SystemChance, SystemClock, SystemIds
from strandline.config import Settings
from strandline.config.listeners import machine_name
from strandline.config.topic import TopicConfig
from strandline.errors import StrandlineError
from strandline.health import HealthStatus
from strandline.hybrid.tiers import Tiers
from strandline.log import LogManager
from strandline.log.cleaning import LogCleaner
from strandline.metadata import (
    MAX_REPLICAS,
    ActiveController,
    BrokerLifecycle,
    BrokerRegistration,
    Controller,
    Listener,
    MetadataDelta,
    MetadataImage,
    MetadataLoader,
    MetadataStore,
)
from strandline.model import TopicPartition
from strandline.replication.adoption import adopt, find_kafka_cluster
from strandline.server.coordination import Coordination
from strandline.server.deadlines import Deadlines
from strandline.server.dispatcher import ApiDispatcher
from strandline.server.fetch_sessions import FetchSessions
from strandline.server.handlers.fetch.handler import FetchHandler
from strandline.server.handlers.produce import ProduceHandler
from strandline.server.handlers.producers import ProducerIds
from strandline.server.handlers.table import handler_table
from strandline.server.network import BoundListener, NetworkServer, bound_addresses
from strandline.server.telemetry import ClientTelemetry
from strandline.signals import stop_signals
from strandline.sql.clock_watch import ClockWatch
from strandline.sql.waiting import WaitGivenUp, open_when_there
from strandline.wire.api import ApiKey

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
        self.settings, self._stop = settings, stop or asyncio.Event()
        self.node_id = settings.cluster.node_id
        self.listeners: tuple[BoundListener, ...] = ()
        self._static_settings = settings
        self._clock, self._ids, self._chance = SystemClock(), SystemIds(), SystemChance()
        self._stack, self._failed = AsyncExitStack(), asyncio.Event()
        self._failure, self._is_stopping = "", False
        self._started = self._clock.monotonic()

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
        loop = self._loop = asyncio.get_running_loop()
        _raise_file_limit()
        gc.disable()  # until the broker serves: building thousands of objects makes no garbage
        enter = self._stack.enter_async_context
        self._make_directories()

        cluster = self.settings.cluster
        url, within = cluster.strandline_metadata_url, cluster.strandline_metadata_wait_ms / 1000
        opening = open_when_there(url, within=within, stop=self._stop, clock=self._clock, ids=self._ids)
        sql = self._sql = await enter(opening)
        self.clock_watch = ClockWatch(sql, self._clock, most_ms=cluster.strandline_clock_difference_max_ms)
        await self.clock_watch.begin()
        store = MetadataStore(sql)
        self.loader = MetadataLoader(store, self._clock)
        await self.loader.load()
        found = None if self.loader.image.cluster_id else find_kafka_cluster(self.settings.log.log_dirs)
        await enter(self.loader.running())
        self.controller = Controller(
            store,
            self.loader,
            self.settings,
            clock=self._clock,
            ids=self._ids,
            chance=self._chance,
            cluster_id=None if found is None else found.cluster_id,
            max_replicas=MAX_REPLICAS,
        )
        await enter(self.controller.running())
        if found is not None:
            await adopt(found, self.controller, self.node_id)

        self.network = NetworkServer(self.settings.network, loop)
        self._stack.callback(self.network.close)
        self.listeners = tuple(
            self.network.bind(endpoint.name, endpoint.host, endpoint.port)
            for endpoint in self.settings.network.endpoints
        )
        http = HttpListener(self.settings.admin.http_address)
        self._stack.callback(http.close)
        self._load_dynamic_settings(self.loader.image)
        self.logs = LogManager(
            self.settings.log,
            node_id=self.node_id,
            cluster_id=self.loader.image.cluster_id,
            clock=self._clock,
            ids=self._ids,
            chance=self._chance,
            producer_expiration_ms=self.settings.transactions.producer_id_expiration_ms,
            on_directory_failure=self._directory_failed,
            checkpoint_interval_ms=self.settings.replication.replica_high_watermark_checkpoint_interval_ms,
            remote_enabled=self.settings.tiers.remote_log_storage_system_enable,
        )
        tiers = self._tiers = Tiers(
            sql,
            self.loader,
            self.logs,
            loop=loop,
            settings=lambda: self.settings,
            topic_config=self.topic_config,
            clock=self._clock,
            ids=self._ids,
            chance=self._chance,
        )
        self.diskless, self.tiered, self.replicas = tiers.diskless, tiers.tiered, tiers.replicas
        self.partitions, self.migrations, self.tiering = tiers.partitions, tiers.migrations, tiers.tiering
        self.active_controller = await enter(
            ActiveController(
                self.controller,
                self.loader,
                self.settings.cluster,
                self._clock,
                listener=self.settings.network.inter_broker_listener,
            ).running()
        )
        self.lifecycle = BrokerLifecycle(
            self.active_controller, self.loader, self._registration(), cluster, self._clock, on_lost=self._fail
        )
        tiers.check()
        await tiers.load()
        await loop.run_in_executor(None, self._load_logs)
        self._stack.push_async_callback(self._close_logs)
        await enter(self._background(self.logs.run, "log-housekeeping"))
        await enter(self._background(self.clock_watch.run, "clock-watch"))

        await enter(self.lifecycle.running())
        await self.lifecycle.unfence()
        self.cleaner = LogCleaner(self.settings.log, self.logs.all_logs, self._clock)
        self.loader.subscribe(self._apply)
        await enter(tiers.running(self.active_controller, on_failure=self._fail))

        self.coordination = Coordination(
            tiers,
            self.loader,
            ProducerIds(self.node_id, lambda: self.lifecycle.broker_epoch, self.active_controller),
            self.active_controller,
            node_id=self.node_id,
            settings=lambda: self.settings,
            clock=self._clock,
            ids=self._ids,
        )
        self.groups = self.coordination.groups
        await enter(self.coordination.running())
        await enter(self._background(self.cleaner.run, "log-cleaner"))
        self._serve(loop)
        self._stack.push_async_callback(self._leave)
        await enter(http.serving(self))

    @asynccontextmanager
    async def _background(self, work: Callable[[], Awaitable[None]], name: str) -> AsyncIterator[None]:
        """Run endless work while the block lasts. Work that dies ends the broker."""

        async def run() -> None:
            try:
                await work()
            except Exception as error:
                logger.exception("%s has failed", name)
                self._fail(f"{name} has failed: {error}")

        task = asyncio.create_task(run(), name=name)
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _load_logs(self) -> None:
        image = self.loader.image

        def is_stray(partition: TopicPartition, topic_id: UUID | None) -> bool:
            topic = image.topics.get(partition.topic)
            known = None if topic is None else topic.partition(partition.partition)
            if topic is None or known is None or self.node_id not in known.replicas:
                return True
            return topic_id is not None and topic_id != topic.topic_id

        self.logs.load(self.topic_config, is_stray=is_stray)

    def _make_directories(self) -> None:
        path = self.settings.cluster.strandline_data_dir
        try:
            Path(path).mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise BrokerFailed(f"strandline.data.dir={path} is not a directory. Name another one.") from error

    def _registration(self) -> BrokerRegistration:
        ports = {listener.name: listener.port for listener in self.listeners}
        advertised = self.settings.network.advertised_endpoints(machine_name())
        return BrokerRegistration(
            node_id=self.node_id,
            incarnation_id=self._ids.uuid(),
            listeners=tuple(Listener(e.name, e.host, e.port or ports[e.name], e.security_protocol) for e in advertised),
            cluster_id=self.loader.image.cluster_id,
            rack=self.settings.cluster.broker_rack,
        )

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        deadlines = Deadlines(loop)
        self._stack.callback(deadlines.close)
        self.sessions = FetchSessions(
            self.settings.network.max_incremental_fetch_session_cache_slots, self._clock, self._chance
        )
        fetch = FetchHandler(
            self.partitions,
            self.sessions,
            deadlines,
            memory=self.network.memory.answers,
            pages=self.network.pages,
            loop=loop,
            max_bytes=self.settings.network.fetch_max_bytes,
        )
        self._stack.push_async_callback(fetch.close)
        self.telemetry = ClientTelemetry(self.loader, self._clock, self._ids, self.settings.admin.telemetry_max_bytes)
        handlers = handler_table(
            images=self.loader,
            controller=self.controller,
            active_controller=self.active_controller,
            tiers=self._tiers,
            coordination=self.coordination,
            telemetry=self.telemetry,
            network=self.network,
            settings=lambda: self.settings,
        )
        self.dispatcher = ApiDispatcher(
            produce=ProduceHandler(self.partitions, deadlines, self.coordination.gate),
            fetch=fetch,
            handlers=handlers,
            clock=self._clock,
        )
        self.topic_settings = TopicSettingsChanges(handlers[ApiKey.INCREMENTAL_ALTER_CONFIGS])
        self._stack.push_async_callback(self.dispatcher.close)
        self.monitoring = Monitoring(self, self._clock)
        self._stack.push_async_callback(self.monitoring.close)
        # These objects live as long as the broker: the garbage collector need not look at them again.
        gc.freeze()
        gc.enable()
        self.network.start(self.dispatcher)
        where, cluster_id = bound_addresses(self.listeners), self.loader.image.cluster_id
        logger.info("broker %d of cluster %s serves clients on %s", self.node_id, cluster_id, where)

    # Following the metadata

    def topic_config(self, topic: str) -> TopicConfig:
        """What holds for a topic now."""
        return self.settings.topic_config(self.loader.image.topic_overrides(topic))

    def _apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if delta.changed_configs:
            self._load_dynamic_settings(image)
            self.network.reconfigure(self.settings.network)
            self.cleaner.update_settings(self.settings.log)
            self._tiers.follow_settings()
        self._tiers.apply(delta, image)

    def _load_dynamic_settings(self, image: MetadataImage) -> None:
        cluster, own = image.cluster_default_overrides(), image.broker_overrides(self.node_id)
        if cluster != self.settings.cluster_default or own != self.settings.per_broker:
            self.settings = self._static_settings.with_dynamic(cluster, own)
            for sentence in self.settings.rejected:
                logger.warning("a dynamic setting is not used: %s", sentence)

    def _directory_failed(self, directory: Path) -> None:
        """Called from any thread, possibly in the middle of an append: act in the next turn of the loop."""
        self._loop.call_soon_threadsafe(self._drop_directory, directory)

    def _drop_directory(self, directory: Path) -> None:
        self.replicas.directory_failed(directory)
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
        self._is_stopping = True
        self.network.stop_listening()
        if self.settings.cluster.controlled_shutdown_enable:
            await self.lifecycle.shut_down(SHUTDOWN_SECONDS)
        await self.controller.resign()
        self.diskless.hurry()
        await self.network.drain(self._clock, is_uploading=lambda: self.diskless.is_writing)
        self.network.close()

    async def _close_logs(self) -> None:
        self.replicas.close()
        epoch = self.lifecycle.broker_epoch
        await asyncio.to_thread(self.logs.shutdown, broker_epoch=epoch)

    def status(self) -> BrokerStatus:
        """`admin.status.BrokerSource`."""
        uptime_s, dependencies = self._clock.monotonic() - self._started, self._dependencies()
        return describe_broker(self, is_stopping=self._is_stopping, uptime_s=uptime_s, dependencies=dependencies)

    def readiness(self) -> Readiness:
        """`admin.status.BrokerSource`."""
        return describe_readiness(self, is_stopping=self._is_stopping, dependencies=self._dependencies())

    def _dependencies(self) -> tuple[HealthStatus, ...]:
        return (self._sql.health.status(), *self._tiers.health())


def _raise_file_limit() -> None:
    """Segments and connections are open files: take as many as the system lets us have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
