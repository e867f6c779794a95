"""Asks a store now and then whether it can be used, so that one that is away is shown before a client needs it.

In the background: nothing waits for a check, and a check that hangs holds up only the next one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

from strandline.clock import Clock
from strandline.health import CHECKS, READS, WRITES, Health
from strandline.objects import ObjectStoreError
from strandline.objects.store import WrongStore
from strandline.remote.ports import RemoteStorageError

logger = logging.getLogger(__name__)

_INTERVAL_S: Final = 10.0
_FIRST_PAUSE_S: Final = 1.0
_WRONG: Final = (WrongStore,)

# Asks the store, for reads or for writes. Raises ObjectStoreErrors or RemoteStorageErrors.
Check: TypeAlias = Callable[[str], Coroutine[Any, Any, None]]


class StoreWatch:
    """Keeps the health of one store up to date.

    Reads are checked all the time. Writes are checked until the first one succeeded and while the newest write failed:
    a bucket that keeps versions would keep those of the checks, and real writes say the same.
    """

    def __init__(
        self,
        health: Health,
        check: Check,
        *,
        clock: Clock,
        deadline: float,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """Nothing is asked while the store is not wanted, nor shown. A check ends after `deadline` seconds."""
        self.health = health
        self.is_wanted = is_wanted
        self._check, self._clock, self._deadline = check, clock, deadline
        self._has_written = False

    async def run(self) -> None:
        """Check until cancelled."""
        try:
            await self._run()
        except Exception:
            logger.exception("%s is not checked any more", self.health.what)
            raise

    async def _run(self) -> None:
        pause = _FIRST_PAUSE_S
        while True:
            self.health.suspected.clear()
            if not self.is_wanted() or await self.check_once():
                pause = _FIRST_PAUSE_S
                await self._clock.sleep(pause)  # failures that follow one another closely are one reason to look
                await self._clock.wait_set(self.health.suspected, within=_INTERVAL_S)
            else:
                await self._clock.sleep(pause)
                pause = min(2 * pause, _INTERVAL_S)

    async def check_once(self) -> bool:
        """Whether the store can be used."""
        if not await self._is_fine(READS):
            return False
        if not self._has_written or self.health.is_failing(WRITES):
            self._has_written = await self._is_fine(WRITES)
            if not self._has_written:
                return False
        self.health.answered(CHECKS)
        return True

    async def _is_fine(self, kind: str) -> bool:
        call = asyncio.ensure_future(self._check(kind))
        alarm = asyncio.ensure_future(self._clock.sleep(self._deadline))
        try:
            with self.health.waiting():
                await asyncio.wait((call, alarm), return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                # Shown before the call has ended: a directory of a server that is away ends no call at all.
                sentence = f"{self.health.url} did not answer within {self._deadline:g} seconds."
                self.health.failed(sentence, CHECKS, is_certain=True)
                call.cancel()
                await asyncio.wait((call,))
                return False
            call.result()
        except (ObjectStoreError, RemoteStorageError) as error:
            self.health.failed(str(error), CHECKS, is_certain=True, is_wrong=isinstance(error, _WRONG))
            return False
        finally:
            for task in (call, alarm):
                task.cancel()
            await asyncio.gather(call, alarm, return_exceptions=True)
        self.health.passed(kind)
        return True
