"""Which files a build is made from: hot modules, and what they import from the package, directly or through others."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

_PACKAGE: Final = "strandline"


class UnknownModule(LookupError):
    """A name of the list that is no module of the package."""


def source_of(package: Path, name: str) -> Path | None:
    """The file of a module, by its name below the package; None if there is no such module."""
    base = package.joinpath(*name.split(".")) if name else package
    for file in (base / "__init__.py", base.with_name(f"{base.name}.py")):
        if file.is_file():
            return file
    return None


def imported_sources(package: Path, modules: Sequence[str]) -> list[Path]:
    """The files of `modules` and of all they import, in the order of their paths. Raises UnknownModule."""
    for name in modules:
        if source_of(package, name) is None:
            raise UnknownModule(f"The list of hot modules has {name}, but {package} has no such module.")
    found: dict[str, Path] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        file = source_of(package, name)
        if file is None or name in found:  # a name that is imported from a module need not be a module
            continue
        found[name] = file
        waiting.extend(_imports(file))
        if name:
            waiting.append(name.rpartition(".")[0])  # Python runs the package of a module first
    return sorted({*found.values()})


def _imports(file: Path) -> Iterator[str]:
    """Names below the package that a module imports, anywhere in it. Some are of functions, not of modules."""
    for node in ast.walk(ast.parse(file.read_bytes(), str(file))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            top, _, below = name.partition(".")
            if top == _PACKAGE:
                yield below
