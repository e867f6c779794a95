"""Signals that stop a process cleanly: the first one counts, and no later one changes how the process ends."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_PATIENCE_S: Final = 20.0


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


def stop_at_end_of_input(fd: int = 0) -> None:
    """From now on, the process gets a SIGTERM when its standard input ends, and is ended hard if that does not do it.

    That input is a pipe, and only the process that has started this one holds its other end: when that process ends,
    however that comes about, nobody else would stop this one.
    """
    threading.Thread(target=_stop_at_end, args=(fd,), name="end-of-input", daemon=True).start()


def _stop_at_end(fd: int) -> None:
    while os.read(fd, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(_PATIENCE_S)
    os._exit(1)


def _ignore(number: signal.Signals) -> None:
    """The system is told first: Python prints a traceback about a signal that has arrived but whose handler has gone
    when its turn comes."""
    ctypes.CDLL(None).signal(number, ctypes.c_void_p(signal.SIG_IGN.value))
    signal.signal(number, signal.SIG_IGN)
