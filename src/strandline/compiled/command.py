"""`strandline compile`: compile the hot modules. Parsed by argparse, and without importing any of them."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from strandline.compiled.build import (
    CannotCompile,
    CompilationFailed,
    is_current,
    make_build,
    missing_tools,
    only_builder,
)
from strandline.compiled.modules import HOT_MODULES

_DESCRIPTION: Final = """\
Compile the modules that run for each request with mypyc and a C compiler. Brokers that start afterwards use them, for
as long as the sources stay what they are; then they run as plain Python again, until this command is repeated.
"""


def compile_hot_modules(arguments: Sequence[str]) -> int:
    """Run the command; its exit status: 0 done or nothing to do, 1 failed."""
    parser = argparse.ArgumentParser(prog="strandline compile", description=_DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--force", action="store_true", help="also if the build that is there is up to date")
    parser.add_argument(
        "--if-possible",
        action="store_true",
        help="where tools are missing or the package cannot be written, say so and end with status 0",
    )
    options = parser.parse_args(arguments)
    package = Path(__file__).resolve().parents[1]
    try:
        if missing_tools() is None and not options.force and is_current(package):
            return _up_to_date()
        with only_builder(package, _waits):
            if not options.force and is_current(package):
                return _up_to_date()  # another process has made it meanwhile
            began = time.monotonic()
            sources = make_build(package, HOT_MODULES)
    except CannotCompile as error:
        if not options.if_possible:
            return _failed(error)
        print(f"Hot modules are not compiled, and run as plain Python. {error}")
        return 0
    except (CompilationFailed, OSError) as refusal:
        return _failed(refusal)
    seconds = time.monotonic() - began
    print(f"Compiled {len(HOT_MODULES)} hot modules (made from {sources} files) in {seconds:.0f} seconds.")
    return 0


def _up_to_date() -> int:
    print("The compiled hot modules are up to date.")
    return 0


def _waits() -> None:
    print("Another process is compiling the hot modules: waiting for it.", flush=True)


def _failed(error: Exception) -> int:
    print(f"strandline: {error} The hot modules run as plain Python.", file=sys.stderr)
    return 1
