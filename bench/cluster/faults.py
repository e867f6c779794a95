"""Pauses of writes: a broker dies, is suspended, or is restarted, while a writer goes on.

One event after the other, each from the same state: all brokers alive, all replicas in sync, each partition led by the
first of its replicas. An event lasts from the fault until that state is there again, so that it holds what the return
of a broker costs, too. Spreading the leaders between two events is no part of any.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from bench.cluster.nodes import Cluster, ClusterFailed, revive
from bench.cluster.pauses import Outage
from bench.cluster.recording import Writer

LEADER: Final = "leader"
CONTROLLER: Final = "controller"
SUSPENDED: Final = "suspended"
ROLLING: Final = "rolling"
KINDS: Final = (LEADER, CONTROLLER, SUSPENDED, ROLLING)
_STEP_SECONDS: Final = 0.01
_CALM_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How often each is done, to which topic, and how long a broker stays away."""

    topic: str
    partitions: int
    kills: int
    controller_kills: int
    suspensions: int
    rollings: int
    away_seconds: float
    """A broker that was killed comes back when every partition is written to again, or after this time."""
    least_away_seconds: float
    """It stays away for so long at least: a cluster has to notice, even if nothing is led by that broker."""
    suspended_seconds: float

    def kinds(self) -> Iterator[str]:
        """Kills of the controller are spread among the others."""
        for number in range(self.kills):
            is_controller = (number + 1) * self.controller_kills // self.kills > (
                number * self.controller_kills // self.kills
            )
            yield CONTROLLER if is_controller else LEADER
        yield from [SUSPENDED] * self.suspensions
        yield from [ROLLING] * self.rollings


class Faults:
    """Carries out a plan on one cluster."""

    def __init__(self, cluster: Cluster, writer: Writer, plan: Plan) -> None:
        self._cluster, self._writer, self._plan = cluster, writer, plan
        self._turn = 0

    def run(self, say: Callable[[Outage], None]) -> list[Outage]:
        """Every event of the plan; `say` is told of each."""
        outages = []
        done = {
            LEADER: lambda: self._kill(LEADER, self._leader()),
            CONTROLLER: lambda: self._kill(CONTROLLER, self._cluster.controller()),
            SUSPENDED: lambda: self._suspend(self._leader()),
            ROLLING: self._restart_all,
        }
        for kind in self._plan.kinds():
            self._writer.check()
            self._settle()
            outage = done[kind]()
            outages.append(outage)
            say(outage)
        return outages

    def _leader(self) -> int:
        """A broker that leads partitions and is not the controller, another one each time."""
        controller = self._cluster.controller()
        leading = {one.leader for one in self._cluster.topic(self._plan.topic, controller)} - {controller}
        if not leading:
            raise ClusterFailed(f"Only the controller's broker leads partitions of {self._plan.topic}: add partitions.")
        self._turn += 1
        return sorted(leading)[self._turn % len(leading)]

    def _kill(self, kind: str, node_id: int) -> Outage:
        began = self._writer.recording.begin()
        self._cluster.kill(node_id)
        self._wait_written(began)
        revive(self._cluster, node_id)
        return self._end(kind, node_id)

    def _suspend(self, node_id: int) -> Outage:
        self._writer.recording.begin()
        self._cluster.suspend(node_id)
        try:
            time.sleep(self._plan.suspended_seconds)
        finally:
            self._cluster.resume(node_id)
        revive(self._cluster, node_id)
        return self._end(SUSPENDED, node_id)

    def _restart_all(self) -> Outage:
        """Each broker in turn, cleanly, the controller's last; the next one when all replicas are in sync again."""
        controller = self._cluster.controller()
        order = [*(node_id for node_id in self._cluster.brokers if node_id != controller), controller]
        self._writer.recording.begin()
        for node_id in order:
            self._cluster.brokers[node_id].stop()
            self._cluster.brokers[node_id].start()
            self._cluster.wait_alive()
            self._wait_whole()
        return self._end(ROLLING, controller)

    def _wait_written(self, began: float) -> None:
        """Until every partition was written to well after the fault, or it has taken too long."""
        earliest = began + self._plan.least_away_seconds
        latest = began + max(self._plan.away_seconds, self._plan.least_away_seconds)
        while time.monotonic() < latest:
            if time.monotonic() >= earliest and self._writer.recording.is_written_since(earliest):
                return
            time.sleep(_STEP_SECONDS)

    def _end(self, kind: str, node_id: int) -> Outage:
        self._wait_whole()
        came_back = time.monotonic()
        while not self._writer.recording.is_written_since(came_back):
            if time.monotonic() - came_back > self._plan.away_seconds:
                break  # it counts as unwritable
            time.sleep(_STEP_SECONDS)
        return self._writer.recording.end(kind, node_id)

    def _wait_whole(self) -> None:
        self._cluster.wait_whole({self._plan.topic: self._plan.partitions})

    def _settle(self) -> None:
        self._wait_whole()
        self._cluster.prefer(self._plan.topic)
        time.sleep(_CALM_SECONDS)


def missing_records(writer: Writer, ends: Sequence[int]) -> int:
    """Acknowledged records that are not there, by the ends of the partitions. More may be there: a repeated one."""
    return sum(max(0, told - end) for told, end in zip(writer.recording.acknowledged, ends, strict=True))
