"""`strandline migration`: switch topics to diskless, see how far that is, abort it, or end it by force."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from strandline.admin.commands.migration_client import KnownStatus, MigrationClient
from strandline.admin.commands.migration_holders import holders_text
from strandline.admin.commands.migration_wait import wait_switched
from strandline.admin.commands.output import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    confirm,
    print_json,
    print_json_line,
    print_line,
    print_table,
)
from strandline.admin.http.migration_json import topic_migration
from strandline.admin.migration_text import cost_of_completing, nothing_to_abort, problems, summary, tier_ranges
from strandline.admin.text import size
from strandline.client import Cluster, CommandFailed, sentences
from strandline.controlplane import MigrationState
from strandline.hybrid.switching.status import PartitionMigration

migration_app = typer.Typer(
    help="Switch classic topics to diskless while clients go on, and see how far that is.", no_args_is_help=True
)
TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="The name of the topic.")]
_STATUS: Final = "See how far it is: strandline migration status"


@migration_app.command("start")
def start(
    topic: TopicName,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    wait: Annotated[bool, typer.Option("--wait", help="Show the progress until the topic is HYBRID.")] = False,
    abort_transactions: Annotated[
        bool,
        typer.Option(
            "--abort-transactions", help="With --wait: abort those that do not end in time, and fence their producers."
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say whether it would be accepted.")] = False,
    as_json: AsJson = False,
) -> None:
    """Switch a topic to diskless. Its records stay where they are; producers and consumers go on.

    The same as setting diskless.enable=true. It runs in the brokers: stopping this command does not stop it.

    Example: strandline migration start orders --wait
    """
    if abort_transactions and not wait:
        raise CommandFailed("--abort-transactions needs --wait: it is this command that aborts them, while it runs.")
    with sentences(), Cluster(bootstrap) as cluster:
        client = MigrationClient(cluster)
        before = client.status(topic)
        client.set_flag(topic, "true", validate_only=dry_run)
        after = before if dry_run else client.status(topic)
    if dry_run:
        _print_dry_run(before, as_json=as_json)
        return
    if wait:
        done = wait_switched(bootstrap, topic, before.topic_id, as_json=as_json, aborts=abort_transactions)
        if as_json:
            print_json_line(_document(done))
        else:
            print_line(f"Topic {topic}: {summary(done.status)}.")
        return
    if as_json:
        print_json(_document(after))
    else:
        print_line(f"Topic {topic} is being switched to diskless: {summary(after.status)}. {_STATUS} {topic}")


def _print_dry_run(known: KnownStatus, *, as_json: bool) -> None:
    if as_json:
        print_json({**_document(known), "dry_run": True, "accepted": True})
        return
    print_line(f"Topic {known.status.topic} can be switched to diskless. Nothing was changed.")


@migration_app.command("status")
def status(topic: TopicName, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, as_json: AsJson = False) -> None:
    """Show how far the switch of a topic is, and what each partition does. b0 is where it became diskless.

    Example: strandline migration status orders --json
    """
    with sentences(), Cluster(bootstrap) as cluster:
        known = MigrationClient(cluster).status(topic)
        holders = [] if as_json else holders_text(cluster, known.status)
    if as_json:
        print_json(_document(known))
        return
    print_line(f"{topic}: {summary(known.status)}.")
    columns = ("partition", "state", "phase", "b0", "copied", "remote", "local", "diskless")
    rows = [_row(partition) for partition in known.status.partitions]
    if rows:
        print_table(columns, rows, empty="")
    for partition, problem in problems(known.status).items():
        print_line(f"{partition}: {problem}")
    for sentence in (*holders, *known.unreached):
        print_line(sentence)


def _row(partition: PartitionMigration) -> tuple[object, ...]:
    ranges = {found.tier: f"{found.start} to {found.end - 1}" for found in tier_ranges(partition)}
    copied = None
    if partition.tiering_complete:
        copied = "all"
    elif partition.total_bytes:
        copied = f"{size(partition.copied_bytes)} of {size(partition.total_bytes)}"
    return (
        partition.partition,
        partition.state.value,
        None if partition.phase is None else partition.phase.value,
        partition.b0 if partition.b0 >= 0 else None,
        copied,
        *(ranges.get(tier) for tier in ("remote", "local", "diskless")),
    )


def _document(known: KnownStatus) -> dict[str, object]:
    return {**topic_migration(known.status), "unreached": list(known.unreached)}


@migration_app.command("list")
def list_migrations(
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    state: Annotated[
        str | None, typer.Option("--state", metavar="STATE", help=f"Only topics in it: {', '.join(MigrationState)}.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the topics that are switched to diskless, or were, with their states.

    Example: strandline migration list --state MIGRATING
    """
    wanted = None
    if state is not None:
        try:
            wanted = MigrationState(state.upper())
        except ValueError as error:
            raise CommandFailed(f"--state has to be one of {', '.join(MigrationState)}, but is {state!r}.") from error
    with sentences(), Cluster(bootstrap) as cluster:
        found = MigrationClient(cluster).statuses(wanted)
    if as_json:
        print_json([topic_migration(one) for one in found])
        return
    rows = [
        (
            one.topic,
            one.state,
            len(one.partitions),
            sum(partition.b0 >= 0 for partition in one.partitions),
            f"{one.progress:.0f} %",
            one.position,
            next((partition.problem for partition in one.partitions if partition.problem), None),
        )
        for one in found
    ]
    columns = ("topic", "state", "partitions", "diskless", "progress", "topics first", "problem")
    print_table(columns, rows, empty="No topic is switched to diskless." if wanted is None else f"None is {wanted}.")


@migration_app.command("abort")
def abort(topic: TopicName, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, as_json: AsJson = False) -> None:
    """Take a switch back, which is possible until the first partition is diskless. The topic goes on as it was.

    The same as setting diskless.enable=false, but refused if no switch was asked for.

    Example: strandline migration abort orders
    """
    with sentences(), Cluster(bootstrap) as cluster:
        client = MigrationClient(cluster)
        if not client.is_flagged(topic):  # setting it to false would be accepted, and stay in the topic's settings
            raise CommandFailed(nothing_to_abort(topic))
        client.set_flag(topic, "false", validate_only=False)
        known = client.status(topic)
    if as_json:
        print_json(_document(known))
    else:
        print_line(f"Topic {topic} stays as it is: it is not switched to diskless, and nothing is lost.")


@migration_app.command("complete")
def complete(
    topic: TopicName,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """End a switch whose old records cannot be copied to remote storage. Says first what that may cost.

    Every partition has to be diskless already. What is not copied stays on one broker's disk only.

    Example: strandline migration complete orders --yes
    """
    with sentences(), Cluster(bootstrap) as cluster:
        client = MigrationClient(cluster)
        before = client.status(topic)
        typer.echo(cost_of_completing(before.status), err=as_json)
        for sentence in before.unreached:
            typer.echo(f"There may be more: {sentence}", err=as_json)
        confirm(f"Complete the switch of {topic}?", yes=yes, otherwise="Nothing was changed.")
        client.complete(topic)
        after = client.status(topic)
    if as_json:
        print_json(_document(after))
    else:
        print_line(f"Topic {topic}: {summary(after.status)}.")
