"""Signals that stop a process cleanly: the first one counts, and no later one changes how the process ends."""

from __future__ import annotations

import asyncio
import ctypes
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_signals(stop: asyncio.Event) -> Iterator[None]:
    """Within the block, SIGTERM and SIGINT set `stop`. After it, the process ignores them until it ends."""
    loop = asyncio.get_running_loop()
    # Not by the loop's own handlers: removing those restores the default action for a moment, which ends the process.
    for number in _STOP_SIGNALS:
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.set))
    try:
        yield
    finally:
        for number in _STOP_SIGNALS:
            _ignore(number)


def _ignore(number: signal.Signals) -> None:
    """The system is told first: Python prints a traceback about a signal that has arrived but whose handler has gone
    when its turn comes."""
    ctypes.CDLL(None).signal(number, ctypes.c_void_p(signal.SIG_IGN.value))
    signal.signal(number, signal.SIG_IGN)
