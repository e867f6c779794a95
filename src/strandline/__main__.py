"""The entry point: `strandline`, or `python -m strandline`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from strandline.config import Settings


def main() -> None:
    """Run the command named on the command line.

    `strandline broker` has a way of its own that imports nothing but the broker: what the other commands
    need (typer, rich) would only delay its start.
    """
    if sys.argv[1:2] == ["broker"]:
        from strandline.admin.commands.start import start_broker

        sys.exit(start_broker(sys.argv[2:], _run))
    from strandline.admin.commands.main import run

    sys.exit(run())


def _run(settings: Settings) -> None:
    from strandline.broker import run_broker

    run_broker(settings)


if __name__ == "__main__":
    main()
