"""`strandline cluster`: several broker processes on this machine that share one PostgreSQL database.

For trying things out: each broker has a file with its settings in the data directory, so that it can be killed and
started again by hand. Brokers on several machines are started one by one with `strandline broker`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from strandline.admin.commands.output import print_line
from strandline.client import CommandFailed

_HOST = "127.0.0.1"


def cluster(
    brokers: Annotated[int, typer.Option("--brokers", min=1, max=99, help="How many brokers.")] = 3,
    metadata_url: Annotated[
        str,
        typer.Option(
            "--metadata-url",
            metavar="URL",
            help="The PostgreSQL database that they share: postgresql://user@host/name.",
        ),
    ] = "",
    data_dir: Annotated[Path, typer.Option("--data-dir", metavar="DIR", help="Where everything is kept.")] = Path(
        "strandline-cluster"
    ),
    port: Annotated[int, typer.Option("--port", help="The Kafka port of the first broker; the others follow.")] = 9092,
    http_port: Annotated[int, typer.Option("--http-port", help="The HTTP port of the first broker.")] = 9644,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of all brokers; may be repeated.")
    ] = None,
) -> None:
    """Run several brokers on this machine until SIGTERM or Ctrl-C. They need a PostgreSQL database to share.

    Example: strandline cluster --brokers 3 --metadata-url postgresql://postgres@localhost/strandline
    """
    if not metadata_url.startswith(("postgresql://", "postgres://")):
        raise CommandFailed(
            "Several brokers need one PostgreSQL database: name it with --metadata-url postgresql://user@host/database."
        )
    common = _common_settings(data_dir, metadata_url, assignments or [])
    files = [
        _write_settings(data_dir, number, {**common, **_own_settings(data_dir, number, port, http_port)})
        for number in range(1, brokers + 1)
    ]
    sys.exit(_run(files))


def _common_settings(data_dir: Path, metadata_url: str, assignments: Sequence[str]) -> dict[str, str]:
    settings = {
        "strandline.metadata.url": metadata_url,
        "strandline.objects.url": f"file://{data_dir.resolve()}/objects",
        "rsm.config.url": f"file://{data_dir.resolve()}/remote",
    }
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise CommandFailed(f"--set needs name=value, but was given {assignment!r}.")
        settings[name.strip()] = value
    return settings


def _own_settings(data_dir: Path, number: int, port: int, http_port: int) -> dict[str, str]:
    return {
        "node.id": str(number),
        "listeners": f"PLAINTEXT://{_HOST}:{port + number - 1}",
        "strandline.http.listen": f"{_HOST}:{http_port + number - 1}",
        "strandline.data.dir": str(data_dir.resolve() / f"broker-{number}"),
    }


def _write_settings(data_dir: Path, number: int, settings: Mapping[str, str]) -> Path:
    """A file that only its owner may read: the database's address may hold a password."""
    data_dir.mkdir(parents=True, exist_ok=True)
    path = data_dir / f"broker-{number}.properties"
    lines = [f"{name}={value}".replace("\\", "\\\\") + "\n" for name, value in settings.items()]
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.writelines(lines)
    return path


def _run(files: Sequence[Path]) -> int:
    """Run a broker per file until all have ended; the highest of their exit statuses."""
    running: list[subprocess.Popen[bytes]] = []
    is_stopping = False

    def stop(_: int, __: FrameType | None) -> None:
        nonlocal is_stopping
        is_stopping = True
        for process in running:
            process.terminate()  # has no effect on a process that has ended

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    for file in files:
        if is_stopping:
            break
        # In a session of its own: Ctrl-C reaches a broker only through `stop`, once.
        command = [sys.executable, "-m", "strandline", "broker", "--config", str(file)]
        running.append(subprocess.Popen(command, start_new_session=True))
        print_line(f"broker of {file} runs with process id {running[-1].pid}")
    return max((abs(process.wait()) for process in running), default=0)
