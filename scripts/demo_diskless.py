"""The part of the demo with a diskless topic: records in shared objects, their order in the database."""

from __future__ import annotations

import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from demo_clients import check_all_arrived, consume, create_topic, delete_topic, produce
from demo_stage import Broker, DemoFailed, ask, run, say, show_command, show_table, title, wait_for

from strandline.admin.text import size

TOPIC, GROUP, PARTITIONS, RECORDS = "tide-forecasts", "lifeboats", 3, 30_000
PRODUCERS, MOST_SHOWN = 3, 6

_LOGS = """
SELECT partition, log_start_offset, high_watermark, byte_size,
       (SELECT count(*) FROM inkless_batch batch WHERE batch.log_id = log.log_id)
FROM inkless_log log WHERE topic_name = ? ORDER BY partition
"""
_LEFT = """
SELECT (SELECT count(*) FROM inkless_log) + (SELECT count(*) FROM inkless_batch)
     + (SELECT count(*) FROM inkless_file WHERE state <> 'deleted')
"""


def show_diskless_topic(broker: Broker) -> None:
    """Make a diskless topic, write, read, look at what there is of it, delete it."""
    title("A diskless topic: records in object storage, their order in the database")
    create_topic(broker, TOPIC, PARTITIONS, diskless_enable="true")
    run(broker, "topics", "describe", TOPIC)
    began = time.monotonic()
    produce(broker, TOPIC, 0, RECORDS, producers=PRODUCERS)
    elapsed = time.monotonic() - began
    say(f"{RECORDS:,} records of {PRODUCERS} producers acknowledged in {elapsed:.2f} s: they are stored, and in order")

    title("Pull the plug once more, and read it back")
    broker.end(signal.SIGKILL)
    say(f"killed; this topic has no files that need a check; serving again after {broker.start() * 1000:.0f} ms")
    check_all_arrived(consume(broker, TOPIC, GROUP, RECORDS), RECORDS)
    say(f"{RECORDS:,} records with {_object_reads(broker)} reads of objects, none lost, none twice, in order")

    title("Its WAL objects: shared by partitions, each with a footer that says what is in it")
    batches = _show_objects(broker)

    title("In the database: offsets, and one row for batches that are side by side in an object")
    rows = _show_control_plane(broker.data)
    say(f"{batches} batches, {rows} rows")

    title("Delete it, and nothing is left")
    delete_topic(broker, TOPIC)
    wait_for(lambda: _left(broker.data) == 0, "the file cleaner to delete objects that no row refers to")
    say("no log, row or file is left in the database (readers get no time to finish here; usually a minute)")
    show_command("wal", "list")
    if ask("wal", "list", "--data-dir", str(broker.data)):
        raise DemoFailed("objects were left behind")
    say("  There are no WAL objects.")


def _object_reads(broker: Broker) -> int:
    """Requests to the object store for parts of objects, as the metrics say."""
    wait_for(broker.is_ready, "the HTTP listener")  # it opens after the Kafka listener
    name = 'strandline_diskless_object_requests_total{operation="get_range"} '
    lines = [line for line in broker.get("/metrics").splitlines() if line.startswith(name)]
    reads = int(float(lines[0].removeprefix(name))) if lines else 0
    if reads == 0:
        raise DemoFailed("nothing was read from the object store")
    return reads


def _show_objects(broker: Broker) -> int:
    """List them and look into one; how many batches there are."""
    where = ("--data-dir", str(broker.data))
    show_command("wal", "list")
    objects = ask("wal", "list", "--limit", "1000", *where)
    written = sum(row["records"] for row in objects)
    if written < RECORDS:
        raise DemoFailed(f"the objects hold only {written} of {RECORDS} records")
    show_table(
        ["object", "size", "partitions", "batches", "records"],
        [
            (row["object"], size(row["size"]), row["partitions"], row["batches"], row["records"])
            for row in objects[:MOST_SHOWN]
        ],
    )
    if len(objects) > MOST_SHOWN:
        say(f"  and {len(objects) - MOST_SHOWN} more")
    fullest = max(objects, key=lambda row: int(row["batches"]))["object"]
    show_command("wal", "dump", fullest, "--batches")
    extents = ask("wal", "dump", fullest, "--batches", "--bootstrap", broker.bootstrap, *where)["extents"]
    show_table(["partition", "bytes", "batches", "records", "codec", "checksums"], [_extent(row) for row in extents])
    return sum(row["batches"] for row in objects)


def _extent(row: dict[str, Any]) -> tuple[str | int, ...]:
    if not all(batch["crc_ok"] for batch in row["batches"]):
        raise DemoFailed(f"a batch of {row['topic']}-{row['partition']} does not fit its checksum")
    first, last = row["byte_offset"], row["byte_offset"] + row["byte_size"] - 1
    codecs = Counter(batch["codec"] for batch in row["batches"])
    name = f"{row['topic']}-{row['partition']}"
    return name, f"{first:,} to {last:,}", row["batch_count"], row["record_count"], " ".join(codecs), "right"


def _show_control_plane(data: Path) -> int:
    """The logs and how many rows each has; how many rows there are."""
    with closing(_database(data)) as database:
        logs = database.execute(_LOGS, (TOPIC,)).fetchall()
    show_table(
        ["partition", "from offset", "to offset", "bytes", "rows"],
        [(f"{TOPIC}-{partition}", start, end, byte_size, rows) for partition, start, end, byte_size, rows in logs],
    )
    if sum(end - start for _, start, end, _, _ in logs) != RECORDS:
        raise DemoFailed(f"the control plane does not know of {RECORDS} records: {logs}")
    return sum(int(rows) for *_, rows in logs)


def _left(data: Path) -> int:
    """How many logs, rows of batches, and files with an object the database knows, of any diskless topic."""
    with closing(_database(data)) as database:
        return int(database.execute(_LEFT).fetchone()[0])


def _database(data: Path) -> sqlite3.Connection:
    """The broker's own database, to look at while it runs."""
    return sqlite3.connect(f"file:{data / 'metadata.db'}?mode=ro", uri=True, timeout=5)
