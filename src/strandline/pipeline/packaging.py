"""Makes the files that a Spark cluster needs to run the pipeline: this package as a zip, and a program to submit."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_LEFT_OUT: Final = frozenset({"__compiled__", "__pycache__"})
_PROGRAM: Final = '''"""For spark-submit: the tiering pipeline of Strandline. Options: --help."""

import sys

from strandline.pipeline.submit import main

if __name__ == "__main__":
    sys.exit(main())
'''


class ClusterPackage(NamedTuple):
    """What was written."""

    archive: Path
    program: Path


def make_package(directory: Path) -> ClusterPackage:
    """Write strandline.zip and submit.py into a directory. Pure Python: it is the same for all machines."""
    directory.mkdir(parents=True, exist_ok=True)
    package = ClusterPackage(directory / "strandline.zip", directory / "submit.py")
    root = Path(__file__).resolve().parents[1]
    with zipfile.ZipFile(package.archive, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in _files(root):
            archive.write(path, path.relative_to(root.parent))
    package.program.write_text(_PROGRAM, encoding="utf-8")
    return package


def _files(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        if path.is_file() and not _LEFT_OUT.intersection(path.parts):
            yield path
