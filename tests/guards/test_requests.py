"""Small requests cost what they cost when `bounds.COUNTS` was written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.guards.bounds import COUNTS, DISKLESS_MARGIN, KEPT, MARGIN, SESSION_EXPONENT
from tests.guards.counting import exponent

ROOT = Path(__file__).resolve().parent.parent.parent
COUNTED = ("calls", "c_calls", "system_calls", "bytecodes")
# The same code has other instructions in other versions.
ONLY_HERE = {"bytecodes": (3, 11)}


@cache
def counting() -> subprocess.CompletedProcess[str]:
    """In a process of its own: nothing of the test run is counted, and no tool of it is in the way."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTEST"))}
    command = [sys.executable, "-m", "bench.counts", "--json", "--only", ",".join(COUNTS)]
    return subprocess.run(
        command, cwd=ROOT, env={**environment, "STRANDLINE_COMPILED": "no"}, capture_output=True, text=True
    )


def counted() -> dict[str, dict[str, float]]:
    """The counts of each request."""
    run = counting()
    assert run.returncode == 0, run.stderr
    found: dict[str, dict[str, float]] = json.loads(run.stdout)
    return found


def bound(request_name: str, column: str) -> float:
    stored: int = getattr(COUNTS[request_name], column)
    if column == "system_calls":
        return stored + 0.5
    return stored * (1 + (DISKLESS_MARGIN if "diskless" in request_name else MARGIN))


@pytest.mark.parametrize("request_name", COUNTS)
@pytest.mark.parametrize("column", COUNTED)
def test_a_request_costs_no_more_than_it_did(request_name: str, column: str) -> None:
    if column in ONLY_HERE and sys.version_info[:2] != ONLY_HERE[column]:
        pytest.skip(f"{column} are bounded for Python {ONLY_HERE[column]} only")
    cost, allowed = counted()[request_name][column], bound(request_name, column)
    assert cost <= allowed, (
        f"One {request_name} request costs {cost:g} {column} on the event loop, and may cost {allowed:g}.\n"
        f"See what is called: .venv/bin/python -m bench.counts --functions {request_name}\n"
        "If it is worth it: .venv/bin/python -m bench.counts --write, and say in the commit message why."
    )


@pytest.mark.parametrize("request_name", COUNTS)
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the table is written with Python 3.11")
def test_the_table_is_no_older_than_the_code(request_name: str) -> None:
    """A bound that lies far above the cost guards nothing."""
    cost, stored = counted()[request_name]["calls"], COUNTS[request_name].calls
    margin = 0.25 if "diskless" in request_name else 0.15
    assert cost >= stored * (1 - margin), (
        f"One {request_name} request costs {cost:g} calls, and the table says {stored}: well done. "
        "Lower the bounds: .venv/bin/python -m bench.counts --write"
    )


@pytest.mark.parametrize("request_name", [name for name in COUNTS if "diskless" not in name])
def test_a_request_leaves_nothing_behind(request_name: str) -> None:
    """Records of a diskless topic stay in the cache."""
    kept = counted()[request_name]["blocks_kept"]
    assert kept <= KEPT, f"{kept:g} blocks of memory stay allocated after each {request_name} request."


def test_a_fetch_with_nothing_new_grows_no_faster_than_its_session() -> None:
    few, many = (counted()[f"fetch.nothing-new.{size}"]["calls"] for size in (10, 100))
    grows = exponent((10, few), (100, many))
    print(f"calls of a Fetch with nothing new: {few:g} with 10 partitions, {many:g} with 100: exponent {grows:.2f}")
    assert grows <= SESSION_EXPONENT
