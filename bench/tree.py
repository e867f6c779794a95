"""Source trees of this repository: the working tree, and another commit unpacked beside it. Brokers run from either.

All trees share the virtual environment; `PYTHONPATH` decides whose package `strandline` a process imports.
"""

from __future__ import annotations

import compileall
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).resolve().parent.parent
_PARTS: Final = ("src", "bench")
_WHICH: Final = "import strandline, bench; print(strandline.__file__, bench.__file__, sep='\\n')"
_HOT_MODULES: Final = "from strandline.compiled.finder import running; print(running().sentence)"


class TreeFailed(RuntimeError):
    """A commit could not be unpacked, or a process would run another tree than it should."""


@dataclass(frozen=True, slots=True)
class SourceTree:
    """The root of a tree, with the packages `src/strandline` and `bench`."""

    root: Path

    @classmethod
    def working(cls) -> SourceTree:
        """The tree of this file, with all changes that are not committed."""
        return cls(_HERE)

    @classmethod
    def at(cls, revision: str, cache: Path) -> SourceTree:
        """A commit, unpacked below the cache unless it is there already. Raises TreeFailed."""
        commit = resolve(revision)
        root = cache.resolve() / "bench" / "trees" / commit
        if not root.exists():
            root.parent.mkdir(parents=True, exist_ok=True)
            partial = Path(tempfile.mkdtemp(dir=root.parent))
            try:
                with tarfile.open(fileobj=io.BytesIO(_git("archive", "--format=tar", commit, *_PARTS))) as archive:
                    archive.extractall(partial, filter="data")
                partial.rename(root)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
        return cls(root)

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process needs to import `strandline` and `bench` from this tree."""
        inherited = os.environ.get("PYTHONPATH")
        own = (str(self.root / "src"), str(self.root))
        return {"PYTHONPATH": os.pathsep.join((*own, inherited) if inherited else own)}

    def hot_modules(self) -> str:
        """Whether brokers of this tree run compiled modules: each tree has its own build, or none."""
        command = [*python(), "-c", _HOT_MODULES]
        run = subprocess.run(command, env={**os.environ, **self.environment}, capture_output=True, text=True)
        sentence = run.stdout.strip().removeprefix("hot modules run ")
        return sentence if run.returncode == 0 else "plain Python, as always before they could be compiled"

    def prepare(self) -> None:
        """Make sure that a child process runs this tree, and compile it. Raises TreeFailed."""
        command = [*python(), "-c", _WHICH]
        run = subprocess.run(command, env={**os.environ, **self.environment}, capture_output=True, text=True)
        if run.returncode != 0:
            raise TreeFailed(f"The package strandline of {self.root} cannot be imported:\n{run.stderr[-1000:]}")
        for file in map(Path, run.stdout.splitlines()):
            if not file.resolve().is_relative_to(self.root):
                raise TreeFailed(f"A process that should run the tree {self.root} imports {file}.")
        # As pip does with a package it installs: where Python may not write its cache, each start would compile anew.
        compileall.compile_dir(self.root / "src" / "strandline", quiet=2)


def python() -> tuple[str, ...]:
    """The interpreter of this environment, which does not look for modules in the current directory."""
    return (sys.executable, "-P")


def resolve(revision: str) -> str:
    """The commit of a branch, a tag or an expression such as HEAD~3. Raises TreeFailed."""
    try:
        return _git("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}").decode().strip()
    except TreeFailed as failure:
        raise TreeFailed(f"{revision} is not a commit of this repository. {failure}") from None


def _git(*arguments: str) -> bytes:
    run = subprocess.run(["git", "-C", str(_HERE), *arguments], capture_output=True)
    if run.returncode != 0:
        raise TreeFailed(f"git {' '.join(arguments)}: {run.stderr.decode(errors='replace').strip()}")
    return run.stdout
