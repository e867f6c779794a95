"""Waits for a condition instead of for time to pass."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T | None], *, within: float = 15.0, step: float = 0.02, what: str = "") -> T:
    """Call `condition` until it returns something true, and return that. Fails after `within` seconds."""
    deadline = time.monotonic() + within
    pause = threading.Event()
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {within:g} s in vain for {what or condition}; last seen: {result!r}")
        pause.wait(step)
