"""The `strandline` command: what it can do, and how it ends."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version

import typer

from strandline.admin.commands.cluster.command import cluster
from strandline.admin.commands.configs import configs_app
from strandline.admin.commands.dump.log import log_app
from strandline.admin.commands.dump.metadata import metadata_app
from strandline.admin.commands.dump.remote import remote_app
from strandline.admin.commands.dump.wal import wal_app
from strandline.admin.commands.fsck.command import fsck
from strandline.admin.commands.groups.command import groups_app
from strandline.admin.commands.migration import migration_app
from strandline.admin.commands.output import AsJson, print_json, print_line
from strandline.admin.commands.stores import stores_app
from strandline.admin.commands.tiering import tiering_app
from strandline.admin.commands.topics import topics_app
from strandline.admin.commands.transactions.command import transactions_app
from strandline.client import CommandFailed

app = typer.Typer(
    name="strandline",
    help="A Kafka-compatible broker, and commands to look at it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
    epilog="Start with: strandline broker. Each command explains itself with --help.",
)
app.add_typer(topics_app, name="topics")
app.add_typer(configs_app, name="configs")
app.add_typer(groups_app, name="groups")
app.add_typer(log_app, name="log")
app.add_typer(metadata_app, name="metadata")
app.add_typer(migration_app, name="migration")
app.add_typer(remote_app, name="remote")
app.add_typer(stores_app, name="stores")
app.add_typer(tiering_app, name="tiering")
app.add_typer(transactions_app, name="transactions")
app.add_typer(wal_app, name="wal")
app.command()(cluster)
app.command()(fsck)


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
    rich_help_panel=None,
)
def broker(context: typer.Context) -> None:
    """Run a broker in the foreground. See: strandline broker --help."""
    # The entry point takes `broker` before this module is loaded; here it is only listed.
    raise CommandFailed("The word broker must come first after strandline: strandline broker [OPTIONS].")


@app.command(
    "compile",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
    rich_help_panel=None,
)
def compile_(context: typer.Context) -> None:
    """Compile the modules that run for each request. See: strandline compile --help."""
    # Taken by the entry point as well: it must run where compiled modules are required and there are none.
    raise CommandFailed("The word compile must come first after strandline: strandline compile [OPTIONS].")


@app.command()
def version(as_json: AsJson = False) -> None:
    """Print the version.

    Example: strandline version
    """
    number = installed_version("strandline")
    if as_json:
        print_json({"version": number})
    else:
        print_line(f"strandline {number}")


def run(arguments: list[str] | None = None) -> int:
    """Run one command; its exit status: 0 done, 1 failed, 2 misused; fsck says what its own mean.

    Failures are one sentence on standard error.
    """
    try:
        app(args=arguments, prog_name="strandline")
    except CommandFailed as error:
        print(f"strandline: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The program that reads the pipe (head, less) has closed it.
        sys.stderr.close()
        return 0
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    return 0
