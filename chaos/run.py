"""One run: a cluster, clients, faults, the end; what is started is stopped, whatever happens."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.clients.tiering import QUICK as TIERING_SETTINGS
from tests.clients.transactions import TRANSACTION_SETTINGS
from tests.clients.two_brokers import BrokerCluster, running_cluster
from tests.postgres import Postgres

from chaos.ending import conclude
from chaos.faults import START_SECONDS, FaultMaker
from chaos.history import Recorder, Run, Trouble
from chaos.processes import Keeper
from chaos.stage import PARTITIONS, Stage
from chaos.switching import HISTORY, SWITCHED, switch
from chaos.values import copy_topic, list_topic

TIERS: Mapping[str, Mapping[str, str]] = {
    "classic": {},
    "diskless": {"diskless.enable": "true"},
    SWITCHED: HISTORY,
}
CLIENTS: Mapping[str, int] = {"txn": 4, "idempotent": 2, "plain": 1, "reader": 2, "copy": 2, "observer": 1}
"""How many of each."""
CLIENT_SECONDS = 180.0
"""How long clients may take to finish what they are doing: each of their calls has an end of its own."""
_KILL_SECONDS = 5.0
_PROGRESS_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What was asked for."""

    seconds: float
    seed: int
    tiers: Sequence[str]
    directory: Path
    """Logs, objects and the history go there."""

    @property
    def history(self) -> Path:
        return self.directory / "history.jsonl"


def run(wanted: Wanted, say: Callable[[str], None]) -> None:
    """Run until the time is over, and write the history. Raises AssertionError if brokers do not come back."""
    wanted.directory.mkdir(parents=True, exist_ok=True)
    database = Postgres()
    try:
        stores = {
            "strandline.objects.url": f"file://{wanted.directory.resolve()}/objects",
            "rsm.config.url": f"file://{wanted.directory.resolve()}/remote",
        }
        settings = {**TIERING_SETTINGS, **TRANSACTION_SETTINGS, **stores}
        with (
            wanted.history.open("w", encoding="utf-8") as output,
            running_cluster(wanted.directory, database.new_database(), settings=settings) as cluster,
        ):
            stage = Stage(cluster.bootstrap, wanted.tiers, wanted.seed, Recorder(output))
            stage.recorder.write(Run(seed=wanted.seed, seconds=wanted.seconds, tiers=[*wanted.tiers]))
            _create_topics(cluster, wanted.tiers)
            _play(stage, cluster, FaultMaker(stage, cluster, database), wanted.seconds, say)
    finally:
        database.remove()


def _create_topics(cluster: BrokerCluster, tiers: Sequence[str]) -> None:
    for tier in tiers:
        for name in (list_topic(tier), copy_topic(tier)):
            cluster.create(name, partitions=PARTITIONS, via=1, config=TIERS[tier])
    cluster.close_admins()


def _play(stage: Stage, cluster: BrokerCluster, faults: FaultMaker, seconds: float, say: Callable[[str], None]) -> None:
    clients: list[threading.Thread] = []
    abandon = threading.Event()
    maker = stage.start("faults", faults.work)
    try:
        try:
            for work, count in CLIENTS.items():
                for number in range(1, count + 1):
                    name = f"{work}-{number}"
                    keeper = Keeper(stage=stage, work=work, name=name, abandon=abandon, stop=stage.stop)
                    clients.append(stage.start(name, keeper.keep))
            if SWITCHED in stage.tiers:
                clients.append(stage.start("switch", partial(switch, stage, cluster, after=seconds / 3)))
            _wait_for_end(stage, seconds, say)
        finally:
            # Also on Ctrl-C: a process that is suspended goes on before it is told to stop.
            stage.stop.set()
            maker.join(2 * START_SECONDS)
        say("no more faults; clients finish what they are doing")
        faults.revive()
        _wait_for_clients(stage, clients, abandon)
        say("reading everything")
        conclude(stage, cluster)
    except (AssertionError, OSError):
        # Brokers that do not come back or do not answer are a verdict, not a run that could not be made.
        stage.recorder.write(Trouble(at=stage.now, what="the run has no end", text=traceback.format_exc()))
    finally:
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
