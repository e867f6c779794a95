"""Runs a cluster: the database, the brokers, and the looks at them, until a signal or the end of all brokers."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from operator import itemgetter
from typing import Final

from strandline.admin.commands.cluster.database import check_database_can_be_started, database_of
from strandline.admin.commands.cluster.events import ClusterEvent, ClusterScreen
from strandline.admin.commands.cluster.log_lines import LogFollower
from strandline.admin.commands.cluster.looking import ClusterWatch
from strandline.admin.commands.cluster.plan import ClusterPlan, check_ports_are_free, write_settings
from strandline.admin.commands.cluster.processes import ChildBroker
from strandline.admin.commands.cluster.view import UP, ClusterView
from strandline.client import CommandFailed
from strandline.clock import Clock, SystemClock

_EVERY_S: Final = 1.0
_WHILE_STARTING_S: Final = 0.2
# Looking costs the brokers something: at most so large a part of the time.
_PART_OF_TIME: Final = 0.2
_STOP_S: Final = 15.0
_LOCK_S: Final = 30.0
_FAILED: Final = 1
_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_ONE_SIGNAL_S: Final = 0.5


async def run_cluster(plan: ClusterPlan, screen: ClusterScreen, *, database_url: str, restarts: bool) -> int:
    """Run it until SIGTERM or SIGINT, or until no broker runs; the exit status. Raises CommandFailed.

    A second signal ends the brokers at once.
    """
    clock = SystemClock()
    if not database_url:
        check_database_can_be_started()
    signals = StopSignals(clock)
    signals.listen()
    with closing(screen):
        async with _locked(plan, screen, clock, signals.stop) as lock:
            check_ports_are_free(plan)
            async with database_of(plan, database_url, screen, clock, lock=lock) as url:
                for broker in plan.brokers:
                    write_settings(broker, plan.settings, url)
                children = [ChildBroker(one, screen, clock, lock=lock, restarts=restarts) for one in plan.brokers]
                return await _RunningCluster(plan, children, screen, clock).run(signals)


class StopSignals:
    """SIGTERM and SIGINT: the first one says stop, and a later one hurry. Until the process ends."""

    def __init__(self, clock: Clock) -> None:
        self.stop, self.hurry = asyncio.Event(), asyncio.Event()
        self._clock = clock
        self._stopped_at = 0.0

    def listen(self) -> None:
        """Take them from now on."""
        for number in _STOP_SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self.take)

    def take(self) -> None:
        """One has come. Programs that pass on Ctrl-C make two signals of it: those that come together are one."""
        now = self._clock.monotonic()
        if not self.stop.is_set():
            self._stopped_at = now
            self.stop.set()
        elif now - self._stopped_at >= _ONE_SIGNAL_S:
            self.hurry.set()


@asynccontextmanager
async def _locked(plan: ClusterPlan, screen: ClusterScreen, clock: Clock, stop: asyncio.Event) -> AsyncIterator[int]:
    """The lock on the directory, which the brokers hold as well: after a command that was killed they are stopping."""
    plan.directory.mkdir(parents=True, exist_ok=True)
    lock = os.open(plan.directory / "cluster.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = clock.monotonic() + _LOCK_S
        if not _take(lock):
            text = f"a cluster runs in {plan.directory}; waiting for {_LOCK_S:.0f} s that it ends"
            screen.tell(ClusterEvent(kind="waiting", text=text))
        while not _take(lock):
            if clock.monotonic() > deadline or await clock.wait_set(stop, within=_WHILE_STARTING_S):
                raise CommandFailed(
                    f"A cluster runs in {plan.directory} already. Stop it, or name another directory with --data-dir."
                )
        yield lock
    finally:
        os.close(lock)


def _take(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class _RunningCluster:
    """The brokers of a cluster while they run."""

    def __init__(self, plan: ClusterPlan, children: Sequence[ChildBroker], screen: ClusterScreen, clock: Clock) -> None:
        self._plan, self._children, self._screen, self._clock = plan, children, screen, clock
        self._watch = ClusterWatch(plan.brokers)
        self._logs = {one.node_id: LogFollower(one.log_file) for one in plan.brokers}
        self._up: set[tuple[int, int | None]] = set()
        """Brokers and their processes: one may die and be up again between two looks."""
        self._was_ready = False
        self._began = clock.monotonic()

    async def run(self, signals: StopSignals) -> int:
        """Start the brokers; the exit status when all of them have ended."""
        runs = [asyncio.ensure_future(child.run()) for child in self._children]
        ended = asyncio.ensure_future(asyncio.wait(runs, return_when=asyncio.FIRST_EXCEPTION))
        looking = asyncio.ensure_future(self._look_all_the_time())
        stopped = asyncio.ensure_future(signals.stop.wait())
        try:
            await asyncio.wait((ended, looking, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            looking.cancel()
            stopped.cancel()
            await self._stop(signals.hurry)
            outcomes = await asyncio.gather(looking, *runs, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, Exception):  # for one, there is nothing left to print to
                raise outcome
        self._show_logs()
        status = 0 if signals.stop.is_set() and not any(child.status for child in self._children) else _FAILED
        self._screen.tell(ClusterEvent(kind="stopped", text="no broker runs any more", details={"status": status}))
        return status

    async def _stop(self, hurry: asyncio.Event) -> None:
        """Cleanly; brokers that take too long, or longer than the second signal, are killed."""
        for child in self._children:
            child.stop()
        ended = asyncio.gather(*(child.wait_ended() for child in self._children))
        asked = asyncio.ensure_future(self._clock.wait_set(hurry, within=_STOP_S))
        await asyncio.wait((ended, asked), return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        for child in self._children:
            child.kill()
        await ended

    async def _look_all_the_time(self) -> None:
        for child in self._children:
            await child.started.wait()
        while True:
            began = self._clock.monotonic()
            view = await self._watch.look({child.plan.node_id: child.pid for child in self._children if child.pid})
            self._show_logs()
            self._tell_who_is_up(view)
            self._screen.show(view)
            took = self._clock.monotonic() - began
            is_waiting = any(line.pid is not None and line.state != UP for line in view.brokers)
            usual = _WHILE_STARTING_S if is_waiting else _EVERY_S
            await self._clock.sleep(max(usual - took, took * (1 / _PART_OF_TIME - 1)))

    def _show_logs(self) -> None:
        for node_id, follower in self._logs.items():
            found = follower.read()
            for line in found.lines:
                self._screen.tell(ClusterEvent(kind="log", node_id=node_id, text=line))
            if found.left_out:
                text = f"... and {found.left_out} more lines in its log"
                self._screen.tell(ClusterEvent(kind="log", node_id=node_id, text=text))

    def _tell_who_is_up(self, view: ClusterView) -> None:
        up = {(line.plan.node_id, line.pid) for line in view.brokers if line.state == UP}
        for node_id, _ in sorted(up - self._up, key=itemgetter(0)):
            self._screen.tell(ClusterEvent(kind="broker_up", node_id=node_id, text="serves clients"))
        self._up = up
        if view.up == len(view.brokers) and not self._was_ready:
            self._was_ready = True
            seconds = self._clock.monotonic() - self._began
            bootstrap = self._plan.bootstrap
            text = f"the cluster is ready after {seconds:.1f} s; clients bootstrap from {bootstrap}"
            details = {"bootstrap": bootstrap, "seconds": round(seconds, 3)}
            self._screen.tell(ClusterEvent(kind="ready", text=text, details=details))
