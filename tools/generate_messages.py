"""Write `src/strandline/wire/messages/` from kio's description of Kafka's messages.

    .venv/bin/python tools/generate_messages.py            # writes
    .venv/bin/python tools/generate_messages.py --check    # fails if a file is not what it would write

One module per API: a dataclass per struct (the union of all versions) and, for request and response, a `read_` and a
`write_` function that take the version. The code is meant to be read: consecutive numbers are read by one struct, and
fields that exist in some versions only stand under one `if`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from kio.schema.index import api_key_map, schema_name_map
from message_module import ModuleSource
from message_schema import MessageSpec, load_message

from strandline.compiled.modules import HOT_MODULES

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "src/strandline/wire/messages"
DATA_SCHEMAS = ("consumer_protocol_subscription", "consumer_protocol_assignment")
# Clients and brokers never send these: they belong to KRaft's quorum, which Strandline does not have.
QUORUM_ONLY = {
    "add_raft_voter",
    "begin_quorum_epoch",
    "controller_registration",
    "end_quorum_epoch",
    "fetch_snapshot",
    "remove_raft_voter",
    "update_raft_voter",
    "vote",
}


def main() -> int:
    files = generate()
    if "--check" not in sys.argv[1:]:
        TARGET.mkdir(parents=True, exist_ok=True)
        for path in TARGET.glob("*.py"):
            path.unlink()
        for name, text in files.items():
            (TARGET / name).write_text(text)
        print(f"{len(files)} modules in {TARGET.relative_to(ROOT)}")
        return 0
    present = {path.name: path.read_text() for path in TARGET.glob("*.py")}
    stale = sorted(name for name in files.keys() | present.keys() if files.get(name) != present.get(name))
    for name in stale:
        print(f"{name} is not what the generator writes: run tools/generate_messages.py")
    return 1 if stale else 0


def generate() -> dict[str, str]:
    """The text of every module by its file name."""
    files = {"__init__.py": _PACKAGE_DOCSTRING}
    rows: list[tuple[int, str, MessageSpec]] = []
    for key, schema in sorted(api_key_map.items()):
        if schema in QUORUM_ONLY:
            continue
        versions = list(schema_name_map[schema])
        request, response = (load_message(schema, kind, versions) for kind in ("request", "response"))
        rows.append((key, schema, request))
        is_hot = f"wire.messages.{schema}" in HOT_MODULES
        files[f"{schema}.py"] = ModuleSource(schema, [request, response], is_hot=is_hot).text()
    for schema in DATA_SCHEMAS:
        message = load_message(schema, "data", list(schema_name_map[schema]))
        files[f"{schema}.py"] = ModuleSource(schema, [message]).text()
    files["index.py"] = _index(rows)
    return _formatted(files)


def _index(rows: list[tuple[int, str, MessageSpec]]) -> str:
    lines = [_INDEX_HEAD]
    lines += [f"    {schema.upper()} = {key}" for key, schema, _ in rows]
    lines += ["", "", "KNOWN_APIS: Final[Mapping[ApiKey, VersionRange]] = MappingProxyType({"]
    for _, schema, request in rows:
        versions = request.root.versions
        flexible = NEVER if request.first_flexible is None else request.first_flexible
        lines.append(f"    ApiKey.{schema.upper()}: VersionRange({versions.low}, {versions.high}, {flexible}),")
    lines.append("})")
    return "\n".join(lines) + "\n"


NEVER = "NEVER_FLEXIBLE"


def _formatted(files: dict[str, str]) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as directory:
        for name, text in files.items():
            (Path(directory) / name).write_text(text)
        ruff = [str(Path(sys.executable).parent / "ruff")]
        config = ["--config", str(ROOT / "pyproject.toml")]
        subprocess.run([*ruff, "check", "-q", "--select", "I,F401", "--fix", *config, directory], check=True)
        subprocess.run([*ruff, "format", "-q", *config, directory], check=True)
        return {name: (Path(directory) / name).read_text() for name in files}


_PACKAGE_DOCSTRING = '''"""Kafka's messages, one module per API, written by tools/generate_messages.py. Do not edit.

Import the module you need: `wire.registry` imports them at first use, so APIs that are never called cost nothing.
"""
'''

_INDEX_HEAD = '''"""Which APIs there are, in which versions. Written by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

NEVER_FLEXIBLE: Final = 0x7FFF


class VersionRange(NamedTuple):
    """The versions of an API, both ends included, and the first with compact types and tagged fields."""

    min: int
    max: int
    first_flexible: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.min <= version <= self.max


class ApiKey(IntEnum):
    """Kafka's number of each API."""
'''

if __name__ == "__main__":
    sys.exit(main())
