"""Documents do not point at what is not there, and do not speak of what the program does not know."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import typer.main
from typer.core import TyperGroup

from strandline.admin.commands.main import app
from strandline.admin.commands.start import start_broker

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
_SHELL = re.compile(r"^```sh\n(.*?)^```", re.M | re.S)
_COMMAND = re.compile(r"^(?:\.venv/bin/)?strandline (.+)$", re.M)
_METRIC = re.compile(r"`((?:strandline|kafka)_[a-z_]+)[`{]")
_SETTING = re.compile(
    r"`((?:inkless|strandline\.(?:objects|metadata|http|data|remote)|log\.diskless|rsm\.config|rlmm\.config"
    r"|remote\.(?:log|fetch|list|storage)|local\.retention)\.[a-z0-9.]+[a-z0-9])(?:`|=)"
)
_MAKE = re.compile(r"\bmake ([a-z]+)\b(?=`|\n|  )")


def _documents() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.split()]


@pytest.mark.parametrize("document", _documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in _LINK.findall(document.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


@pytest.mark.parametrize("document", _documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_make_targets_exist(document: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(_MAKE.findall(document.read_text(encoding="utf-8"))) <= targets


def test_the_decisions_are_numbered_without_gaps_and_have_their_sections() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [int(page.name[:4]) for page in pages] == list(range(len(pages)))
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert text.startswith(f"# {page.name[:4]}: ")
        assert re.findall(r"^## (.+)$", text, re.M) == ["Context", "Decision", "Alternatives", "Consequences"]


@pytest.mark.parametrize("document", _documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_are_understood(document: Path) -> None:
    for block in _SHELL.findall(document.read_text(encoding="utf-8")):
        for command in _COMMAND.findall(block.replace("\\\n", " ")):
            name, *words = shlex.split(command, comments=True)
            if name == "broker":
                assert start_broker(words, lambda _: None) == 0, command
            else:
                _parse([name, *words])


def _parse(words: list[str]) -> None:
    """As far as the program would, before it does anything. Raises the error it would show."""
    command = typer.main.get_command(app)
    while isinstance(command, TyperGroup):
        found = command.get_command(typer.Context(command), words[0])
        assert found is not None, f"there is no command {words[0]}"
        command, words = found, words[1:]
    command.make_context("strandline", words)


@pytest.mark.parametrize("document", _documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_settings_and_metrics_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    settings = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    metrics = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert [name for name in _SETTING.findall(text) if f"`{name}`" not in settings] == []
    assert [name for name in _METRIC.findall(text) if f"`{name}`" not in metrics] == []


def test_the_map_lists_the_packages_that_exist() -> None:
    """All modules and packages at the top, and the packages in them: what lies deeper is told by their docstrings."""
    sources = ROOT / "src" / "strandline"
    section = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split("\n## Map\n")[1].split("\n## ")[0]
    listed = set()
    for names, contents in re.findall(r"^\| (`.+?) \| (.+) \|$", section, re.M):
        tops = [name.removesuffix(".py") for name in re.findall(r"`([^`]+)`", names)]
        inner = re.findall(r"`((?:[a-z_]+/)+)`", contents) if len(tops) == 1 else []
        listed |= {*tops, *(f"{tops[0]}/{name.rstrip('/')}" for name in inner)}
    inits = (path.parent.relative_to(sources) for path in sources.glob("**/__init__.py"))
    packages = {str(path) for path in inits if path.parts and path.parts[0] != "__compiled__"}
    there = packages | {path.stem for path in sources.glob("*.py")} - {"__init__"}
    assert {name for name in there if name.count("/") < 2} - listed == set()
    assert listed - there == set()


def test_the_walks_of_the_architecture_page_name_modules_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", text))
    assert {name for name in named if not (ROOT / "src" / "strandline" / name).is_file()} == set()
    steps = re.findall(r"^\*\*(?:A|An) .+?(?=\n\n)", text, re.M | re.S)
    assert len(steps) == 6
    assert all("9. " not in walk for walk in steps)


def test_the_tests_of_every_package_are_found_by_its_path_or_by_the_table() -> None:
    sources, tests = ROOT / "src" / "strandline", ROOT / "tests"
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split("\n### Where the tests of a module are\n")[1]
    rows = re.findall(r"^\| (`.+?`) \| (`.+`.*) \|$", section, re.M)
    listed = {package: places for packages, places in rows for package in re.findall(r"`([^`]+)`", packages)}
    packages = (path.parent.relative_to(sources) for path in sources.glob("**/__init__.py"))
    without = {str(path) for path in packages if not any((tests / path).glob("**/test_*.py"))}
    ours = {path for path in without if path.split("/")[0] not in {"__compiled__", "testing"}}
    assert {path for path in ours if "migrations" not in path} == set(listed)
    for places in listed.values():
        assert all((ROOT / place).exists() for place in re.findall(r"`([^`]+)`", places))
