"""Compiled modules run only if they were made from the sources that are there; which of the two runs is said."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest

from strandline.compiled.manifest import DIRECTORY
from tests.compiled.small_tree import SmallTree


def test_modules_run_compiled_from_a_directory_of_their_own(compiled_tree: SmallTree) -> None:
    shown = compiled_tree.show()
    assert shown.is_compiled
    assert shown.limit == 7
    assert {Path(file).parent for file in shown.files} == {compiled_tree.libraries()}
    assert shown.sentence.startswith("hot modules run compiled: 2 modules, by mypyc ")


def test_a_copy_of_the_tree_takes_the_copy_of_the_build(tree: SmallTree) -> None:
    shown = tree.show()
    assert shown.is_compiled
    assert {Path(file).parent for file in shown.files} == {tree.libraries()}


def test_a_changed_module_runs_as_plain_python_and_so_do_all_others(tree: SmallTree) -> None:
    tree.write("hot.py", "def limit() -> int:\n    return 8\n")
    shown = tree.show()
    assert not shown.is_compiled
    assert shown.limit == 8
    assert [Path(file).name for file in shown.files] == ["hot.py", "warm.py"]
    assert "out of date (hot.py is not what it was made from)" in shown.sentence
    assert "`strandline compile`" in shown.sentence


def test_a_changed_constant_of_a_module_that_is_only_imported_counts(tree: SmallTree) -> None:
    tree.write("limits.py", "from typing import Final\n\nLIMIT: Final = 9\n")
    shown = tree.show()
    assert (shown.is_compiled, shown.limit) == (False, 9)


def test_a_source_that_has_gone_counts(tree: SmallTree) -> None:
    tree.path("warm.py").rename(tree.path("warm.txt"))
    tree.path("warm").mkdir()
    tree.write("warm/__init__.py", "")
    assert not tree.show().is_compiled


def test_a_change_is_seen_behind_the_old_size_and_time(compiled_tree: SmallTree) -> None:
    source = compiled_tree.path("limits.py")
    before, stat = source.read_text(), source.stat()
    try:
        source.write_text(before.replace("7", "9"))
        os.utime(source, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        assert (source.stat().st_size, source.stat().st_mtime_ns) == (stat.st_size, stat.st_mtime_ns)
        assert not compiled_tree.show().is_compiled
    finally:
        source.write_text(before)


def test_a_file_that_was_only_touched_changes_nothing(tree: SmallTree) -> None:
    tree.path("hot.py").touch()
    assert tree.show().is_compiled


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"format": 1}', '{"format": 99}', "null"])
def test_a_damaged_manifest_means_plain_python(tree: SmallTree, damage: str) -> None:
    tree.manifest.write_text(damage)
    shown = tree.show()
    assert not shown.is_compiled
    assert "manifest" in shown.sentence


def test_another_hash_in_the_manifest_means_plain_python(tree: SmallTree) -> None:
    content = json.loads(tree.manifest.read_text())
    content["sources"]["hot.py"][0] = "0" * 64
    tree.manifest.write_text(json.dumps(content))
    assert "hot.py" in tree.show().sentence


def test_a_library_that_is_cut_or_absent_means_plain_python(tree: SmallTree) -> None:
    library = tree.libraries() / "strandline.hot.so"
    library.write_bytes(library.read_bytes()[:100])
    assert "damaged (strandline.hot.so" in tree.show().sentence
    library.unlink()
    assert "damaged (strandline.hot.so" in tree.show().sentence


def test_a_library_that_cannot_be_loaded_means_plain_python(tree: SmallTree) -> None:
    """As one that was linked with a C library that this machine does not have, or that a crash has emptied."""
    library = tree.libraries() / "strandline__mypyc.so"
    library.write_bytes(bytes(library.stat().st_size))
    shown = tree.show()
    assert (shown.is_compiled, shown.limit) == (False, 7)
    assert "cannot be loaded" in shown.sentence
    assert "strandline__mypyc.so" in shown.sentence
    required = tree.run("-c", "import strandline.hot", STRANDLINE_COMPILED="required")
    assert "STRANDLINE_COMPILED is required, but the compiled build cannot be loaded" in required.stderr


def test_no_means_plain_python(tree: SmallTree) -> None:
    assert not tree.show(STRANDLINE_COMPILED="no").is_compiled


def test_required_takes_a_build_that_fits_and_refuses_any_other(tree: SmallTree) -> None:
    assert tree.show(STRANDLINE_COMPILED="required").is_compiled
    tree.write("hot.py", "def limit() -> int:\n    return 8\n")
    finished = tree.run("-c", "import strandline.hot", STRANDLINE_COMPILED="required")
    assert finished.returncode == 1
    assert "STRANDLINE_COMPILED is required, but the compiled build is out of date" in finished.stderr
    assert "Run `strandline compile`" in finished.stderr


def test_modules_are_not_mixed_when_a_build_vanishes_under_a_process(tree: SmallTree) -> None:
    program = f"import strandline.hot, shutil; shutil.rmtree({str(tree.builds)!r}); import strandline.warm"
    finished = tree.run("-c", program)
    assert "was removed while this process ran: start it again" in finished.stderr


def test_without_a_build_modules_run_as_plain_python(plain_tree: SmallTree) -> None:
    shown = plain_tree.show()
    assert not shown.is_compiled
    assert "there is no compiled build" in shown.sentence


def test_an_unknown_choice_is_refused(plain_tree: SmallTree) -> None:
    finished = plain_tree.run("-c", "import strandline.hot", STRANDLINE_COMPILED="yes")
    assert "STRANDLINE_COMPILED is 'yes'; it must be one of auto, no, required." in finished.stderr


def test_a_package_in_a_zip_runs_as_plain_python(tree: SmallTree, tmp_path: Path) -> None:
    """As Spark's workers get it: the archive has no build, and nothing can be loaded out of it."""
    archive = tmp_path / "strandline.zip"
    with zipfile.ZipFile(archive, "w") as writer:
        for file in tree.root.rglob("*.py"):
            if DIRECTORY not in file.parts:
                writer.write(file, file.relative_to(tree.root))
    shown = SmallTree(archive).show()
    assert (shown.is_compiled, shown.limit) == (False, 7)
