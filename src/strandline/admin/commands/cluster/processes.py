"""The process of one broker: started, started again, stopped within a bounded time.

A broker holds the end of a pipe whose other end only this process has, and stops when that is closed: it does not
outlive the command, however that ends.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from typing import Final

from strandline.admin.commands.cluster.events import ClusterEvent, ClusterScreen
from strandline.admin.commands.cluster.log_lines import last_sentence
from strandline.admin.commands.cluster.plan import BrokerPlan
from strandline.admin.commands.start import EXIT_MISUSED
from strandline.clock import Clock

# A broker that ended sooner has to wait before it is started again, twice as long each time.
_LONG_ENOUGH_S: Final = 10.0
_FIRST_DELAY_S: Final = 1.0
_LONGEST_DELAY_S: Final = 30.0
# It ends by the signal itself where it has not got as far as to stop cleanly.
_STOPPED: Final = (0, -signal.SIGTERM)


class ChildBroker:
    """One broker as a child of this process."""

    def __init__(self, plan: BrokerPlan, screen: ClusterScreen, clock: Clock, *, lock: int, restarts: bool) -> None:
        """`lock` is the file descriptor that says to later commands that this broker still runs."""
        self.plan = plan
        self.status = 0
        """The exit status of its last process."""
        self.started = asyncio.Event()
        """Set when it has had a process."""
        self._screen, self._clock, self._lock, self._restarts = screen, clock, lock, restarts
        self._process: Process | None = None
        self._stopping = asyncio.Event()
        self._delay_s = 0.0

    @property
    def pid(self) -> int | None:
        """Of the process, None if none is running."""
        process = self._process
        return None if process is None or process.returncode is not None else process.pid

    async def run(self) -> None:
        """Start it, and return when it has ended and is not to be started again."""
        while not self._stopping.is_set():
            began = self._clock.monotonic()
            process = await self._start()
            if self._stopping.is_set():
                self.stop()
            self.status = await process.wait()
            self._tell_end(process.pid)
            if self._stopping.is_set() or not self._restarts or self.status == EXIT_MISUSED:
                return
            ran_long = self._clock.monotonic() - began >= _LONG_ENOUGH_S
            delay = 0.0 if ran_long else self._delay_s
            self._delay_s = min(max(2 * delay, _FIRST_DELAY_S), _LONGEST_DELAY_S)
            await self._clock.wait_set(self._stopping, within=delay)

    async def _start(self) -> Process:
        plan = self.plan
        arguments = ("-m", "strandline", "broker", "--config", str(plan.settings_file), "--stop-at-end-of-input")
        with plan.log_file.open("ab") as log:
            # In a session of its own: Ctrl-C reaches a broker only through `stop`, once.
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *arguments,
                stdin=PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(self._lock,),
            )
        self._process = process
        self.started.set()
        self._screen.tell(
            ClusterEvent(
                kind="broker_started",
                node_id=plan.node_id,
                text=f"started as process {process.pid}, for clients at {plan.address}; its log is {plan.log_file}",
                details={
                    "pid": process.pid,
                    "kafka": plan.address,
                    "http": plan.http_address,
                    "rack": plan.rack,
                    "settings": str(plan.settings_file),
                    "log": str(plan.log_file),
                },
            )
        )
        return process

    def _tell_end(self, pid: int) -> None:
        details = {"pid": pid, "status": self.status}
        is_over = self._restarts or self._stopping.is_set()
        by_hand = "" if is_over else f"; start it with: strandline broker --config {self.plan.settings_file}"
        if self._stopping.is_set() and self.status in _STOPPED:
            self.status = 0
            text, is_trouble = "has stopped", False
        elif self.status == 0:
            text, is_trouble = f"was stopped by another program{by_hand}", True
        elif self.status < 0:
            text, is_trouble = f"was ended by {signal.Signals(-self.status).name}{by_hand}", True
        else:
            reason = last_sentence(self.plan.log_file).rstrip(".")
            text, is_trouble = f"has failed with status {self.status}: {reason or f'see {self.plan.log_file}'}", True
        event = ClusterEvent(
            kind="broker_ended", node_id=self.plan.node_id, text=text, is_trouble=is_trouble, details=details
        )
        self._screen.tell(event)

    async def wait_ended(self) -> None:
        """Return when it runs no process."""
        if self._process is not None:
            await self._process.wait()

    def stop(self) -> None:
        """Let it stop cleanly; also one that is paused, which would not notice until it goes on."""
        self._stopping.set()
        self._send(signal.SIGTERM)
        self._send(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once."""
        self._stopping.set()
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        process = self._process
        if process is not None and process.returncode is None:
            process.send_signal(number)
