"""`strandline topics tiers`: which offsets and bytes of a topic are in which tier, what is pending, and why.

Kafka's protocol has no request for that. Every leader answers it over HTTP, at its `strandline.http.listen`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final
from urllib.parse import quote

import typer

from strandline.admin.commands.configs import topic_overrides
from strandline.admin.commands.output import DEFAULT_BOOTSTRAP, AsJson, Bootstrap, print_json, print_line, print_table
from strandline.admin.text import size
from strandline.client import BrokerHttp, Cluster, Json, check, sentences

_DISKLESS: Final = "diskless.enable"
TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="The name of the topic.")]


def topic_tiers(
    topic: TopicName,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    segments: Annotated[bool, typer.Option("--segments", help="Also every segment and where it is.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show where the records of a tiered or hybrid topic are: local, remote, diskless; what is pending, and why.

    Example: strandline topics tiers orders --segments
    """
    with sentences(), Cluster(bootstrap) as cluster:
        found = cluster.metadata([topic]).topics[0]
        check(found.error_code, None, f"Topic {topic} cannot be described")
        overrides = topic_overrides(cluster, topic)
        is_tiered, is_diskless = (overrides.get(name) == "true" for name in ("remote.storage.enable", _DISKLESS))
        leaders = sorted({row.leader_id for row in found.partitions if row.leader_id >= 0})
        http = BrokerHttp(cluster)
        rows = [row for leader in leaders for row in _ask_leader(http, leader, topic)]
    rows.sort(key=lambda row: int(row["partition"]))
    if as_json:
        print_json({"topic": topic, "tiered": is_tiered, "partitions": rows})
        return
    if not any(_is_in_tiers(row) for row in rows):
        what = "remote.storage.enable is false"
        if is_tiered:
            what = "none of its partitions has a leader that serves it as tiered"
        if is_diskless:
            what = "all its records are in the object store"
        print_line(f"{topic} is not in tiers: {what}.")
        return
    _print(topic, rows)
    if segments:
        _print_segments(rows)


def _is_in_tiers(row: Json) -> bool:
    """False of a partition that was born diskless, and of which nothing was converted yet."""
    return bool(row["state"] != "DISKLESS_ONLY" or row["remote"]["segments"] or row["uploads"])


def _print(topic: str, rows: Sequence[Json]) -> None:
    columns: tuple[str, ...] = ("partition", "leader", "remote offsets", "remote", "local offsets", "local", "to copy")
    cells = [_row(row) for row in rows]
    if any(row["state"] for row in rows):
        columns += ("diskless offsets", "diskless", "state")
        cells = [cell + _diskless(row) for cell, row in zip(cells, rows, strict=True)]
    print_table(columns, cells, empty=f"{topic} has no partitions.")
    for row in rows:
        still, because = row["still_local"], row["still_local"]["because"]
        if row["problem"]:
            print_line(f"{row['partition']}: {row['problem']}")
        if because and not row["tiering_complete"]:
            print_line(f"{row['partition']}: from offset {still['from_offset']} on local only: {because.rstrip('.')}.")
        for upload in row["uploads"]:
            what = f"offsets {upload['start_offset']} to {upload['end_offset']}, {size(upload['bytes'])}"
            print_line(f"{row['partition']}: a segment of the tiering pipeline, {upload['state']}: {what}.")
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


def _diskless(row: Json) -> tuple[object, ...]:
    suffix = row["diskless"]
    state = row["state"] and f"{row['state']}{', ' + row['phase'] if row['phase'] else ''}"
    return (_range(suffix), size(suffix["bytes"]), state)


def _range(tier: Json) -> str | None:
    if tier["from_offset"] is None or tier["to_offset"] is None or tier["to_offset"] <= tier["from_offset"]:
        return None
    return f"{tier['from_offset']} to {tier['to_offset'] - 1}"


def _print_segments(rows: Sequence[Json]) -> None:
    cells = [
        (row["partition"], segment["start_offset"], segment["end_offset"], segment["bytes"], segment["tier"], state)
        for row in rows
        for segment in row["segments"]
        for state in (segment["state"],)
    ]
    print_table(("partition", "from", "to", "bytes", "where", "state"), cells, empty="There are no segments.")
    for row in rows:
        if row["segments_left_out"]:
            print_line(
                f"Of partition {row['partition']}, {row['segments_left_out']} older remote segments are not listed."
            )


def _ask_leader(http: BrokerHttp, leader: int, topic: str) -> list[Json]:
    found = http.get(leader, f"/topics/{quote(topic, safe='')}/tiers", what="describe tiers")
    return [_partition(leader, row) for row in found["partitions"]]


def _partition(leader: int, row: dict[str, Any]) -> Json:
    remote_end = row["highest_remote_offset"] + 1
    switch: Json = row.get("migration", {})
    has_suffix = switch.get("b0", -1) >= 0
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
        "diskless": {
            "from_offset": max(switch["diskless_start_offset"], switch["log_start_offset"]) if has_suffix else None,
            "to_offset": switch["high_watermark"] if has_suffix else None,
            "bytes": switch.get("diskless_bytes", 0),
        },
        "state": switch.get("state"),
        "phase": switch.get("phase"),
        "b0": switch.get("b0"),
        "tiering_complete": switch.get("tiering_complete", False),
        "problem": switch.get("problem", ""),
        "uploads": row.get("uploads", []),
        "pending": {"segments": row["pending_segments"], "bytes": row["pending_bytes"]},
        "deleting_segments": row["deleting_segments"],
        "still_local": {"from_offset": row["local_from"], "because": row["local_because"]},
        "last_error": row["last_error"],
        "segments": row["segments"],
        "segments_left_out": row.get("segments_left_out", 0),  # brokers of an earlier version list all
    }
