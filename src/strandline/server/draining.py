"""The last answers of a broker that stops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from strandline.clock import Clock
from strandline.server.network import NetworkServer

ANSWER_SECONDS: Final = 1.0
UPLOAD_SECONDS: Final = 4.0
LINGER_SECONDS: Final = 0.25


async def answer_producers(network: NetworkServer, clock: Clock, *, is_uploading: Callable[[], bool]) -> None:
    """Take nothing more, and acknowledge what was taken.

    A producer without its answers would send several batches again after the restart, of which a restarted log
    recognises only the newest.
    """
    network.stop_reading()
    await _wait_while(lambda: network.owes_answers, ANSWER_SECONDS, clock)
    await _wait_while(lambda: network.owes_answers and is_uploading(), UPLOAD_SECONDS, clock)
    network.end_connections()
    await _wait_while(lambda: bool(network.connections), LINGER_SECONDS, clock)


async def _wait_while(holds: Callable[[], bool], seconds: float, clock: Clock) -> None:
    deadline = clock.monotonic() + seconds
    while holds() and clock.monotonic() < deadline:
        await clock.sleep(0.01)
