"""Faults come by seed, each kind in every round."""

from __future__ import annotations

from itertools import islice

from chaos.faults import KINDS, plan


def test_a_seed_repeats_the_faults() -> None:
    assert list(islice(plan(7), 100)) == list(islice(plan(7), 100))
    assert list(islice(plan(7), 100)) != list(islice(plan(8), 100))


def test_each_round_has_one_of_each_kind() -> None:
    for seed in range(20):
        assert {one.kind for one in islice(plan(seed), len(KINDS))} == {*KINDS}


def test_some_pauses_outlast_a_session_and_some_do_not() -> None:
    seconds = [one.seconds for one in islice(plan(1), 100)]
    assert min(seconds) < 2.0
    assert max(seconds) > 5.0
