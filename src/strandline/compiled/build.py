"""Makes a build: copies the sources, has them compiled, and writes the manifest that lets processes take the result."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import IO, Final

from strandline.compiled.finder import ENVIRONMENT_VARIABLE, LIBRARY
from strandline.compiled.manifest import (
    DIRECTORY,
    Build,
    Manifest,
    Source,
    builds_directory,
    describe,
    find_build,
    hash_of,
    library_file,
    read_manifest,
    write_manifest,
)
from strandline.compiled.sources import UnknownModule, imported_sources

# Sources that decide how the others are compiled.
_BUILDERS: Final = ("__init__.py", "compiled/extensions.py", "compiled/modules.py")
_LOCK: Final = "lock"


class CannotCompile(Exception):
    """What is missing on this machine, as a sentence."""


class CompilationFailed(Exception):
    """Everything is there, but there is no build. The text says what was wrong."""


def missing_tools() -> str | None:
    """What a build needs and this machine does not have, as a sentence; None if nothing is missing."""
    absent = [name for name in ("mypyc", "setuptools") if importlib.util.find_spec(name) is None]
    if absent:
        return f"{' and '.join(absent)} not installed in {sys.prefix}: pip install 'strandline[compile]'."
    if platform.python_implementation() != "CPython":
        return f"mypyc compiles for CPython, and this is {platform.python_implementation()}."
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    if shutil.which(command[0]) is None:
        return f"There is no C compiler: {command[0]} is not on the PATH (Debian, Ubuntu: apt install gcc)."
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not header.is_file():
        return f"There is no {header} (Debian, Ubuntu: apt install python3-dev)."
    return None


def is_current(package: Path) -> bool:
    """Whether there is a build of these sources, by the mypyc that is installed."""
    found = find_build(str(package))
    return isinstance(found, Build) and found.mypyc == version("mypy")


@contextmanager
def only_builder(package: Path, waits: Callable[[], None]) -> Iterator[None]:
    """Be the only process that makes builds of the package: each removes what it takes for leftovers of others.

    `waits` is called if there is another one, before its end is waited for. Raises CannotCompile.
    """
    missing = missing_tools()
    if missing is not None:
        raise CannotCompile(missing)
    builds = Path(builds_directory(str(package)))
    try:
        builds.mkdir(parents=True, exist_ok=True)
        lock = (builds / _LOCK).open("w")
    except OSError as error:
        raise CannotCompile(f"The directory {builds} cannot be written: {error.strerror}.") from error
    with lock:  # closing it, however the process ends, lets the next one go on
        try:
            _lock(lock, waits)
        except OSError as error:
            raise CannotCompile(f"The file {lock.name} cannot be locked: {error.strerror}.") from error
        yield


def _lock(file: IO[str], waits: Callable[[], None]) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        waits()
        fcntl.flock(file, fcntl.LOCK_EX)


def make_build(package: Path, modules: Sequence[str]) -> int:
    """Make a build and let processes that start from now on take it; how many files it was made from.

    Running processes keep what they have. Only one process at a time (`only_builder`). Raises CompilationFailed or
    OSError; the build before stays then.
    """
    builds = Path(builds_directory(str(package)))
    directory = Path(tempfile.mkdtemp(dir=builds, prefix="build-"))
    try:
        directory.chmod(builds.stat().st_mode & 0o777)  # other users may run it without the right to write it
        sources = _compile_copy(package, modules, directory)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    _replace(builds, directory, sources)
    return len(sources)


def _compile_copy(package: Path, modules: Sequence[str], output: Path) -> dict[str, Source]:
    """Compile a copy of the package, which no other process changes meanwhile; returns what it was made from."""
    with tempfile.TemporaryDirectory(prefix="strandline-compile-") as temporary:
        copy = Path(temporary, "strandline")
        shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__", DIRECTORY))
        try:
            paths = imported_sources(copy, modules)
        except (UnknownModule, SyntaxError) as error:
            raise CompilationFailed(f"{error}") from error
        sources = {}
        for path in dict.fromkeys([*_BUILDERS, *(str(path.relative_to(copy)) for path in paths)]):
            sources[path] = Source(hash_of(str(copy / path)), *describe(str(package / path)))
        _run_compiler(Path(temporary), output, modules)
        for path, source in sources.items():
            if hash_of(str(package / path)) != source.sha256:
                raise CompilationFailed(f"{path} was changed while it was compiled: run the command again.")
    return sources


def _run_compiler(copy: Path, output: Path, modules: Sequence[str]) -> None:
    finished = subprocess.run(
        [sys.executable, "-P", "-m", "strandline.compiled.extensions", str(copy), str(output), *modules],
        env={**os.environ, ENVIRONMENT_VARIABLE: "no", "PYTHONPATH": str(copy)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    absent = [name for name in _libraries(modules) if not (output / name).is_file()]
    if finished.returncode != 0 or absent:
        raise CompilationFailed(f"{finished.stdout.strip()[-4000:]}\nmypyc or the C compiler refused the sources.")


def _libraries(modules: Sequence[str]) -> list[str]:
    return [library_file(LIBRARY), *(library_file(f"strandline.{name}") for name in modules)]


def _replace(builds: Path, directory: Path, sources: dict[str, Source]) -> None:
    """Point the manifest to a new build. The one before stays: processes that run may yet load a module of it."""
    try:
        before = read_manifest(str(builds)).directory
    except (OSError, ValueError, LookupError, TypeError):
        before = ""
    libraries = {file.name: file.stat().st_size for file in sorted(directory.iterdir())}
    write_manifest(
        str(builds), Manifest(directory.name, platform.python_version(), version("mypy"), libraries, sources)
    )
    for other in builds.glob("build-*"):
        if other.name not in {directory.name, before} and other.is_dir():
            shutil.rmtree(other, ignore_errors=True)
