"""What is shown of a cluster, and in which form."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from strandline.admin.commands.cluster.events import ClusterEvent
from strandline.admin.commands.cluster.plan import ClusterPlan, make_plan
from strandline.admin.commands.cluster.screens import JsonScreen, LineScreen, TableScreen, summary, table_of
from strandline.admin.commands.cluster.view import BrokerAnswer, ClusterAnswers, ClusterView, PartitionState, make_view
from strandline.testing.clock import VirtualClock

CLUSTER = make_plan(Path("/c"), brokers=3, racks="a,b", port=9092, http_port=9644, assignments={})
PIDS = {1: 101, 2: 102, 3: 103}
NOTHING = ClusterAnswers()


def partition(number: int, leader: int, in_sync: tuple[int, ...]) -> PartitionState:
    return PartitionState(name=f"t-{number}", leader=leader, replicas=(1, 2, 3), in_sync=in_sync)


def answers(**changes: BrokerAnswer | None) -> ClusterAnswers:
    """All three are up, but for those that are given as `b1` to `b3`."""
    given = {f"b{node}": BrokerAnswer(is_ready=True, uptime_s=10.0, controller=(4, 2)) for node in (1, 2, 3)} | changes
    return ClusterAnswers(
        brokers={int(name[1:]): answer for name, answer in given.items() if answer is not None},
        partitions=(partition(0, 1, (1, 2, 3)), partition(1, 2, (2, 3)), partition(2, -1, ())),
    )


def view_of(now: ClusterAnswers, *, pids: dict[int, int] = PIDS, before: ClusterAnswers = NOTHING) -> ClusterView:
    return make_view(CLUSTER.brokers, pids, now, before)


def states(view: ClusterView) -> list[str]:
    return [line.state for line in view.brokers]


def test_racks_and_ports_are_given_in_turn_and_three_brokers_replicate() -> None:
    assert [(one.node_id, one.rack, one.port, one.http_port) for one in CLUSTER.brokers] == [
        (1, "a", 9092, 9644),
        (2, "b", 9093, 9645),
        (3, "a", 9094, 9646),
    ]
    assert CLUSTER.bootstrap == "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094"
    assert (CLUSTER.settings["default.replication.factor"], CLUSTER.settings["min.insync.replicas"]) == ("3", "2")


@pytest.mark.parametrize(("brokers", "factor"), [(1, "1"), (2, "2"), (5, "3")])
def test_a_setting_of_the_user_wins_and_two_brokers_do_not_need_both_to_write(brokers: int, factor: str) -> None:
    def plan(**assignments: str) -> ClusterPlan:
        named = {name.replace("_", "."): value for name, value in assignments.items()}
        return make_plan(Path("/c"), brokers=brokers, racks="", port=9092, http_port=9644, assignments=named)

    assert plan().settings["default.replication.factor"] == factor
    assert plan().settings.get("min.insync.replicas") == ("2" if brokers > 2 else None)
    assert plan(default_replication_factor="1").settings["default.replication.factor"] == "1"


def test_partitions_are_counted_for_each_broker() -> None:
    view = view_of(answers())
    assert [(line.leaders, line.in_sync, line.replicas) for line in view.brokers] == [(1, 1, 3), (1, 2, 3), (0, 2, 3)]
    assert (view.partitions, view.under_replicated, view.leaderless) == (3, 2, ("t-2",))
    assert states(view) == ["up", "up", "up"]


def test_the_newest_controller_counts_and_it_knows_who_is_fenced() -> None:
    old = BrokerAnswer(is_ready=True, controller=(3, 1), fenced=frozenset({2}))
    new = BrokerAnswer(is_ready=True, controller=(4, 2), fenced=frozenset({3}))
    view = view_of(answers(b1=old, b2=new))
    assert view.controller == 2
    assert [line.is_controller for line in view.brokers] == [False, True, False]
    assert states(view) == ["up", "up", "fenced"]


def test_a_broker_that_has_ended_is_no_controller() -> None:
    assert view_of(answers(b2=None)).controller == 2, "it may only be slow"
    assert view_of(answers(b2=None), pids={1: 101, 3: 103}).controller == -1


def test_one_that_has_never_answered_starts_and_one_that_does_so_no_more_hangs() -> None:
    assert states(view_of(answers(b3=None))) == ["up", "up", "starting"]
    assert states(view_of(answers(b3=None), before=answers())) == ["up", "up", "no answer"]
    assert states(view_of(answers(b3=None), pids={1: 101, 2: 102}, before=answers())) == ["up", "up", "ended"]
    assert states(view_of(answers(), pids={})) == ["up", "up", "up"], "they were started by hand"
    unready, leaving = BrokerAnswer(is_ready=False), BrokerAnswer(is_ready=False, is_stopping=True)
    assert states(view_of(answers(b2=unready, b3=leaving))) == ["up", "starting", "stopping"]


def test_rates_are_between_two_looks_at_the_same_process() -> None:
    def at(seconds: float, count: int) -> BrokerAnswer:
        return BrokerAnswer(is_ready=True, uptime_s=seconds, messages_in=count, bytes_in=10 * count, bytes_out=count)

    rated = view_of(answers(b1=at(12.0, 700)), before=answers(b1=at(10.0, 100)))
    assert (rated.messages_in, rated.bytes_in, rated.bytes_out) == (300.0, 3000.0, 300.0)
    restarted = view_of(answers(b1=at(1.0, 5)), before=answers(b1=at(10.0, 100)))
    assert restarted.messages_in == 0.0


def test_a_cluster_is_a_sentence_and_a_table() -> None:
    view = view_of(answers(b3=None), before=answers())
    assert summary(view) == (
        "2 of 3 brokers are up (3 no answer), broker 2 is the controller; 3 partitions, 1 leads 1, 2 leads 1, "
        "3 leads 0; 2 under-replicated, 1 without a leader (t-2); 0 records/s, 0 B/s in, 0 B/s out"
    )
    shown = drawn(view, width=140)
    assert "2 b 9093 9645 102 up, controller 1 2 of 3 0 0 B 0 B" in shown
    assert "3 a 9094 9646 103 no answer 0 2 of 3 0 0 B 0 B" in shown
    assert "1 without a leader (t-2)" in shown
    narrow = drawn(view, width=80)
    assert "2 b 9093 9645 102 up, controller 1 2 of 3 3 a" in narrow, "rates of each are left out"
    assert "…" not in narrow


def drawn(view: ClusterView, *, width: int) -> str:
    """The words of the table."""
    screen = Console(width=width, record=True, file=StringIO())
    screen.print(table_of(view, width=width))
    return " ".join(screen.export_text().split())


def test_without_an_answer_nothing_is_claimed_about_partitions(capsys: pytest.CaptureFixture[str]) -> None:
    view = view_of(NOTHING)
    assert "no controller is known; no broker says how the partitions are" in summary(view)
    JsonScreen().show(view)
    printed = json.loads(capsys.readouterr().out)
    assert (printed["partitions"], printed["under_replicated"], printed["leaderless"]) == (None, None, None)


async def test_lines_come_when_something_has_changed_and_now_and_then() -> None:
    clock, lines = VirtualClock(), list[str]()
    screen = LineScreen(clock, lines.append)
    screen.show(view_of(answers()))
    await clock.advance(1.0)
    faster = BrokerAnswer(is_ready=True, uptime_s=11.0, controller=(4, 2), bytes_in=10)
    screen.show(view_of(answers(b1=faster), before=answers()))
    assert len(lines) == 1, "only a rate has changed"
    screen.show(view_of(answers(b3=None)))
    assert len(lines) == 2
    await clock.advance(10.0)
    screen.show(view_of(answers(b3=None)))
    assert len(lines) == 3
    screen.tell(ClusterEvent(kind="broker_up", node_id=3, text="serves clients"))
    assert lines[3] == "broker 3: serves clients"


def test_a_terminal_shows_events_above_the_table(tmp_path: Path) -> None:
    with (tmp_path / "screen").open("w") as file:
        screen = TableScreen(Console(file=file, force_terminal=True, width=140))
        screen.show(view_of(answers()))
        screen.tell(ClusterEvent(kind="log", node_id=1, text="[not] markup"))
        screen.close()
        screen.close()
    shown = (tmp_path / "screen").read_text()
    assert "broker 1: [not] markup" in shown
    assert shown.rindex("records/s, 0 B/s in") > shown.rindex("markup")


def test_json_has_an_object_for_each_event(capsys: pytest.CaptureFixture[str]) -> None:
    screen = JsonScreen()
    screen.tell(ClusterEvent(kind="broker_ended", node_id=2, text="has stopped", details={"status": 0}))
    screen.tell(ClusterEvent(kind="ready", text="ready"))
    ended, ready = map(json.loads, capsys.readouterr().out.splitlines())
    assert ended == {"event": "broker_ended", "broker": 2, "text": "has stopped", "status": 0}
    assert ready == {"event": "ready", "text": "ready"}
