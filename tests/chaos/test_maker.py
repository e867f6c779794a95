"""Faults are done as planned, to those whom they are meant for, and everything has to go on after each round."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

from chaos.faults import Deed
from chaos.field import Field
from chaos.history import Append, Attempt, Calm, Delivery, Event, Fault, Outcome, Promise, Trouble, Undone, from_line
from chaos.maker import FaultMaker
from chaos.plan import Planned
from chaos.recorder import Recorder
from chaos.stage import Stage
from chaos.values import Place


@dataclass
class ScriptedBroker:
    """One that runs, or has ended."""

    is_running: bool = True
    log_text: str = "the end of its log"

    def start(self, *, within: float) -> None:
        assert within > 0
        self.is_running = True


@dataclass
class ScriptedCluster:
    brokers: dict[int, ScriptedBroker]


@dataclass
class ScriptedField:
    """Broker 3 leads everything, and broker 2 is the controller."""

    cluster: ScriptedCluster = field(
        default_factory=lambda: ScriptedCluster({node: ScriptedBroker() for node in (1, 2, 3)})
    )
    leader: int | None = 3
    waited: int = 0
    done: list[tuple[str, int]] = field(default_factory=list)
    ends: int | None = None
    """The broker that ends by itself in each fault."""

    def leader_of(self, _: Place) -> int | None:
        return self.leader

    def controller(self) -> int | None:
        return 2

    def wait_healthy(self) -> None:
        assert all(broker.is_running for broker in self.cluster.brokers.values())
        self.waited += 1

    def deed_of(self, kind: str) -> Deed:
        @contextmanager
        def deed(_: Field, planned: Planned, node: int) -> Iterator[None]:
            assert planned.kind == kind
            self.done.append((kind, node))
            if self.ends is not None:
                self.cluster.brokers[self.ends].is_running = False
            yield

        return deed


def planned(kind: str) -> Planned:
    return Planned(kind=kind, node=1, other=2, place=0, seconds=0.0, calm=0.0)


def history_of(there: ScriptedField, rounds: Sequence[Sequence[Planned]], *, at: float = 100.0) -> list[Event]:
    """The run of a maker whose clients have done all that is awaited at a time."""
    output = io.StringIO()
    stage = Stage("nowhere:1", ["classic"], 1, Recorder(output))
    appends = [Append(topic=topic, partition=number, value="plain-1/1") for topic, number in stage.places]
    stage.recorder.write(
        Attempt(at=at, writer="plain-1", promise=Promise.PLAIN, outcome=Outcome.COMMITTED, appends=appends),
        Delivery(at=at, group="g", member="m", topic="list-classic", partition=0, records=[]),
    )
    FaultMaker(stage, cast(Field, there), rounds, ["g"], there.deed_of).work()
    return [from_line(line) for line in output.getvalue().splitlines()][2:]


def test_each_fault_hits_whom_it_is_meant_for() -> None:
    there = ScriptedField()
    kinds = ["SIGKILL", "SIGKILL leader", "SIGSTOP controller", "SIGKILL together", "link cut one way"]
    history = history_of(there, [[planned(kind) for kind in kinds]])
    assert there.done == [*zip(kinds, (1, 3, 2, 1, 1), strict=True)]
    targets = [one.target for one in history if isinstance(one, Fault)]
    assert targets == ["broker 1", "broker 3", "broker 2", "all brokers", "brokers 1 and 2"]


def test_a_leader_of_whom_no_broker_tells_is_the_broker_of_the_plan() -> None:
    there = ScriptedField(leader=None)
    history_of(there, [[planned("SIGSTOP leader")]])
    assert there.done == [("SIGSTOP leader", 1)]


def test_after_each_round_everything_has_to_go_on() -> None:
    there = ScriptedField()
    history = history_of(there, [[planned("SIGKILL")], [planned("SIGSTOP")]])
    assert [type(one) for one in history] == [Fault, Undone, Calm, Fault, Undone, Calm]
    assert there.waited == 2
    calm = history[-1]
    assert isinstance(calm, Calm)
    assert (calm.places, calm.groups) == ([("list-classic", number) for number in range(3)], ["g"])
    assert calm.at <= calm.until < 100.0  # it did not wait for more than what had come


def test_a_broker_that_ends_by_itself_is_trouble_and_is_started() -> None:
    there = ScriptedField(ends=2)
    trouble = [one for one in history_of(there, [[planned("SIGSTOP")]]) if isinstance(one, Trouble)]
    assert [one.what for one in trouble] == ["broker 2 ended by itself"]
    assert "after SIGSTOP of broker 1" in trouble[0].text
    assert "the end of its log" in trouble[0].text
    assert there.cluster.brokers[2].is_running
