"""Waiting for the end of an append in a coroutine. Clients are answered by a call instead, which costs less."""

from __future__ import annotations

import asyncio

from strandline.errors import StrandlineError


class Completion:
    """The end of one append: `done` is its `Done`."""

    __slots__ = ("_future",)

    def __init__(self) -> None:
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def done(self, error: StrandlineError | None) -> None:
        """The append is as durable as its acks ask for, or was prevented by this error."""
        if self._future.done():
            return  # the caller does not wait any more
        if error is None:
            self._future.set_result(None)
        else:
            self._future.set_exception(error)

    async def wait(self, timeout_ms: int | None) -> bool:
        """True when it is durable, False if it is not in time (None: it has all the time it takes).

        Raises the error that prevented it.
        """
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                await self._future
        except TimeoutError:
            return False
        return True
