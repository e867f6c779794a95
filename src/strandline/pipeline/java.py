"""Finds a Java that Spark can run on: by JAVA_HOME, then on the PATH, then in `.cache/java` of a checkout.

Spark 4 needs Java 17 or newer, and tells it to load the module jdk.incubator.vector: a Java without it does not start.
Small runtimes leave it out. `scripts/java.py` fills `.cache/java` on Debian and Ubuntu.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from strandline.pipeline.errors import PipelineFailed

OLDEST: Final = 17
MODULE: Final = "jdk.incubator.vector"
HOW_TO_GET_IT: Final = (
    "Install a Java runtime of version 17 or newer (Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: "
    "brew install openjdk@17; others: https://adoptium.net) and put it on the PATH, or name its directory in JAVA_HOME."
)
_BASE: Final = re.compile(r"^java\.base@(\d+)", re.MULTILINE)
_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaRuntime:
    """A Java that Spark can run on."""

    home: Path
    version: int
    """17 of 17.0.15."""


def cache_of_checkout() -> Path | None:
    """Where a checkout of the project keeps a Java of its own; None if this is an installed package."""
    root = Path(__file__).resolve().parents[3]
    return root / ".cache" / "java" if (root / "pyproject.toml").is_file() else None


def find_java(environment: Mapping[str, str] | None = None, cache: Path | None = None) -> JavaRuntime:
    """The first Java that will do; `cache` is the last place to look at. Raises PipelineFailed."""
    if environment is None:
        environment, cache = os.environ, cache or cache_of_checkout()
    tried = []
    for where, home in _candidates(environment, cache):
        found = _look_at(home)
        if isinstance(found, JavaRuntime):
            return found
        tried.append(f"{where} ({home}) {found}")
    why = f"{'; '.join(tried)}." if tried else "JAVA_HOME is not set and there is no java on the PATH."
    hint = HOW_TO_GET_IT
    raise PipelineFailed(f"Spark needs Java {OLDEST} or newer: {why} {hint}")


def _candidates(environment: Mapping[str, str], cache: Path | None) -> Iterator[tuple[str, Path]]:
    if named := environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(named)
    if program := shutil.which("java", path=environment.get("PATH", "")):
        # On macOS there is a /usr/bin/java that only opens a window: what it says about itself decides.
        yield "java on the PATH", Path(program).resolve().parent.parent
    if cache is not None and cache.is_dir():
        yield "the Java of this checkout", cache


def _look_at(home: Path) -> JavaRuntime | str:
    """The runtime, or why it will not do."""
    program = home / "bin" / "java"
    try:
        answer = subprocess.run(
            [program, "--list-modules"], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"cannot be run: {error}"
    base = _BASE.search(answer.stdout)
    if answer.returncode != 0 or base is None:
        # Java 8 does not know the option.
        return f"is older than {OLDEST}, or broken"
    version = int(base.group(1))
    if version < OLDEST:
        return f"is Java {version}"
    if f"\n{MODULE}@" not in answer.stdout:
        return f"is Java {version}, but lacks the module {MODULE}, which Spark loads"
    return JavaRuntime(home=home, version=version)
