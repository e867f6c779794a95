"""A run of the pipeline from its start to its end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from strandline.clock import Chance, Clock, Ids, SystemChance, SystemClock, SystemIds
from strandline.conversion_api.values import ListTriggers
from strandline.pipeline.client import PATIENCE_SECONDS, TieringClient
from strandline.pipeline.driver.holds import Holds
from strandline.pipeline.driver.jobs import SparkJobs
from strandline.pipeline.driver.probe import check_executors
from strandline.pipeline.driver.reporting import Reporter, Tally
from strandline.pipeline.driver.rounds import follow, run_once
from strandline.pipeline.driver.threads import DaemonThreads
from strandline.pipeline.driver.troubles import Troubles
from strandline.pipeline.driver.world import RunWorld
from strandline.pipeline.session import SparkOptions, open_session
from strandline.pipeline.stores import StoreSettings

if TYPE_CHECKING:
    from pyspark import SparkContext

_GIVE_BACK_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the user has asked for."""

    bootstrap: str
    is_following: bool = False
    topics: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    """Settings of brokers, such as passwords of stores, that executors need and brokers do not tell."""
    spark: SparkOptions = field(default_factory=SparkOptions)
    broker_seconds: float = PATIENCE_SECONDS
    """How long a request may go unanswered before it fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How a run has ended."""

    tally: Tally
    was_stopped: bool
    """By a signal, before it was done."""
    troubles: tuple[str, ...]
    """What could not be converted; a sentence each."""


def run(
    options: RunOptions,
    reporter: Reporter,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
    chance: Chance | None = None,
) -> RunEnd:
    """Convert what is eligible, once or until it is stopped. SIGTERM and Ctrl-C end it cleanly.

    Raises BrokersUnavailable, RequestRefused, PipelineFailed: all of them with a sentence.
    """
    clock, ids, chance = clock or SystemClock(), ids or SystemIds(), chance or SystemChance()
    claimant = f"spark:{socket.gethostname()}:{os.getpid()}:{ids.uuid()}"
    with TieringClient(options.bootstrap, timeout_s=options.broker_seconds) as client:
        cluster = client.describe()
        reporter.say("connected", f"Connected to cluster {cluster.cluster_id}.", cluster_id=cluster.cluster_id)
        if options.topics:  # a name that is wrong is refused before Spark is started
            client.list_triggers(ListTriggers(topics=options.topics))
        with open_session(options.spark) as session:
            context = session.sparkContext
            stores = StoreSettings({**cluster.store_settings, **options.properties}, cluster.cluster_id)
            check_executors(context, stores, options.spark, must_have_stores=not options.is_following)
            _say_started(reporter, context)
            threads = DaemonThreads()
            world = RunWorld(
                client=client,
                jobs=SparkJobs(context, threads, clock, reporter),
                threads=threads,
                claimant=claimant,
                topics=options.topics,
                settings=cluster.pipeline,
                stores=stores,
                clock=clock,
                reporter=reporter,
                holds=Holds(claimant),
                troubles=Troubles(clock),
            )
            return asyncio.run(_run(world, options, chance))


async def _run(world: RunWorld, options: RunOptions, chance: Chance) -> RunEnd:
    started = world.clock.monotonic()
    work = asyncio.create_task(follow(world, chance) if options.is_following else run_once(world))
    was_stopped = False

    def stop() -> None:
        nonlocal was_stopped
        was_stopped = True
        world.threads.submit(world.client.close)  # threads that wait for a broker give up
        work.cancel()
        _listen(None)  # a second signal ends the process at once

    _listen(stop)
    try:
        await asyncio.wait([work])
        if work.cancelled() or was_stopped:
            was_stopped = True
        else:
            work.result()
    finally:
        _listen(None)
        await world.call(_give_back, world, options.bootstrap)
    world.tally.seconds = world.clock.monotonic() - started
    return RunEnd(tally=world.tally, was_stopped=was_stopped, troubles=tuple(world.troubles.sentences()))


def _listen(stop: Callable[[], None] | None) -> None:
    """Call `stop` at SIGTERM and SIGINT; None: as before. Only a program's main thread can."""
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        if stop is not None:
            loop.add_signal_handler(number, stop)
        else:
            loop.remove_signal_handler(number)


def _give_back(world: RunWorld, bootstrap: str) -> None:
    if world.holds:
        with TieringClient(bootstrap, timeout_s=_GIVE_BACK_SECONDS) as client:
            world.holds.give_back(client)


def _say_started(reporter: Reporter, context: SparkContext) -> None:
    page = context.uiWebUrl
    reporter.say(
        "spark-started",
        f"Spark {context.version} runs on {context.master} with {context.defaultParallelism} cores"
        + (f"; its page is {page}." if page else "."),
        master=context.master,
        spark_version=context.version,
        ui=page,
    )
