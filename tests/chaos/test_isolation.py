"""What a run does to networks and disks is done in namespaces of its own, and seen nowhere else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from chaos import isolation

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(isolation.why_not() is not None, reason=str(isolation.why_not()))
def test_links_are_cut_and_disks_are_full_and_hang(tmp_path: Path) -> None:
    before = _seen_outside()
    command = [sys.executable, "-m", "tests.chaos.isolated", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "all is well\n"), done.stderr[-4000:]
    assert _seen_outside() == before
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()


def _seen_outside() -> set[str]:
    """The interfaces of this machine."""
    lines = Path("/proc/self/net/dev").read_text().splitlines()[2:]
    return {line.partition(":")[0].strip() for line in lines}


def test_a_program_that_fails_is_an_error_that_says_so() -> None:
    with pytest.raises(OSError, match=r"`ls /nowhere/at/all` failed: .*nowhere"):
        isolation.command("ls", "/nowhere/at/all")
