"""Which broker a fault of the cluster benchmark hits, and that every broker is brought back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from bench.cluster import faults
from bench.cluster.faults import CONTROLLER, LEADER, ROLLING, SUSPENDED, Faults, Plan
from bench.cluster.nodes import Cluster, ClusterFailed
from bench.cluster.pauses import Outage
from bench.cluster.recording import Writer
from bench.cluster.view import Shown
from bench.process import ServerProcess

CONTROLLER_ID = 2


class DoneTo:
    """A broker that notes what is done to it, with the process that it does not have."""

    def __init__(self, node_id: int, cluster: Noted) -> None:
        self.node_id, self._cluster = node_id, cluster
        self.data_dir = Path()
        self.bootstrap = "127.0.0.1:1"

    @property
    def process(self) -> ServerProcess:
        raise AssertionError("this broker has no process")

    def start(self, *, led_partitions: int = 0) -> float:
        self._cluster.note("start", self.node_id)
        return 0.0

    def stop(self) -> float:
        self._cluster.note("stop", self.node_id)
        return 0.0


class Noted(Cluster):
    """Three brokers, each the leader of some partitions. After each fault every partition is written to again."""

    def __init__(self, writer: Restless, leaders: Sequence[int]) -> None:
        super().__init__("noted", {node_id: DoneTo(node_id, self) for node_id in (1, 2, 3)}, replicas=3)
        self.done: list[tuple[str, int]] = []
        self._leaders, self._writer = leaders, writer

    def note(self, what: str, node_id: int) -> None:
        self.done.append((what, node_id))
        self._writer.write_all()

    def controller(self) -> int:
        return CONTROLLER_ID

    def topic(self, name: str, node_id: int) -> list[Shown]:
        return [Shown(leader=one, leader_epoch=0, replicas=(1, 2, 3), in_sync=(1, 2, 3)) for one in self._leaders]

    def kill(self, node_id: int) -> None:
        self.note("kill", node_id)

    def suspend(self, node_id: int) -> None:
        self.note("suspend", node_id)

    def resume(self, node_id: int) -> None:
        self.note("resume", node_id)

    def wait_alive(self) -> None:
        pass

    def wait_whole(self, topics: Mapping[str, int]) -> None:
        pass

    def prefer(self, topic: str) -> None:
        self.note("prefer", 0)


class Restless(Writer):
    """A writer without a thread: each look at it comes after more records."""

    def __init__(self, partitions: int) -> None:
        super().__init__(partitions)
        self.partitions = partitions

    def write_all(self) -> None:
        for number in range(self.partitions):
            self.recording.acknowledge(number)

    def check(self) -> None:
        self.write_all()

    def _work(self) -> None:
        pass

    def _ask_to_stop(self) -> None:
        pass


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    def revive(cluster: Noted, node_id: int) -> None:
        cluster.note("revive", node_id)

    monkeypatch.setattr(faults, "_CALM_SECONDS", 0.0)
    monkeypatch.setattr(faults, "revive", revive)


def plan(
    kills: int = 0,
    controller_kills: int = 0,
    suspensions: int = 0,
    rollings: int = 0,
    suspended_seconds: float = 0.0,
) -> Plan:
    return Plan(
        topic="pauses",
        partitions=3,
        kills=kills,
        controller_kills=controller_kills,
        suspensions=suspensions,
        rollings=rollings,
        away_seconds=0.0,
        least_away_seconds=0.0,
        suspended_seconds=suspended_seconds,
    )


def played(wanted: Plan, leaders: Sequence[int] = (1, 2, 3), say: Callable[[Outage], None] = lambda _: None) -> Noted:
    writer = Restless(3)
    cluster = Noted(writer, leaders)
    Faults(cluster, writer, wanted).run(say)
    return cluster


def test_leaders_are_killed_in_turn_and_the_controller_only_when_it_is_meant() -> None:
    heard: list[Outage] = []
    cluster = played(plan(kills=4, controller_kills=1), say=heard.append)
    killed = [node_id for what, node_id in cluster.done if what == "kill"]
    by_kind = [(outage.kind, outage.node_id) for outage in heard]
    assert [node_id for _, node_id in by_kind] == killed
    assert [node_id for kind, node_id in by_kind if kind == CONTROLLER] == [CONTROLLER_ID]
    assert [node_id for kind, node_id in by_kind if kind == LEADER] == [3, 1, 3]
    assert [node_id for what, node_id in cluster.done if what == "revive"] == killed


def test_leaders_are_spread_before_each_event() -> None:
    done = [what for what, _ in played(plan(kills=2)).done]
    assert done == ["prefer", "kill", "revive"] * 2


def test_a_leader_that_is_suspended_goes_on_and_is_not_the_controller() -> None:
    heard: list[Outage] = []
    assert played(plan(suspensions=1), say=heard.append).done[1:] == [("suspend", 3), ("resume", 3), ("revive", 3)]
    assert [outage.kind for outage in heard] == [SUSPENDED]


def test_a_leader_goes_on_when_the_run_fails_meanwhile() -> None:
    writer = Restless(3)
    cluster = Noted(writer, (1, 2, 3))
    with pytest.raises(ValueError, match="sleep"):
        Faults(cluster, writer, plan(suspensions=1, suspended_seconds=-1.0)).run(lambda _: None)
    assert cluster.done[1:] == [("suspend", 3), ("resume", 3)]


def test_all_brokers_are_restarted_in_turn_the_controllers_last() -> None:
    heard: list[Outage] = []
    done = played(plan(rollings=1), say=heard.append).done[1:]
    assert done == [(what, node_id) for node_id in (1, 3, CONTROLLER_ID) for what in ("stop", "start")]
    assert [outage.kind for outage in heard] == [ROLLING]


def test_a_cluster_whose_controller_leads_everything_has_no_leader_to_kill() -> None:
    with pytest.raises(ClusterFailed, match="add partitions"):
        played(plan(kills=1), leaders=(CONTROLLER_ID,) * 3)
