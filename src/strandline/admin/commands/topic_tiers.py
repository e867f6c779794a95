"""`strandline topics tiers`: which offsets and bytes of a topic are in which tier, what is pending, and why.

Kafka's protocol has no request for that. Every leader answers it over HTTP, at its `strandline.http.listen`.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterable
from typing import Annotated, Any, Final
from urllib.parse import quote

import typer

from strandline.admin.commands.client import Cluster, CommandFailed, Json, check, sentences
from strandline.admin.commands.configs import broker_setting, topic_overrides
from strandline.admin.commands.output import DEFAULT_BOOTSTRAP, AsJson, Bootstrap, print_json, print_line, print_table
from strandline.admin.text import size
from strandline.config.listeners import join_address, parse_address

_TIMEOUT_S: Final = 30.0
_EVERYWHERE: Final = ("", "0.0.0.0", "::")
TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="The name of the topic.")]


def topic_tiers(
    topic: TopicName,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    segments: Annotated[bool, typer.Option("--segments", help="Also every segment and where it is.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show where the records of a tiered topic are: local, remote or both, what is pending, and why.

    Example: strandline topics tiers orders --segments
    """
    with sentences(), Cluster(bootstrap) as cluster:
        found = cluster.metadata([topic]).topics[0]
        check(found.error_code, None, f"Topic {topic} cannot be described")
        is_tiered = topic_overrides(cluster, topic).get("remote.storage.enable") == "true"
        leaders = sorted({row.leader_id for row in found.partitions if row.leader_id >= 0})
        rows = [row for leader in leaders for row in _ask_leader(cluster, leader, topic)]
    rows.sort(key=lambda row: int(row["partition"]))
    if as_json:
        print_json({"topic": topic, "tiered": is_tiered, "partitions": rows})
        return
    if not rows:
        what = (
            "none of its partitions has a leader that serves it as tiered"
            if is_tiered
            else "remote.storage.enable is false"
        )
        print_line(f"{topic} is not in tiers: {what}.")
        return
    _print(topic, rows)
    if segments:
        _print_segments(rows)


def _print(topic: str, rows: Iterable[Json]) -> None:
    columns = ("partition", "leader", "remote offsets", "remote", "local offsets", "local", "to copy")
    print_table(columns, [_row(row) for row in rows], empty=f"{topic} has no partitions.")
    for row in rows:
        still, because = row["still_local"], row["still_local"]["because"]
        print_line(f"{row['partition']}: from offset {still['from_offset']} on local only: {because.rstrip('.')}.")
        if row["deleting_segments"]:
            print_line(f"{row['partition']}: remote segments that are still to be deleted: {row['deleting_segments']}.")
        if row["last_error"] and row["last_error"] not in because:
            print_line(f"{row['partition']}: the last error: {row['last_error']}")


def _row(row: Json) -> tuple[object, ...]:
    remote, local, pending = row["remote"], row["local"], row["pending"]
    return (
        row["partition"],
        row["leader"],
        _range(remote),
        f"{size(remote['bytes'])} in {remote['segments']}",
        _range(local),
        size(local["bytes"]),
        f"{size(pending['bytes'])} in {pending['segments']}",
    )


def _range(tier: Json) -> str | None:
    if tier["to_offset"] is None or tier["to_offset"] <= tier["from_offset"]:
        return None
    return f"{tier['from_offset']} to {tier['to_offset'] - 1}"


def _print_segments(rows: Iterable[Json]) -> None:
    cells = [
        (row["partition"], segment["start_offset"], segment["end_offset"], segment["bytes"], segment["tier"], state)
        for row in rows
        for segment in row["segments"]
        for state in (segment["state"],)
    ]
    print_table(("partition", "from", "to", "bytes", "where", "state"), cells, empty="There are no segments.")


def _ask_leader(cluster: Cluster, leader: int, topic: str) -> list[Json]:
    listen = broker_setting(cluster, leader, "strandline.http.listen")
    if not listen:
        raise CommandFailed(f"Broker {leader} cannot describe tiers, because its strandline.http.listen is empty.")
    host, port = parse_address(listen, name="strandline.http.listen")
    address = join_address(cluster.host_of(leader) if host in _EVERYWHERE else host, port)
    url = f"http://{address}/topics/{quote(topic, safe='')}/tiers"
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:
            found = json.load(answer)
    except urllib.error.HTTPError as error:
        raise CommandFailed(f"Broker {leader} cannot describe tiers: {_reason(error).rstrip('.')}.") from error
    except (OSError, ValueError) as error:
        raise CommandFailed(
            f"Broker {leader} describes tiers over HTTP, but does not answer at {url}: {error}. Run this command where "
            "it can reach strandline.http.listen of the leaders."
        ) from error
    return [_partition(leader, row) for row in found["partitions"]]


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError):
        return str(error)


def _partition(leader: int, row: dict[str, Any]) -> Json:
    remote_end = row["highest_remote_offset"] + 1
    return {
        "partition": row["partition"],
        "leader": leader,
        "remote": {
            "from_offset": row["log_start_offset"] if remote_end > 0 else None,
            "to_offset": remote_end if remote_end > 0 else None,
            "segments": row["remote_segments"],
            "bytes": row["remote_bytes"],
        },
        "local": {
            "from_offset": row["local_log_start_offset"],
            "to_offset": row["log_end_offset"],
            "bytes": row["local_bytes"],
        },
        "pending": {"segments": row["pending_segments"], "bytes": row["pending_bytes"]},
        "deleting_segments": row["deleting_segments"],
        "still_local": {"from_offset": row["local_from"], "because": row["local_because"]},
        "last_error": row["last_error"],
        "segments": row["segments"],
    }
