"""One run: a cluster, clients, faults, the end; what is started is stopped, whatever happens."""

from __future__ import annotations

import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial

from tests.postgres import Postgres

from chaos import isolation, sharing
from chaos.ending import conclude
from chaos.field import START_SECONDS, Field, opened
from chaos.history import Run, Trouble
from chaos.maker import FaultMaker
from chaos.plan import rounds
from chaos.processes import Keeper
from chaos.recorder import Recorder
from chaos.stage import PARTITIONS, Stage
from chaos.switching import SWITCHED, switch
from chaos.values import REPLICATED, copy_topic, list_topic
from chaos.wanted import GROUPS, TIERS, Wanted

CLIENT_SECONDS = 180.0
"""How long clients may take to finish what they are doing: each of their calls has an end of its own."""
_KILL_SECONDS = 5.0
_PROGRESS_SECONDS = 10.0


def run(wanted: Wanted, say: Callable[[str], None]) -> None:
    """Run until the time is over, and write the history. Raises AssertionError if brokers do not come back."""
    kinds = wanted.kinds
    if wanted.is_isolated:
        isolation.enter()
    wanted.directory.mkdir(parents=True, exist_ok=True)
    database = Postgres()
    try:
        with (
            wanted.history.open("w", encoding="utf-8") as output,
            opened(wanted.directory, database, wanted.nodes, wanted.settings, is_isolated=wanted.is_isolated) as there,
        ):
            stage = Stage(there.cluster.bootstrap, wanted.tiers, wanted.seed, Recorder(output))
            stage.recorder.write(
                Run(
                    seed=wanted.seed,
                    seconds=wanted.seconds,
                    tiers=[*wanted.tiers],
                    brokers=wanted.brokers,
                    replicas=wanted.replicas,
                )
            )
            _create_topics(there, wanted)
            groups = [group for work, group in GROUPS.items() if wanted.clients.get(work)]
            _play(stage, there, FaultMaker(stage, there, rounds(wanted.seed, wanted.nodes, kinds), groups), wanted, say)
    finally:
        database.remove()


def _create_topics(there: Field, wanted: Wanted) -> None:
    for tier in wanted.tiers:
        config, replicas = TIERS[tier], 1
        if tier == REPLICATED:
            config, replicas = {**config, "min.insync.replicas": str(wanted.min_in_sync)}, wanted.replicas
        for name in (list_topic(tier), copy_topic(tier)):
            there.cluster.create(name, partitions=PARTITIONS, via=1, config=config, replicas=replicas)
    with there.cluster.connect(1) as client:
        sharing.prepare_group(client)
    there.cluster.close_admins()


def _play(stage: Stage, there: Field, faults: FaultMaker, wanted: Wanted, say: Callable[[str], None]) -> None:
    clients: list[threading.Thread] = []
    abandon = threading.Event()
    maker = stage.start("faults", faults.work)
    try:
        try:
            for work, count in wanted.clients.items():
                for number in range(1, count + 1):
                    name = f"{work}-{number}"
                    keeper = Keeper(stage=stage, work=work, name=name, abandon=abandon, stop=stage.stop)
                    clients.append(stage.start(name, keeper.keep))
            if SWITCHED in stage.tiers:
                clients.append(stage.start("switch", partial(switch, stage, there.cluster, after=wanted.seconds / 3)))
            _wait_for_end(stage, wanted.seconds, say)
        except BaseException:
            stage.stop.set()
            raise
        finally:
            # Also on Ctrl-C: a process that is suspended goes on before it is told to stop.
            faults.stop.set()
            maker.join(2 * START_SECONDS)
        say("no more faults; everything has to go on")
        faults.settle()
        stage.stop.set()
        say("clients finish what they are doing")
        _wait_for_clients(stage, clients, abandon)
        say("reading everything")
        conclude(stage, there, has_share_group="share-member" in wanted.clients)
    except (AssertionError, OSError, subprocess.TimeoutExpired):
        # Brokers that do not come back or do not answer are a verdict, not a run that could not be made.
        stage.recorder.write(Trouble(at=stage.now, what="the run has no end", text=traceback.format_exc()))
    finally:
        stage.stop.set()
        _kill(clients, abandon)


def _kill(clients: Sequence[threading.Thread], abandon: threading.Event) -> None:
    """End the processes of clients that are left."""
    abandon.set()
    for thread in clients:
        thread.join(_KILL_SECONDS)


def _wait_for_clients(stage: Stage, clients: Sequence[threading.Thread], abandon: threading.Event) -> None:
    deadline = time.monotonic() + CLIENT_SECONDS
    for thread in clients:
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            text = f"{CLIENT_SECONDS:g} s after the last fault"
            stage.recorder.write(Trouble(at=stage.now, what=f"{thread.name} does not finish", text=text))
    _kill(clients, abandon)


def _wait_for_end(stage: Stage, seconds: float, say: Callable[[str], None]) -> None:
    while (left := seconds - stage.now) > 0:
        stage.stop.wait(min(_PROGRESS_SECONDS, left))
        stage.recorder.flush()
        say(f"{stage.now:6.0f} s: {stage.recorder.progress()}")
