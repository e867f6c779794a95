"""Every module can be the first one of the package that is imported: no import goes round in a circle.

A circle is noticed only by who enters it at the wrong place: a worker of Spark, a notebook, the tool of a user.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

SOURCES = Path(__file__).parents[1] / "src"
# One process for each module, forked from one that has loaded the libraries and nothing of ours.
PROGRAM: Final = """
import asyncio, importlib, os, sys
libraries = "uvloop prometheus_client crc32c cramjam rich starlette typer uvicorn pyspark pyarrow"
for library in libraries.split():
    importlib.import_module(library)
for name in sys.stdin.read().split():
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(name)
        except BaseException as error:
            print(f"{name}: {error!r}", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_module_can_be_imported_first() -> None:
    paths = (path.relative_to(SOURCES).with_suffix("") for path in sorted((SOURCES / "strandline").rglob("*.py")))
    parts = (path.parts[:-1] if path.name == "__init__" else path.parts for path in paths)
    names = [".".join(name) for name in parts if not {"__compiled__", "__main__", "messages"} & {*name}]
    assert len(names) > 500
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input="\n".join(names), capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
