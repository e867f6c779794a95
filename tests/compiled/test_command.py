"""`strandline compile`: what it needs, what it says, and what it leaves behind."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.compiled.modules import HOT_MODULES
from strandline.compiled.sources import imported_sources, source_of
from tests.compiled.small_tree import PACKAGE, SmallTree

_NO_COMPILER = {"CC": "/nowhere/cc"}


def test_every_hot_module_exists_once() -> None:
    assert [name for name in HOT_MODULES if source_of(PACKAGE, name) is None] == []
    assert len({*HOT_MODULES}) == len(HOT_MODULES)


def test_a_build_is_made_from_all_that_hot_modules_import(plain_tree: SmallTree) -> None:
    paths = imported_sources(plain_tree.path(""), ["warm"])
    names = {str(path.relative_to(plain_tree.path(""))) for path in paths}
    assert {"warm.py", "hot.py", "limits.py", "__init__.py", "compiled/finder.py"} <= names


def test_without_a_compiler_the_command_says_so(plain_tree: SmallTree) -> None:
    finished = plain_tree.compile(**_NO_COMPILER)
    assert finished.returncode == 1
    assert "There is no C compiler: /nowhere/cc" in finished.stderr
    assert not plain_tree.builds.exists()


def test_without_a_compiler_setup_goes_on_after_one_line(plain_tree: SmallTree) -> None:
    finished = plain_tree.compile("--if-possible", **_NO_COMPILER)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout.startswith("Hot modules are not compiled, and run as plain Python. There is no C compiler")
    assert finished.stdout.count("\n") == 1


def test_a_build_that_is_up_to_date_is_not_made_again(tree: SmallTree) -> None:
    before = tree.libraries()
    finished = tree.compile()
    assert "up to date" in finished.stdout
    assert tree.libraries() == before


def test_a_new_build_follows_the_sources_and_leaves_the_one_before_to_processes_that_run(tree: SmallTree) -> None:
    first = tree.libraries()
    for limit in (8, 9):
        tree.write("limits.py", f"from typing import Final\n\nLIMIT: Final = {limit}\n")
        before = tree.libraries()
        assert tree.compile().returncode == 0
        shown = tree.show()
        assert (shown.is_compiled, shown.limit) == (True, limit)
        assert before.is_dir()
    assert not first.exists()


def test_a_package_that_cannot_be_written_runs_as_plain_python(plain_tree: SmallTree) -> None:
    plain_tree.path("__compiled__").write_text("as if the directory could not be written")
    finished = plain_tree.compile()
    assert finished.returncode == 1
    assert "__compiled__" in finished.stderr
    assert "cannot be written" in finished.stderr
    at_setup = plain_tree.compile("--if-possible")
    assert (at_setup.returncode, at_setup.stderr) == (0, "")
    assert at_setup.stdout.startswith("Hot modules are not compiled, and run as plain Python. The directory ")
    assert not plain_tree.show().is_compiled


def test_a_second_process_waits_and_takes_what_the_first_has_made(tree: SmallTree, tmp_path: Path) -> None:
    """Each removes builds that it takes for leftovers: it must not be that of another process."""
    tree.write("limits.py", "from typing import Final\n\nLIMIT: Final = 8\n")
    begun, may_go_on, slow = tmp_path / "begun", tmp_path / "go", tmp_path / "cc"
    os.mkfifo(begun)
    os.mkfifo(may_go_on)
    # The first file that is compiled waits until the test says so.
    slow.write_text(f"#!/bin/sh\nif mkdir {tmp_path}/once 2>/dev/null; then echo > {begun}; read _ < {may_go_on}; fi\n")
    slow.write_text(f'{slow.read_text()}exec {shlex.quote(shutil.which("cc") or "gcc")} "$@"\n')
    slow.chmod(0o755)
    with tree.start_compiling(CC=str(slow)) as first:
        begun.read_text()
        with tree.start_compiling() as second:
            assert second.stdout is not None
            waiting = second.stdout.readline()
            may_go_on.write_text("\n")
            said = [first.communicate()[0], waiting + second.communicate()[0]]
    assert (first.returncode, second.returncode) == (0, 0), said
    assert waiting == "Another process is compiling the hot modules: waiting for it.\n"
    assert said[1].endswith("The compiled hot modules are up to date.\n")
    assert tree.show().limit == 8
    assert tree.show().is_compiled


def test_sources_that_cannot_be_compiled_run_as_plain_python(tree: SmallTree) -> None:
    tree.write("hot.py", "def limit() -> int:\n    return 'eight'  # noqa\n")
    before = tree.libraries()
    finished = tree.compile()
    assert finished.returncode == 1
    assert "hot.py:2: error: Incompatible return value type" in finished.stderr
    assert [path for path in tree.builds.iterdir() if path.is_dir()] == [before]
    assert not tree.show().is_compiled


def test_a_name_that_is_no_module_is_named(tree: SmallTree) -> None:
    tree.write("compiled/modules.py", 'HOT_MODULES = ("hot", "cold")\n')
    finished = tree.compile()
    assert "The list of hot modules has cold, but " in finished.stderr


@pytest.mark.parametrize("command", [["broker", "--http", "none"], ["topics", "list"]])
def test_a_command_that_must_run_compiled_and_cannot_ends_with_a_sentence(tmp_path: Path, command: list[str]) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "__compiled__")
    shutil.copytree(PACKAGE, tmp_path / "strandline", ignore=ignored)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "STRANDLINE_COMPILED": "required"}
    finished = subprocess.run(
        [sys.executable, "-P", "-m", "strandline", *command], env=environment, capture_output=True, text=True
    )
    assert finished.returncode == 1
    assert "STRANDLINE_COMPILED is required, but there is no compiled build" in finished.stderr
    assert "Traceback" not in finished.stderr
