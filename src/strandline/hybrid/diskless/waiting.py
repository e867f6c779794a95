"""Requests that wait until this broker serves new diskless topics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Final

logger = logging.getLogger(__name__)

SERVED_WITHIN_S: Final = 5.0


class ServedWaiters:
    """Requests that wait. `is_unserved` tells whether a topic has partitions that are not served yet."""

    def __init__(self, is_unserved: Callable[[str], bool]) -> None:
        self._is_unserved = is_unserved
        self._waiting: list[tuple[frozenset[str], asyncio.Future[None]]] = []

    async def wait(self, topics: Collection[str], *, within: float) -> None:
        """Return when none of the topics is unserved, or after `within` seconds."""
        waited = frozenset(name for name in topics if self._is_unserved(name))
        if not waited:
            return
        served: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((waited, served))
        try:
            async with asyncio.timeout(within):
                await served
        except TimeoutError:
            logger.warning("%s: not served after %g s", ", ".join(sorted(waited)), within)
        finally:
            self._waiting = [entry for entry in self._waiting if entry[1] is not served]

    def tell(self) -> None:
        """More partitions are served."""
        for topics, served in self._waiting:
            if not served.done() and not any(self._is_unserved(name) for name in topics):
                served.set_result(None)
