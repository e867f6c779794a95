"""The SQL files of the control plane: each has a name of its own, and somebody runs it."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from strandline import controlplane

ROOT = Path(controlplane.__file__).parent


def test_a_statement_is_in_the_folder_of_one_package() -> None:
    """A name is looked up in all of them."""
    places = defaultdict(set)
    for path in ROOT.rglob("*.sql"):
        (folder,) = (parent for parent in path.parents if parent.name == "statements")
        places[path.stem].add(folder)
    assert places
    assert {name: folders for name, folders in places.items() if len(folders) > 1} == {}


def test_every_statement_is_run_by_the_package_that_has_it() -> None:
    """Or by a package below it: parts of conversion use what all parts do."""
    for folder in ROOT.rglob("statements"):
        code = "\n".join(path.read_text(encoding="utf-8") for path in folder.parent.rglob("*.py"))
        named = set(re.findall(r'"(\w+)"', code))
        assert {path.stem for path in folder.rglob("*.sql")} <= named
