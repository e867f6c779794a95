"""`strandline transactions`: lists and describes transactions and producers, and finds transactions that hang."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Final

import typer

from strandline.admin.commands.output import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    print_json,
    print_line,
    print_table,
    warn_of_missing,
)
from strandline.admin.commands.transactions.abort import abort_transaction
from strandline.admin.commands.transactions.asking import (
    TransactionDetails,
    TransactionFilters,
    describe_producers,
    describe_transaction,
    leader_of,
    list_transactions,
)
from strandline.admin.commands.transactions.hanging import STATE_TOPIC, find_holders, hanging_among, long_open
from strandline.admin.text import duration, timestamp
from strandline.client import Cluster, CommandFailed, Json, Pair, partition_leaders, sentences
from strandline.clock import SystemClock

transactions_app = typer.Typer(
    help="List and describe transactions; find and abort those that hang.", no_args_is_help=True
)
transactions_app.command("abort")(abort_transaction)
_MS_PER_MINUTE: Final = 60_000
Topic = Annotated[str, typer.Option("--topic", "-t", metavar="TOPIC", help="The topic.")]
Partition = Annotated[int, typer.Option("--partition", "-p", min=0, metavar="N", help="The partition.")]


@transactions_app.command("list")
def list_all(
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    state: Annotated[
        list[str] | None, typer.Option("--state", metavar="STATE", help="Only this state, like Ongoing.")
    ] = None,
    producer_id: Annotated[
        list[int] | None, typer.Option("--producer-id", metavar="ID", help="Only of this producer id.")
    ] = None,
    running_for: Annotated[
        int | None,
        typer.Option("--running-for", min=0, metavar="MS", help="Only open for longer than this, in milliseconds."),
    ] = None,
    id_pattern: Annotated[
        str | None, typer.Option("--id-pattern", metavar="REGEX", help="Only transactional ids that match.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the transactional ids of all coordinators, and the state of each.

    Example: strandline transactions list --state Ongoing --running-for 60000
    """
    filters = TransactionFilters(
        states=tuple(state or ()),
        producer_ids=tuple(producer_id or ()),
        running_ms=running_for,
        id_pattern=id_pattern,
    )
    with sentences(), Cluster(bootstrap) as cluster:
        rows = [asdict(row) for row in list_transactions(cluster, filters)]
        warn_of_missing("Transactional ids", cluster, STATE_TOPIC)
    if as_json:
        print_json(rows)
        return
    columns = ("transactional id", "coordinator", "producer id", "state")
    print_table(columns, [tuple(row.values()) for row in rows], empty="There are no transactional ids.")


@transactions_app.command("describe")
def describe(
    transactional_id: Annotated[str, typer.Argument(metavar="TRANSACTIONAL_ID", help="As producers have it.")],
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Show a transactional id: its producer, and the transaction it has open.

    Example: strandline transactions describe payments-1
    """
    with sentences(), Cluster(bootstrap) as cluster:
        found = describe_transaction(cluster, transactional_id)
    if found is None:
        raise CommandFailed(f"There is no transactional id {transactional_id}.")
    running_ms = None if found.started_ms is None else max(SystemClock().now_ms() - found.started_ms, 0)
    if as_json:
        print_json({**asdict(found), "running_ms": running_ms})
        return
    _print_details(found, running_ms)


def _print_details(found: TransactionDetails, running_ms: int | None) -> None:
    print_line(f"{found.transactional_id}  {found.state}, coordinator {found.coordinator}")
    print_line(
        f"producer id {found.producer_id}, epoch {found.producer_epoch}, timeout {duration(found.timeout_ms / 1000)}"
    )
    if found.started_ms is not None and running_ms is not None:
        print_line(f"open since {timestamp(found.started_ms)} UTC, for {duration(running_ms / 1000)}")
    print_table(("topic", "partition"), found.partitions, empty="No partition waits for its end.")


@transactions_app.command("describe-producers")
def show_producers(
    topic: Topic,
    partition: Partition,
    broker: Annotated[
        int | None, typer.Option("--broker-id", metavar="ID", help="Ask this broker instead of the leader.")
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Show the producers that a partition remembers, and where their open transactions begin.

    Example: strandline transactions describe-producers --topic orders --partition 0
    """
    with sentences(), Cluster(bootstrap) as cluster:
        asked = leader_of(cluster, topic, partition) if broker is None else broker
        producers = describe_producers(cluster, {(topic, partition): asked})
    rows = [_without_place(asdict(row)) for row in producers]
    if as_json:
        print_json(rows)
        return
    columns = ("producer id", "epoch", "coordinator epoch", "last sequence", "last timestamp", "open since offset")
    table = [tuple({**row, "last_timestamp": timestamp(row["last_timestamp"])}.values()) for row in rows]
    print_table(columns, table, empty="The partition remembers no producers.")


def _without_place(row: Json) -> Json:
    return {name: value for name, value in row.items() if name not in ("topic", "partition")}


@transactions_app.command("find-hanging")
def find_hanging(
    topic: Annotated[str | None, typer.Option("--topic", "-t", metavar="TOPIC", help="Only in this topic.")] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, metavar="N", help="Only in this partition of it.")
    ] = None,
    broker: Annotated[
        int | None, typer.Option("--broker-id", metavar="ID", help="Only in partitions that this broker leads.")
    ] = None,
    max_transaction_timeout: Annotated[
        int,
        typer.Option("--max-transaction-timeout", min=0, metavar="MINUTES", help="Younger ones may still be ended."),
    ] = 15,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Find open transactions that no coordinator will ever end. They hold up `read_committed` consumers and compaction.

    Looks into all partitions unless told otherwise, and changes nothing. Each row has what `abort` needs.

    Example: strandline transactions find-hanging --topic orders
    """
    if partition is not None and topic is None:
        raise CommandFailed("Give --topic with --partition.")
    now_ms = SystemClock().now_ms()
    with sentences(), Cluster(bootstrap) as cluster:
        leaders = _leaders(cluster, topic, partition)
        if broker is not None and broker not in cluster.brokers():
            raise CommandFailed(f"There is no broker {broker}, or it does not run.")
        searched = {pair: leader for pair, leader in leaders.items() if leader >= 0 and broker in (None, leader)}
        longest_ms = max_transaction_timeout * _MS_PER_MINUTE
        candidates = long_open(describe_producers(cluster, searched), now_ms=now_ms, longest_ms=longest_ms)
        holders = find_holders(cluster, {row.producer_id for row in candidates})
    found = hanging_among(candidates, holders)
    skipped = sorted(pair for pair, leader in leaders.items() if leader < 0)
    if skipped and broker is None:
        names = ", ".join(f"{name}-{number}" for name, number in skipped)
        typer.echo(f"strandline: Not searched, because they have no leader at the moment: {names}.", err=True)
    rows = [{**asdict(row.producer), "idle_ms": now_ms - row.producer.last_timestamp, "why": row.why} for row in found]
    if as_json:
        print_json(rows)
        return
    table = [
        (
            row["topic"], row["partition"], row["start_offset"], row["producer_id"], row["producer_epoch"],
            row["coordinator_epoch"], duration(row["idle_ms"] / 1000), row["why"],
        )
        for row in rows
    ]  # fmt: skip
    columns = ("topic", "partition", "start offset", "producer id", "epoch", "coordinator epoch", "idle for", "why")
    print_table(columns, table, empty=f"No transaction hangs in {len(searched)} partitions.")


def _leaders(cluster: Cluster, topic: str | None, partition: int | None) -> dict[Pair, int]:
    """The leaders of one partition, of a topic, or of everything. Raises CommandFailed for what does not exist."""
    if topic is None:
        names = [row.name for row in cluster.metadata(None).topics if row.name]
        return partition_leaders(cluster, names)
    if partition is not None:
        return {(topic, partition): leader_of(cluster, topic, partition)}
    leaders = partition_leaders(cluster, [topic])
    if not leaders:
        raise CommandFailed(f"Topic {topic} does not exist.")
    return leaders
