"""The house rules that a tool can check: names, error sentences, loggers, sizes of modules."""

from __future__ import annotations

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.order import LONGEST, TESTS

ROOT = Path(__file__).parents[1] / "src" / "strandline"
GENERATED = ROOT / "wire" / "messages"
MOST_LINES = 400
# What puts a broker together is read by everyone who adds a component: a function of it fits a screen.
ASSEMBLY = ROOT / "assembly"
MOST_LINES_OF_ASSEMBLY = 45
# A sentence may begin with the name that it is about: a setting, an option, a file.
_NAME = re.compile(r"[a-z_][\w-]*([._][\w-]+|=|://)|--|acks\b|listeners\b")
# The last part of a sentence may be another sentence, which has its own full stop.
_SENTENCES = {"answer", "bug", "cause", "error", "explain", "failure", "hint", "reason", "sentence", "shown", "trouble"}
# Texts that Kafka sends word for word; tools and people look for them.
_KAFKAS = (
    "Broker ID ",
    "Broker id must be an integer",
    "DescribeTopicPartitionsRequest cursor",
    "Error due to duplicate config keys",
    "Expected cluster ID ",
    "Null value not supported for ",
    "Topic '",
    "Topic name is invalid",
    "Unexpected broker id",
    "partitions should be a consecutive",
)


@cache
def _modules() -> Mapping[Path, ast.Module]:
    paths = (path for path in sorted(ROOT.rglob("*.py")) if GENERATED not in path.parents)
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


@cache
def _nodes() -> tuple[tuple[str, ast.AST], ...]:
    paths = ((str(path.relative_to(ROOT)), tree) for path, tree in _modules().items())
    return tuple((path, node) for path, tree in paths for node in ast.walk(tree))


def test_a_class_name_means_one_thing_in_the_whole_tree() -> None:
    places = defaultdict(list)
    for module, node in _nodes():
        if isinstance(node, ast.ClassDef):
            places[node.name].append(module)
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}


def test_no_module_is_longer_than_the_house_allows() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in _modules()}
    assert {str(path): count for path, count in lines.items() if count > MOST_LINES} == {}


def test_functions_that_put_a_broker_together_fit_a_screen() -> None:
    lengths = {
        f"{path.name}:{node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path, tree in _modules().items()
        if path.is_relative_to(ASSEMBLY)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert "server.py:build_server" in lengths
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES_OF_ASSEMBLY} == {}


def test_a_tier_that_is_off_is_an_implementation() -> None:
    """Not None: `NoRemoteStorage` and `DisklessNotOpen` answer what the open tiers answer."""
    asked = [
        f"{module}:{node.lineno}"
        for module, node in _nodes()
        if isinstance(node, ast.Compare)
        and isinstance(node.ops[0], ast.Is | ast.IsNot)
        and ast.unparse(node.left).rpartition(".")[2].lstrip("_") in ("tier", "engine")
        and ast.unparse(node.comparators[0]) == "None"
        and not module.startswith("admin/commands/")  # the tier that an option names
    ]
    assert asked == []


def test_loggers_are_named_after_their_modules() -> None:
    wrong = [
        f"{module}:{node.lineno}"
        for module, node in _nodes()
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "getLogger"
        and not (node.args and isinstance(node.args[0], ast.Name) and node.args[0].id == "__name__")
        and module != "server/handlers/configs/loggers.py"  # clients name the loggers there
    ]
    assert wrong == []


def test_errors_are_sentences() -> None:
    """A capital letter or the name of a setting at the beginning, a full stop at the end."""
    errors = _error_classes()
    wrong = []
    for module, node in _nodes():
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in errors):
            continue
        text = node.args[0] if node.args else None
        if not isinstance(text, ast.JoinedStr) and not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
            continue
        parts = text.values if isinstance(text, ast.JoinedStr) else [text]
        if not _literal(parts[0]).startswith(_KAFKAS) and not (_begins_well(parts[0]) and _ends_well(parts[-1])):
            wrong.append(f"{module}:{text.lineno}: {ast.unparse(text)}")
    assert wrong == []


def _literal(part: ast.expr) -> str:
    """The text of a part; empty if it is computed."""
    return part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else ""


def _begins_well(part: ast.expr) -> bool:
    text = _literal(part)
    return not text[:1].islower() or _NAME.match(text) is not None


def _ends_well(part: ast.expr) -> bool:
    if isinstance(part, ast.Constant):
        return _literal(part).endswith((".", "?"))
    value = part.value if isinstance(part, ast.FormattedValue) else part
    if isinstance(value, ast.Call):
        value = value.func
    name = value.id if isinstance(value, ast.Name) else value.attr if isinstance(value, ast.Attribute) else ""
    return name.strip("_") in _SENTENCES


def _error_classes() -> set[str]:
    """Every exception of ours, and the built-in ones."""
    known = {name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)}
    classes = [node for _, node in _nodes() if isinstance(node, ast.ClassDef)]
    while True:
        more = {
            node.name
            for node in classes
            if node.name not in known and any(isinstance(base, ast.Name) and base.id in known for base in node.bases)
        }
        if not more:
            return known
        known |= more


def test_the_files_of_tests_that_begin_first_exist_and_are_named_once() -> None:
    assert [name for name in LONGEST if not (TESTS / name).is_file()] == []
    assert len({*LONGEST}) == len(LONGEST)
