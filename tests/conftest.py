"""Hypothesis profiles, the order of tests, and the logs of the brokers a failing test used, attached to its report."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

from tests.broker import started_brokers
from tests.order import longest_first

# `quick` finds the same examples in every run, so that a push fails for its own faults only; `deep` looks for new ones.
_UNHURRIED = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("quick", derandomize=True, max_examples=50, deadline=None, suppress_health_check=_UNHURRIED)
settings.register_profile("deep", max_examples=2000, deadline=None, suppress_health_check=_UNHURRIED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# Tests need no durability over a loss of power: where there is room in memory, their files are there.
_MEMORY: Final = Path("/dev/shm")
_ROOM: Final = 4 << 30


def _is_fit_for_files(directory: Path) -> bool:
    """Whether tests find room there, and may run the programs that they write."""
    if not os.access(directory, os.W_OK):
        return False
    return shutil.disk_usage(directory).free >= _ROOM and not os.statvfs(directory).f_flag & os.ST_NOEXEC


if _is_fit_for_files(_MEMORY):
    os.environ.setdefault("TMPDIR", str(_MEMORY))

# Thousands of tests are millions of objects that stay: looking through them again and again finds no garbage.
gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        longest_first(items)
    if os.environ["STRANDLINE_COMPILED"] != "no":
        for item in items:
            if item.get_closest_marker("plain") is not None:
                item.add_marker(pytest.mark.skip("needs the sources of hot modules"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        for broker in started_brokers:
            state = "running" if broker.is_running else "ended"
            report.sections.append((f"log of broker {broker.bootstrap} ({state})", broker.log_text[-6000:]))
    if report.when == "teardown":
        started_brokers[:] = [broker for broker in started_brokers if broker.is_running]
    return report
