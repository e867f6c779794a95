"""Work that shards do in steps, in one go."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


def take_all(steps: Iterable[None]) -> None:
    """Take every step, with nothing in between."""
    deque(steps, maxlen=0)
