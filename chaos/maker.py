"""Carries out the plan of faults, waits after each round until everything goes on, and leaves everything running."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from chaos.faults import Deed, deed_of
from chaos.field import START_SECONDS, Field
from chaos.history import Calm, Fault, Trouble, Undone
from chaos.plan import Planned
from chaos.stage import Stage
from chaos.values import Place

STUCK_SECONDS: Final = 60.0
"""How long a partition or a group may do nothing when all faults are over.

A transaction whose client was killed holds readers back for a third of that, and a dead member its group for a sixth.
"""
_STEP_SECONDS: Final = 0.2


class FaultMaker:
    """Does the faults of a run, one after the other."""

    def __init__(
        self,
        stage: Stage,
        field: Field,
        plan: Iterable[Sequence[Planned]],
        groups: Sequence[str],
        deed_of: Callable[[str], Deed] = deed_of,
    ) -> None:
        self._stage, self._field, self._plan, self._groups, self._deed_of = stage, field, plan, groups, deed_of
        self.stop = threading.Event()

    def work(self) -> None:
        """Fault after fault, until it is told to stop."""
        for faults in self._plan:
            for one in faults:
                if self.stop.wait(one.calm):
                    return
                self._do(one)
            self.settle()

    def settle(self) -> None:
        """Have all brokers alive and all replicas in sync, and see to it that everything goes on."""
        self._see_to_brokers()
        self._field.wait_healthy()
        stage = self._stage
        begin = stage.now
        awaited: list[Place | str] = [*stage.places, *self._groups]
        while any(stage.recorder.heard.get(one, -1.0) < begin for one in awaited):
            if stage.now > begin + STUCK_SECONDS:
                break  # the judge sees what is missing
            if stage.stop.wait(_STEP_SECONDS):
                return
        stage.recorder.write(Calm(at=begin, until=stage.now, places=stage.places, groups=[*self._groups]))

    def _do(self, one: Planned) -> None:
        node = self._node_of(one)
        at = self._stage.now
        self._stage.recorder.write(Fault(at=at, kind=one.kind, target=one.target(node), seconds=one.seconds))
        with self._deed_of(one.kind)(self._field, one, node):
            self.stop.wait(one.seconds)
        self._see_to_brokers()
        self._stage.recorder.write(Undone(at=self._stage.now, kind=one.kind))

    def _node_of(self, one: Planned) -> int:
        """The broker that is meant; another one if none of them can say."""
        if "leader" in one.kind:
            places = self._stage.places
            return self._field.leader_of(places[one.place % len(places)]) or one.node
        if one.kind.endswith("controller"):
            return self._field.controller() or one.node
        return one.node

    def _see_to_brokers(self) -> None:
        """A broker that has ended by itself must not be, and the run goes on."""
        for node_id, broker in self._field.cluster.brokers.items():
            if not broker.is_running:
                text = f"after {self._stage.recorder.last_fault}:\n{broker.log_text[-2000:]}"
                self._stage.recorder.write(
                    Trouble(at=self._stage.now, what=f"broker {node_id} ended by itself", text=text)
                )
                broker.start(within=START_SECONDS)
