"""Pauses of writes as the benchmark of a cluster counts them, and the plan of what causes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.cluster.__main__ import main
from bench.cluster.faults import CONTROLLER, LEADER, ROLLING, SUSPENDED, Plan
from bench.cluster.figures import cluster_figures
from bench.cluster.pauses import Outage, Pauses
from bench.cluster.runner import pause_figures
from bench.figures import FIGURES, WORKLOADS


def begun(*, at: float = 10.0, partitions: int = 2) -> Pauses:
    pauses = Pauses(partitions)
    for partition in range(partitions):
        pauses.acknowledge(partition, at)
    return pauses


def test_a_pause_is_the_longest_time_between_two_acknowledgements_of_one_partition() -> None:
    pauses = begun(at=10.0)
    pauses.begin()
    for partition, at in ((0, 10.5), (1, 10.1), (1, 12.1), (0, 10.6), (1, 12.2), (0, 12.2)):
        pauses.acknowledge(partition, at)
    outage = pauses.end("leader", 3, at=12.2)
    assert outage.seconds_by_partition == pytest.approx((1.6, 2.0))
    assert outage.seconds == pytest.approx(2.0)
    assert outage.unwritable == ()


def test_a_pause_that_began_before_the_event_counts_whole_and_one_that_ended_before_does_not_count() -> None:
    pauses = begun(at=10.0)
    for partition in (0, 1):
        pauses.acknowledge(partition, 15.0)
    pauses.begin()
    pauses.acknowledge(0, 15.1)
    pauses.acknowledge(1, 18.0)
    assert pauses.end("leader", 1, at=18.0).seconds_by_partition == pytest.approx((2.9, 3.0))


def test_what_acknowledges_nothing_more_is_a_pause_until_the_end_and_is_named() -> None:
    pauses = begun(at=10.0)
    pauses.begin()
    pauses.acknowledge(0, 11.0)
    outage = pauses.end("leader", 1, at=30.0)
    assert outage.seconds_by_partition == pytest.approx((19.0, 20.0))
    assert outage.unwritable == (1,)


def test_each_event_has_its_own_pauses_and_errors() -> None:
    pauses = begun(at=10.0)
    pauses.begin()
    pauses.fail("NOT_ENOUGH_REPLICAS")
    for partition in (0, 1):
        pauses.acknowledge(partition, 20.0)
    first = pauses.end("leader", 1, at=20.0)
    pauses.begin()
    for partition in (0, 1):
        pauses.acknowledge(partition, 20.5)
    second = pauses.end("leader", 2, at=20.5)
    assert (first.errors, second.errors) == ({"NOT_ENOUGH_REPLICAS": 1}, {})
    assert (first.seconds, second.seconds) == (10.0, 0.5)
    assert pauses.errors == {"NOT_ENOUGH_REPLICAS": 1}
    assert pauses.acknowledged == [3, 3]


def test_every_partition_has_to_be_written_to_before_an_event_and_again_after_it() -> None:
    pauses = Pauses(2)
    pauses.acknowledge(0, 1.0)
    assert not pauses.has_begun
    with pytest.raises(ValueError, match="has no beginning"):
        pauses.begin()
    pauses.acknowledge(1, 1.0)
    pauses.begin()
    pauses.acknowledge(0, 5.0)
    assert not pauses.is_written_since(4.0)
    pauses.acknowledge(1, 4.0)
    assert pauses.is_written_since(4.0)


def plan(*, kills: int, controller_kills: int, suspensions: int = 0, rollings: int = 0) -> Plan:
    return Plan(
        topic="pauses",
        partitions=6,
        kills=kills,
        controller_kills=controller_kills,
        suspensions=suspensions,
        rollings=rollings,
        away_seconds=30.0,
        least_away_seconds=3.0,
        suspended_seconds=30.0,
    )


@pytest.mark.parametrize(("kills", "controller_kills"), [(50, 15), (20, 6), (2, 1), (3, 3), (5, 0), (0, 0)])
def test_a_plan_kills_as_often_as_it_was_told_the_controller_among_them(kills: int, controller_kills: int) -> None:
    kinds = [*plan(kills=kills, controller_kills=controller_kills).kinds()]
    assert (kinds.count(CONTROLLER), kinds.count(LEADER)) == (controller_kills, kills - controller_kills)


def test_kills_of_the_controller_are_spread_among_the_others() -> None:
    kinds = [*plan(kills=50, controller_kills=15, suspensions=2, rollings=1).kinds()]
    assert kinds[-3:] == [SUSPENDED, SUSPENDED, ROLLING]
    for first in range(0, 40, 10):
        assert kinds[first : first + 10].count(CONTROLLER) == 3


def outage(kind: str, *seconds: float, errors: int = 0) -> Outage:
    return Outage(kind=kind, node_id=1, seconds_by_partition=seconds, errors={"_MSG_TIMED_OUT": errors})


def test_figures_of_pauses_are_the_longest_and_the_median_by_kind_and_of_all_kills() -> None:
    outages = [outage(LEADER, 0.5, 1.0), outage(LEADER, 3.0), outage(CONTROLLER, 2.0), outage(ROLLING, 0.2, errors=2)]
    assert pause_figures(outages, writer="client") == {
        "cluster.pause.kill.longest": 3.0,
        "cluster.pause.kill.median": 2.0,
        "cluster.pause.leader.longest": 3.0,
        "cluster.pause.leader.median": 2.0,
        "cluster.pause.controller.longest": 2.0,
        "cluster.pause.controller.median": 2.0,
        "cluster.pause.rolling.longest": 0.2,
        "cluster.pause.rolling.median": 0.2,
        "cluster.pause.given_up": 2.0,
    }
    assert "cluster.pause.given_up" not in pause_figures(outages, writer="bare")
    assert pause_figures([], writer="client") == {}


def test_every_figure_of_a_cluster_is_in_the_table_and_its_workloads_are_those_of_the_benchmark() -> None:
    names = [figure.name for figure in cluster_figures()]
    assert len({*names}) == len(names)
    assert {*names} <= {*FIGURES}
    titles = {f"cluster.produce.{workload.name}": workload.title for workload in WORKLOADS}
    produced = [figure for figure in cluster_figures() if figure.name.startswith("cluster.produce.")]
    assert [titles[figure.name] for figure in produced] == [figure.title for figure in produced]
    measured = pause_figures([outage(kind, 1.0) for kind in (LEADER, CONTROLLER, SUSPENDED, ROLLING)], writer="client")
    assert {*measured} == {name for name in names if name.startswith("cluster.pause.")}


def test_a_page_takes_no_figures_of_a_run_whose_titles_would_be_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--page", "docs/reliability.md", "--many", "100"])
    assert "--page is for figures to keep, not for a run with --many" in capsys.readouterr().err


def test_offline_nothing_is_fetched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--systems", "kafka", "--offline", "--cache", str(tmp_path)]) == 2
    assert "Without kafka: " in capsys.readouterr().out
    assert [*tmp_path.iterdir()] == []
