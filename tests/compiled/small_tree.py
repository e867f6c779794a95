"""A package `strandline` of three small modules with the real entry point and finder: it compiles in seconds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import strandline
from strandline.compiled.manifest import ABI, DIRECTORY, MANIFEST

PACKAGE: Final = Path(strandline.__file__).parent
_SHOW: Final = """
import json
from strandline import hot, warm
from strandline.compiled.finder import running
print(json.dumps([hot.limit(), [hot.__file__, warm.__file__], *running()]))
"""
_MODULES: Final = {
    "compiled/modules.py": 'HOT_MODULES = ("hot", "warm")\n',
    "limits.py": "from typing import Final\n\nLIMIT: Final = 7\n",
    "hot.py": "from strandline.limits import LIMIT\n\n\ndef limit() -> int:\n    return LIMIT\n",
    "warm.py": "from strandline.hot import limit\n\n\ndef twice() -> int:\n    return 2 * limit()\n",
}
_LATER_NS: Final = 10_000_000_000


class Shown(NamedTuple):
    """What a process that imports the modules says."""

    limit: int
    files: list[str]
    is_compiled: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class SmallTree:
    """The directory that holds the package."""

    root: Path

    @classmethod
    def make(cls, root: Path) -> SmallTree:
        package = root / "strandline"
        shutil.copytree(PACKAGE / "compiled", package / "compiled", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("__init__.py", "__main__.py"):
            shutil.copy(PACKAGE / name, package)
        tree = cls(root)
        for path, text in _MODULES.items():
            tree.write(path, text)
        return tree

    @property
    def builds(self) -> Path:
        return self.root / "strandline" / DIRECTORY / ABI

    @property
    def manifest(self) -> Path:
        return self.builds / MANIFEST

    def libraries(self) -> Path:
        """The directory of the build that the manifest names."""
        return self.builds / str(json.loads(self.manifest.read_text())["directory"])

    def path(self, path: str) -> Path:
        return self.root / "strandline" / path

    def write(self, path: str, text: str) -> None:
        """Write a file, later than all others: Python takes one of the same size and second for unchanged."""
        written = self.path(path)
        written.write_text(text)
        stat = written.stat()
        os.utime(written, ns=(stat.st_atime_ns, stat.st_mtime_ns + _LATER_NS))

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run Python with this package on the path."""
        return subprocess.run(
            [sys.executable, "-P", *arguments],
            env=self._environment(environment),
            capture_output=True,
            text=True,
            check=False,
        )

    def _environment(self, more: dict[str, str]) -> dict[str, str]:
        return {**os.environ, "STRANDLINE_COMPILED": "", "PYTHONPATH": str(self.root), **more}

    def start_compiling(self, *options: str, **environment: str) -> subprocess.Popen[str]:
        """`strandline compile`, which the caller waits for."""
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "strandline", "compile", *options],
            env=self._environment(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def compile(self, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """`strandline compile`."""
        return self.run("-m", "strandline", "compile", *options, **environment)

    def show(self, **environment: str) -> Shown:
        """Import the modules in a process of its own."""
        finished = self.run("-c", _SHOW, **environment)
        assert finished.returncode == 0, finished.stderr
        return Shown(*json.loads(finished.stdout))
