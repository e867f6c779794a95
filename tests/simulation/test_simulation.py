"""Clusters in one process that are broken and healed, each decided by its seed; and rules that are wrong on purpose."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from simulation.__main__ import main
from simulation.mutants import MUTANTS, applied
from simulation.run import run
from simulation.scenario import Scenario

pytestmark = pytest.mark.plain

FIRST_FOUND = {
    "earlier incarnations of a follower are believed": 186,
    "the high watermark covers the committed in-sync set only": 71,
}
"""Seeds to begin with, where others would take long."""


@pytest.fixture(autouse=True)
def _silent() -> Iterator[None]:
    """Brokers that are killed by the hundred say much."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("first", range(1, 121, 20))
def test_nothing_is_lost_doubled_reordered_or_stuck(first: int) -> None:
    acknowledged = 0
    for seed in range(first, first + 20):
        outcome = run(Scenario.of_seed(seed))
        assert not outcome.violation, f"python -m simulation --seed {seed}: {outcome.violation}"
        acknowledged += outcome.acknowledged
    assert acknowledged > 100


@pytest.mark.parametrize("seed", [12, 48, 91, 132])
def test_a_seed_decides_everything(seed: int) -> None:
    first, second = (run(Scenario.of_seed(seed)) for _ in range(2))
    assert first.trace == second.trace
    assert first.digest == second.digest
    assert first.messages == second.messages


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_rule_is_found(name: str) -> None:
    first = FIRST_FOUND.get(name, 1)
    with applied(name):
        assert any(run(Scenario.of_seed(seed)).violation for seed in range(first, first + 60))


def test_the_command_tells_how_to_repeat_what_it_has_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "3", "--mutant", "a leader does not compare epochs"]) == 1
    assert "python -m simulation --seed 1" in capsys.readouterr().out
    assert main(["--seed", "2"]) == 0
    assert "broker 1 leads t-0 in epoch 0" in capsys.readouterr().out
