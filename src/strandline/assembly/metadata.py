"""The database, the metadata, and the part of this broker in the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

from strandline.assembly.base import Base
from strandline.config.listeners import machine_name
from strandline.log import LogManager
from strandline.metadata import (
    ActiveController,
    BrokerLifecycle,
    BrokerRegistration,
    Controller,
    FailedDirectories,
    Listener,
    LiveSettings,
    MetadataLoader,
    MetadataStore,
)
from strandline.server.network import BoundListener
from strandline.sql import ClockWatch, WatchedStore, open_when_there


class MetadataLayer(NamedTuple):
    """What follows the metadata, and what it is kept in."""

    sql: WatchedStore
    clock_watch: ClockWatch
    store: MetadataStore
    loader: MetadataLoader
    settings: LiveSettings


def open_database(base: Base, stop: asyncio.Event) -> AbstractAsyncContextManager[WatchedStore]:
    """The database, until the block ends. Waits for it, unless `stop` is set."""
    cluster = base.static.cluster
    url, within = cluster.strandline_metadata_url, cluster.strandline_metadata_wait_ms / 1000
    return open_when_there(url, within=within, stop=stop, clock=base.clock, ids=base.ids)


def build_metadata(base: Base, sql: WatchedStore) -> MetadataLayer:
    """Nothing is loaded yet."""
    store = MetadataStore(sql)
    loader = MetadataLoader(store, base.clock)
    return MetadataLayer(
        sql=sql,
        clock_watch=ClockWatch(sql, base.clock, most_ms=base.static.cluster.strandline_clock_difference_max_ms),
        store=store,
        loader=loader,
        settings=LiveSettings(base.static, base.node_id, loader),
    )


def build_controller(base: Base, metadata: MetadataLayer, *, cluster_id: str | None) -> Controller:
    """The controller of this broker, active or not. `cluster_id` is for a cluster that has none yet."""
    return Controller(
        metadata.store,
        metadata.loader,
        base.static,
        clock=base.clock,
        ids=base.ids,
        chance=base.chance,
        cluster_id=cluster_id,
    )


def build_active_controller(base: Base, metadata: MetadataLayer, local: Controller) -> ActiveController:
    """The active controller, wherever it is."""
    now = metadata.settings.now
    listener = now.network.inter_broker_listener
    return ActiveController(local, metadata.loader, now.cluster, base.clock, listener=listener)


def build_lifecycle(
    base: Base,
    metadata: MetadataLayer,
    controller: ActiveController,
    listeners: Iterable[BoundListener],
    logs: LogManager,
    *,
    on_lost: Callable[[str], None],
) -> BrokerLifecycle:
    """Registers this broker with the addresses on which it listens. `on_lost` is called if it cannot stay.

    The logs are loaded: the broker says which directories it has, and whether they have all that was written to them.
    """
    registration = _registration(base, metadata, listeners, logs)
    patience = base.static.log.log_dir_failure_timeout_ms / 1000
    failed = FailedDirectories(lambda: logs.failed_directory_ids, base.clock, patience=patience)
    return BrokerLifecycle(
        controller,
        metadata.loader,
        registration,
        base.static.cluster,
        base.clock,
        on_lost=on_lost,
        failed_directories=failed,
    )


def _registration(
    base: Base, metadata: MetadataLayer, listeners: Iterable[BoundListener], logs: LogManager
) -> BrokerRegistration:
    ports = {listener.name: listener.port for listener in listeners}
    now = metadata.settings.now
    advertised = now.network.advertised_endpoints(machine_name())
    known = metadata.loader.image.brokers.get(base.node_id)
    kept = logs.kept
    previous = kept.broker_epoch if known is None else kept.newest_epoch(known.incarnation_id, known.epoch)
    return BrokerRegistration(
        node_id=base.node_id,
        incarnation_id=metadata.store.process_id,  # its name in the database shows that the process lives
        listeners=tuple(Listener(e.name, e.host, e.port or ports[e.name], e.security_protocol) for e in advertised),
        cluster_id=metadata.loader.image.cluster_id,
        rack=now.cluster.broker_rack,
        previous_broker_epoch=previous,
        log_dirs=logs.directory_ids,
    )
