"""The entry point: `strandline`, or `python -m strandline`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from strandline.compiled.finder import CompiledUnavailable

if TYPE_CHECKING:
    from strandline.config import Settings


def main() -> None:
    """Run the command named on the command line.

    `strandline broker` has a way of its own that imports nothing but the broker: what the other commands
    need (typer, rich) would only delay its start. So has `strandline compile`, which must not need what it makes.
    """
    try:
        sys.exit(_run_command(sys.argv[1:]))
    except CompiledUnavailable as error:
        sys.exit(f"strandline: {error}")


def _run_command(arguments: list[str]) -> int:
    if arguments[:1] == ["compile"]:
        from strandline.compiled.command import compile_hot_modules

        return compile_hot_modules(arguments[1:])
    if arguments[:1] == ["broker"]:
        from strandline.admin.commands.start import start_broker

        return start_broker(arguments[1:], _run)
    from strandline.admin.commands.main import run

    return run()


def _run(settings: Settings) -> None:
    from strandline.broker import run_broker

    run_broker(settings)


if __name__ == "__main__":
    main()
