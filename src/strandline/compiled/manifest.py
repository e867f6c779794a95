"""What a build was made from, and whether the sources are still the same.

A build belongs to its sources: the hot modules, and every module of the package that they import, directly or through
others, because constants and types of those are compiled in. The manifest has the SHA-256 of each of them. A start
does not read them all: a file that has the inode, size, and times of modification and of change it had when it was
hashed has not been written since (no program can set the time of change). Of every other file the content decides.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Final, NamedTuple

DIRECTORY: Final = "__compiled__"
MANIFEST: Final = "manifest.json"
FORMAT: Final = 1
# Interpreter, version and platform that a build is for: cpython-311-x86_64-linux-gnu.
ABI: Final = EXTENSION_SUFFIXES[0].strip(".").rpartition(".")[0]


class Source(NamedTuple):
    """One file that a build was made from."""

    sha256: str
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


class Manifest(NamedTuple):
    """What is known of a build. Paths of sources begin below the package, those of libraries in `directory`."""

    directory: str
    python: str
    mypyc: str
    libraries: Mapping[str, int]
    sources: Mapping[str, Source]


class Build(NamedTuple):
    """A build that belongs to the sources that are there."""

    directory: str
    mypyc: str

    def path_of(self, module: str) -> str:
        return os.path.join(self.directory, library_file(module))


class Unusable(NamedTuple):
    """Why there is no such build. The reason is the end of a sentence."""

    reason: str


def builds_directory(package: str) -> str:
    """Where the builds for this interpreter are: inside the package, apart from the sources."""
    return os.path.join(package, DIRECTORY, ABI)


def library_file(module: str) -> str:
    """The name of the file of a compiled module in the directory of its build."""
    return f"{module}.so"


def find_build(package: str) -> Build | Unusable:
    """The build of a package, if it fits. Costs a file and a stat for each source."""
    builds = builds_directory(package)
    try:
        manifest = read_manifest(builds)
    except FileNotFoundError:
        return Unusable(f"there is no compiled build for {ABI}")
    except (OSError, ValueError, LookupError, TypeError) as error:
        return Unusable(f"the manifest in {builds} cannot be read ({error!r})")
    changed = changed_source(package, manifest.sources)
    if changed is not None:
        return Unusable(f"the compiled build is out of date ({changed} is not what it was made from)")
    directory = os.path.join(builds, manifest.directory)
    for file, size in manifest.libraries.items():
        if _size_of(os.path.join(directory, file)) != size:
            return Unusable(f"the compiled build is damaged ({file} in {directory} has not its {size} bytes)")
    return Build(directory, manifest.mypyc)


def read_manifest(builds: str) -> Manifest:
    """Raises OSError, ValueError, LookupError or TypeError: whatever a damaged file may lead to."""
    with open(os.path.join(builds, MANIFEST), encoding="utf-8") as file:
        content = json.load(file)
    if content["format"] != FORMAT:
        raise ValueError(f"Its format is {content['format']}, not {FORMAT}.")
    return Manifest(
        directory=os.path.basename(content["directory"]),
        python=content["python"],
        mypyc=content["mypyc"],
        libraries={**content["libraries"]},
        sources={path: Source(*fields) for path, fields in content["sources"].items()},
    )


def write_manifest(builds: str, manifest: Manifest) -> None:
    """Replace the manifest: from now on, processes that start take this build."""
    temporary = os.path.join(builds, f"{manifest.directory}.json")
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump({"format": FORMAT, **manifest._asdict()}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, os.path.join(builds, MANIFEST))


def changed_source(package: str, sources: Mapping[str, Source]) -> str | None:
    """The first source whose content has changed; None if none has."""
    for path, source in sources.items():
        file = os.path.join(package, path)
        try:
            is_same = describe(file) == source[1:] or hash_of(file) == source.sha256
        except OSError:
            is_same = False
        if not is_same:
            return path
    return None


def describe(file: str) -> tuple[int, int, int, int]:
    """What changes whenever the file is written: the fields of Source behind the hash."""
    found = os.stat(file)
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def hash_of(file: str) -> str:
    """SHA-256 of the content."""
    with open(file, "rb") as stream:
        return hashlib.sha256(stream.read()).hexdigest()


def _size_of(file: str) -> int | None:
    try:
        return os.stat(file).st_size
    except OSError:
        return None
