"""Which faults happen, by seed, and how each is done."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from tests.broker import BrokerProcess
from tests.clients.two_brokers import BrokerCluster
from tests.postgres import Postgres

from chaos.history import Fault, Trouble
from chaos.stage import Stage

START_SECONDS = 180.0
"""How long a broker may take to come back: the machine may be busy."""

BOTH = ("SIGKILL together", "SIGSTOP together")
KINDS = (
    "SIGKILL",
    "SIGSTOP",
    "restart",
    *BOTH,
    "database restart",
    "database SIGKILL",
    "database SIGSTOP",
)


@dataclass(frozen=True, slots=True)
class Planned:
    """A fault to come: what, to which broker, for how long, and how long everything is left alone afterwards."""

    kind: str
    node: int
    seconds: float
    calm: float

    @property
    def target(self) -> str:
        if self.kind.startswith("database"):
            return "PostgreSQL"
        return "brokers 1 and 2" if self.kind in BOTH else f"broker {self.node}"


def plan(seed: int) -> Iterator[Planned]:
    """Faults without end: each kind once in every round, in an order by chance. Half of them outlast a session."""
    dice = random.Random(f"faults {seed}")
    while True:
        for kind in dice.sample(KINDS, len(KINDS)):
            seconds = dice.choice((dice.uniform(0.2, 2.0), dice.uniform(5.0, 9.0)))
            yield Planned(kind, dice.choice((1, 2)), round(seconds, 2), round(dice.uniform(1.0, 8.0), 2))


class FaultMaker:
    """Carries out a plan until the run is over, and leaves everything running."""

    def __init__(self, stage: Stage, cluster: BrokerCluster, database: Postgres) -> None:
        self._stage, self._cluster, self._database = stage, cluster, database
        self._done: Mapping[str, Callable[[Planned], None]] = {
            "SIGKILL": lambda one: self._kill(one, self._cluster.brokers[one.node]),
            "SIGSTOP": lambda one: self._suspend(one, self._cluster.brokers[one.node]),
            "restart": self._restart,
            "SIGKILL together": lambda one: self._kill(one, *self._cluster.brokers.values()),
            "SIGSTOP together": lambda one: self._suspend(one, *self._cluster.brokers.values()),
            "database restart": partial(self._end_database, self._database.stop),
            "database SIGKILL": partial(self._end_database, self._database.kill),
            "database SIGSTOP": self._suspend_database,
        }

    def work(self) -> None:
        """Fault after fault. Sees to brokers that ended by themselves: that must not be, and the run goes on."""
        for one in plan(self._stage.seed):
            if self._stage.stop.wait(one.calm):
                break
            self._stage.recorder.write(Fault(at=self._stage.now, kind=one.kind, target=one.target, seconds=one.seconds))
            self._done[one.kind](one)
            self._see_to_brokers()

    def revive(self) -> None:
        """Have both brokers alive."""
        self._see_to_brokers()
        self._cluster.wait_alive(*self._cluster.brokers)

    def _see_to_brokers(self) -> None:
        for node_id, broker in self._cluster.brokers.items():
            if not broker.is_running:
                text = f"after {self._stage.recorder.last_fault}:\n{broker.log_text[-2000:]}"
                self._stage.recorder.write(
                    Trouble(at=self._stage.now, what=f"broker {node_id} ended by itself", text=text)
                )
                broker.start(within=START_SECONDS)

    def _kill(self, one: Planned, *brokers: BrokerProcess) -> None:
        for broker in brokers:
            broker.kill()
        time.sleep(one.seconds)
        for broker in brokers:
            broker.spawn()
        for broker in brokers:
            broker.wait_accepting(within=START_SECONDS)

    def _suspend(self, one: Planned, *brokers: BrokerProcess) -> None:
        if not brokers:
            time.sleep(one.seconds)
            return
        with brokers[0].suspended():
            self._suspend(one, *brokers[1:])

    def _restart(self, one: Planned) -> None:
        broker = self._cluster.brokers[one.node]
        broker.stop(within=START_SECONDS)
        time.sleep(one.seconds)
        broker.start(within=START_SECONDS)

    def _end_database(self, how: Callable[[], Coroutine[None, None, None]], one: Planned) -> None:
        asyncio.run(how())
        time.sleep(one.seconds)
        asyncio.run(self._database.start())

    def _suspend_database(self, one: Planned) -> None:
        with self._database.paused():
            time.sleep(one.seconds)
