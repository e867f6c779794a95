"""The tests of hot modules once more, on their compiled form. In the rest of the suite they see the sources."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.compiled.manifest import Unusable, find_build
from tests.compiled.small_tree import PACKAGE

ROOT = Path(__file__).parents[2]
TESTS = (
    "tests/coordinators/groups/test_classic_group.py",
    "tests/coordinators/groups/test_classic_join.py",
    "tests/coordinators/groups/test_classic_static.py",
    "tests/coordinators/groups/test_classic_sync.py",
    "tests/coordinators/groups/test_concurrent_rebalances.py",
    "tests/coordinators/runtime/test_timers.py",
    "tests/server/times/test_errors_and_waits.py",
    "tests/records",
    "tests/log/cleaning",
    "tests/log/test_appending.py",
    "tests/log/test_failures.py",
    "tests/log/test_golden_write.py",
    "tests/log/test_indexes.py",
    "tests/log/test_model.py",
    "tests/log/test_producers.py",
    "tests/log/test_reading.py",
    "tests/log/test_recovery.py",
    "tests/replication",
    "tests/wire/test_fast_paths.py",
    "tests/wire/test_fuzz.py",
    "tests/wire/test_golden_frames.py",
    "tests/wire/test_primitives.py",
)


@pytest.mark.timeout(600)
def test_the_tests_of_hot_modules_pass_on_compiled_ones() -> None:
    found = find_build(str(PACKAGE))
    if isinstance(found, Unusable):
        pytest.skip(f"{found.reason}: `make compiled` makes one")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", *TESTS],
        env={**environment, "STRANDLINE_COMPILED": "required"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout[-6000:]
