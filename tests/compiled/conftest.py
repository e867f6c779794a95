"""A small tree that was compiled once, and a copy of it for each test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from strandline.compiled.build import missing_tools
from tests.compiled.small_tree import SmallTree


@pytest.fixture(scope="session")
def compiled_tree(tmp_path_factory: pytest.TempPathFactory) -> SmallTree:
    missing = missing_tools()
    if missing is not None:
        pytest.skip(missing)
    tree = SmallTree.make(tmp_path_factory.mktemp("compiled-tree"))
    finished = tree.compile()
    assert finished.returncode == 0, finished.stderr
    return tree


@pytest.fixture
def tree(compiled_tree: SmallTree, tmp_path: Path) -> SmallTree:
    """A copy that the test may change. Its files are not those that were hashed: their content decides."""
    shutil.copytree(compiled_tree.root, tmp_path / "tree")
    return SmallTree(tmp_path / "tree")


@pytest.fixture
def plain_tree(tmp_path: Path) -> SmallTree:
    """One without a build; needs no compiler."""
    return SmallTree.make(tmp_path / "tree")
