"""Faults come by seed, each kind in every round."""

from __future__ import annotations

from itertools import chain, islice
from pathlib import Path

import pytest
from chaos.faults import deed_of
from chaos.plan import DISKS, KINDS, NETWORK, Planned, kinds_for, rounds
from chaos.wanted import Wanted

NODES = (1, 2, 3)


def faults(seed: int, count: int) -> list[Planned]:
    return list(islice(chain.from_iterable(rounds(seed, NODES, KINDS)), count))


def test_a_seed_repeats_the_faults() -> None:
    assert faults(7, 200) == faults(7, 200)
    assert faults(7, 200) != faults(8, 200)


def test_each_round_has_one_of_each_kind() -> None:
    for seed in range(20):
        for one in islice(rounds(seed, NODES, KINDS), 3):
            assert sorted(fault.kind for fault in one) == sorted(KINDS)


def test_some_pauses_outlast_a_session_and_some_do_not() -> None:
    seconds = [one.seconds for one in faults(1, 100)]
    assert min(seconds) < 2.0
    assert max(seconds) > 5.0


def test_faults_hit_every_broker_and_links_have_two_ends() -> None:
    found = faults(3, 200)
    assert {one.node for one in found} == {*NODES}
    assert all(one.node != one.other for one in found)
    assert faults(3, 1)[0].node in NODES


def test_one_broker_alone_has_no_links_to_cut() -> None:
    (one,) = {fault.other for fault in next(rounds(1, [1], ["SIGKILL"]))}
    assert one == 1
    assert not {*NETWORK} & {*kinds_for(1, is_isolated=True)}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_can_be_done_and_says_whom_it_hits(kind: str) -> None:
    assert callable(deed_of(kind))
    planned = Planned(kind=kind, node=1, other=2, place=0, seconds=1.0, calm=1.0)
    words = planned.target(3)
    assert words in ("PostgreSQL", "PostgreSQL and broker 3", "all brokers", "brokers 1 and 2", "broker 3")
    assert ("leader" not in kind and "controller" not in kind) or words == "broker 3"


def test_without_namespaces_links_and_disks_are_left_alone(tmp_path: Path) -> None:
    possible = kinds_for(3, is_isolated=False)
    assert not {*NETWORK, *DISKS} & {*possible}
    assert {*possible, *NETWORK, *DISKS} == {*KINDS} == {*kinds_for(3, is_isolated=True)}
    wanted = Wanted(seconds=1.0, seed=1, tiers=["classic"], directory=tmp_path, faults=["link cut"])
    with pytest.raises(ValueError, match="'link cut' cannot be done here; SIGKILL"):
        _ = wanted.kinds
