"""Finds the compiled form of a hot module when Python imports it. Installed by `import strandline`.

All hot modules are taken from one build, or none is: compiled modules know the memory layout of each other's objects.
The decision is made once in a process, when the first of them is imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple

from strandline.compiled.modules import HOT_MODULES

if TYPE_CHECKING:
    from strandline.compiled.manifest import Build

ENVIRONMENT_VARIABLE: Final = "STRANDLINE_COMPILED"
# The library that holds the code of all of them; the files of the modules only point into it.
LIBRARY: Final = "strandline__mypyc"
_CHOICES: Final = ("auto", "no", "required")


class CompiledUnavailable(ImportError):
    """Compiled modules are required and cannot be had. Its text is a sentence for the user."""


class Running(NamedTuple):
    """Which form of the hot modules runs in this process, and why, as a sentence for the log."""

    is_compiled: bool
    sentence: str


class CompiledFinder:
    """A finder for `sys.meta_path`. It leaves all other modules to Python."""

    def __init__(self, package: str, modules: Sequence[str], choice: str) -> None:
        self._package = package
        self._names = frozenset({LIBRARY, *(f"strandline.{name}" for name in modules)})
        self._choice = choice
        self._build: Build | None = None
        self._running: Running | None = None

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where the compiled module is; None if it runs as plain Python. Raises CompiledUnavailable."""
        if fullname not in self._names or not self.running().is_compiled:
            return None
        assert self._build is not None
        spec = _spec_of(self._build, fullname)
        if not os.path.exists(str(spec.origin)):  # the rest of them runs compiled already: the source would not fit
            raise CompiledUnavailable(
                f"{spec.origin} was removed while this process ran: start it again.", name=fullname
            )
        return spec

    def running(self) -> Running:
        """Decide, at the first call, which form runs. Raises CompiledUnavailable."""
        if self._running is None:
            self._running = self._decide()
        return self._running

    def _decide(self) -> Running:
        if self._choice not in _CHOICES:
            choices = ", ".join(_CHOICES)
            raise CompiledUnavailable(f"{ENVIRONMENT_VARIABLE} is {self._choice!r}; it must be one of {choices}.")
        if self._choice == "no":
            return Running(False, f"hot modules run as plain Python: {ENVIRONMENT_VARIABLE} is no")
        from strandline.compiled.manifest import Build, Unusable, find_build

        found = find_build(self._package)
        if isinstance(found, Build) and (problem := _load(found)) is not None:
            found = Unusable(problem)
        if isinstance(found, Build):
            self._build = found
            return Running(True, f"hot modules run compiled: {len(self._names) - 1} modules, by mypyc {found.mypyc}")
        assert isinstance(found, Unusable)
        if self._choice == "required":
            raise CompiledUnavailable(
                f"{ENVIRONMENT_VARIABLE} is required, but {found.reason}. Run `strandline compile`, or set it to auto."
            )
        return Running(False, f"hot modules run as plain Python: {found.reason}; `strandline compile` makes a build")


def _spec_of(build: Build, name: str) -> ModuleSpec:
    file = build.path_of(name)
    spec = ModuleSpec(name, ExtensionFileLoader(name, file), origin=file)
    spec.has_location = True
    return spec


def _load(build: Build) -> str | None:
    """Load the library of the modules, which runs none of them. Why that is impossible, as the end of a sentence.

    A build may have been made on another machine, with a C library that this one does not have.
    """
    try:
        library = module_from_spec(_spec_of(build, LIBRARY))
        ExtensionFileLoader(LIBRARY, build.path_of(LIBRARY)).exec_module(library)
    except ImportError as error:
        return f"the compiled build cannot be loaded ({error})"
    sys.modules[LIBRARY] = library
    return None


_FINDER: Final = CompiledFinder(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
    HOT_MODULES,
    os.environ.get(ENVIRONMENT_VARIABLE, "") or "auto",
)


def install() -> None:
    """Ask the finder first from now on. Once in a process."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def running() -> Running:
    """Which form of the hot modules runs in this process. Raises CompiledUnavailable."""
    return _FINDER.running()
