"""One queue for all the timers of a coordinator, and one task that waits for the earliest of them.

A heartbeat moves the deadline of its session back. That costs one assignment: the entry stays where it is in the queue
and is pushed again when it comes up too early. A coordinator without timers never wakes up.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable

from strandline.clock import Clock

logger = logging.getLogger(__name__)


class Timer:
    """Calls back once, unless it is cancelled first."""

    __slots__ = ("_callback", "_deadline", "_entry_at", "_timers")

    def __init__(self, timers: Timers, deadline: float, callback: Callable[[], None]) -> None:
        self._timers = timers
        self._deadline: float | None = deadline
        self._entry_at: float | None = None
        self._callback = callback

    @property
    def is_pending(self) -> bool:
        return self._deadline is not None

    def cancel(self) -> None:
        """Never call back. Harmless if it already has."""
        if self._deadline is not None:
            self._deadline = None
            self._timers._forget(self)

    def restart(self, delay_ms: float) -> None:
        """Call back `delay_ms` from now instead, also if it has called back or was cancelled before."""
        self._timers.restart(self, delay_ms)


class Timers:
    """The queue. `run_due` fires what is due; `run` keeps doing that at the right moments."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = 0
        self._pending = 0
        self._earlier = asyncio.Event()
        self._waiting_until = float("inf")

    def __len__(self) -> int:
        """How many timers are pending."""
        return self._pending

    @property
    def entries(self) -> int:
        """How many entries the queue holds, stale ones included."""
        return len(self._heap)

    def after(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        timer = Timer(self, 0.0, callback)
        timer._deadline = None
        self.restart(timer, delay_ms)
        return timer

    def next_deadline(self) -> float | None:
        """The clock's monotonic second at which `run_due` next has something to do."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def run_due(self) -> int:
        """Call back every timer whose time has come, in order. The number of them."""
        fired = 0
        now = self._clock.monotonic()
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            timer = heapq.heappop(self._heap)[2]
            timer._entry_at = timer._deadline = None
            self._pending -= 1
            fired += 1
            try:
                timer._callback()
            except Exception:  # one failure must not stop the timers of all others
                logger.exception("a coordinator timer failed")
        return fired

    async def run(self) -> None:
        """Fire timers until cancelled."""
        while True:
            self.run_due()
            self._earlier.clear()
            deadline = self.next_deadline()
            if deadline is None:
                self._waiting_until = float("inf")
                await self._earlier.wait()
            else:
                self._waiting_until = deadline
                await self._clock.wait_set(self._earlier, within=max(deadline - self._clock.monotonic(), 0.0))

    def restart(self, timer: Timer, delay_ms: float) -> None:
        """See `Timer.restart`."""
        deadline = self._clock.monotonic() + max(delay_ms, 0.0) / 1000
        if timer._deadline is None:
            self._pending += 1
        timer._deadline = deadline
        if timer._entry_at is None or deadline < timer._entry_at:
            self._push(timer, deadline)

    def _push(self, timer: Timer, deadline: float) -> None:
        self._order += 1
        timer._entry_at = deadline
        heapq.heappush(self._heap, (deadline, self._order, timer))
        if deadline < self._waiting_until:
            self._earlier.set()

    def _forget(self, timer: Timer) -> None:
        self._pending -= 1
        if len(self._heap) > 64 and len(self._heap) > 4 * self._pending:
            self._rebuild()

    def _rebuild(self) -> None:
        live = [entry for entry in self._heap if entry[2]._deadline is not None and entry[2]._entry_at == entry[0]]
        for _, _, timer in self._heap:
            if timer._deadline is None:
                timer._entry_at = None
        heapq.heapify(live)
        self._heap = live

    def _drop_stale(self) -> None:
        """Bring a live entry with its true deadline to the top."""
        while self._heap:
            at, _, timer = self._heap[0]
            if timer._deadline == at and timer._entry_at == at:
                return
            heapq.heappop(self._heap)
            if timer._entry_at != at:
                continue  # a newer, earlier entry of this timer exists or has fired
            timer._entry_at = None
            if timer._deadline is not None:
                self._push(timer, timer._deadline)
