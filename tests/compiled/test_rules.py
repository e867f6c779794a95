"""What compiled code cannot do, looked for in the sources: mypyc does not complain, and a process finds out late."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from strandline.compiled.modules import HOT_MODULES
from strandline.compiled.sources import source_of
from tests.compiled.small_tree import PACKAGE


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _hot_sources() -> Iterator[tuple[str, ast.Module]]:
    for name in HOT_MODULES:
        source = source_of(PACKAGE, name)
        assert source is not None
        yield name, _tree(source)


def _hot_classes() -> Iterator[tuple[str, ast.ClassDef]]:
    for name, tree in _hot_sources():
        yield from ((name, node) for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def _is_native(cls: ast.ClassDef) -> bool:
    return not any("native_class=False" in ast.unparse(one) for one in cls.decorator_list)


def test_no_function_binds_errors_of_two_kinds_to_one_name() -> None:
    """A variable has one type in compiled code: an error of the second kind would become a TypeError."""
    found = []
    for module, tree in _hot_sources():
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                kinds: dict[str, set[str]] = {}
                for node in ast.walk(function):
                    if isinstance(node, ast.ExceptHandler) and node.name is not None and node.type is not None:
                        kinds.setdefault(node.name, set()).add(ast.unparse(node.type))
                found += [f"{module}.{function.name}: {name}" for name, types in kinds.items() if len(types) > 1]
    assert found == []


def test_no_generator_expression_runs_without_end() -> None:
    """A generator expression becomes a list before anybody takes the first item."""
    found = [
        f"{module}: {ast.unparse(node)}"
        for module, tree in _hot_sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.GeneratorExp) and "count()" in ast.unparse(node)
    ]
    assert found == []


def test_no_compiled_class_has_weak_references() -> None:
    """mypyc leaves their slot out; what it does for a class with an interpreted base would crash."""
    found = [
        f"{module}.{cls.name}"
        for module, cls in _hot_classes()
        if _is_native(cls) and "__weakref__" in ast.unparse(cls)
    ]
    assert found == []


def test_no_interpreted_class_inherits_from_a_compiled_one() -> None:
    """It would be refused when it is defined or first used. Names of classes mean one thing in the whole tree."""
    ordinary = {"Exception", "NamedTuple", "Protocol", "Enum", "IntEnum", "enum.Enum", "ValueError"}
    compiled = {
        cls.name
        for _, cls in _hot_classes()
        if _is_native(cls) and not {ast.unparse(base) for base in cls.bases} & ordinary
    }
    hot = {source_of(PACKAGE, name) for name in HOT_MODULES}
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path not in hot:
            for node in ast.walk(_tree(path)):
                if isinstance(node, ast.ClassDef):
                    bases = {ast.unparse(base).partition("[")[0] for base in node.bases}
                    found += [f"{path.relative_to(PACKAGE)}: {node.name}" for base in bases & compiled]
    assert found == []
