"""The entry point: `strandline`, or `python -m strandline`."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Final

from strandline.compiled.finder import CompiledUnavailable

if TYPE_CHECKING:
    from strandline.config import Settings

logger = logging.getLogger(__name__)

_ENDED_WITHIN: Final = 1.0


def main() -> None:
    """Run the command named on the command line.

    `strandline broker` is run without the modules of the other commands: what they need (typer, rich) would only delay
    its start. So is `strandline compile`, which must work where there are no compiled modules yet.
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

        status = start_broker(arguments[1:], _run)
        _leave_hanging_threads(status)
        return status
    from strandline.admin.commands.main import run

    return run()


def _run(settings: Settings) -> None:
    from strandline.broker import run_broker

    run_broker(settings)


def _leave_hanging_threads(status: int) -> None:
    """End the process if threads hang in the kernel: Python would wait for them, although the broker is closed."""
    until = time.monotonic() + _ENDED_WITHIN
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(max(until - time.monotonic(), 0))
            if thread.is_alive():
                logger.warning("the thread %s hangs: the broker ends without it", thread.name)
                logging.shutdown()
                os._exit(status)


if __name__ == "__main__":
    main()
