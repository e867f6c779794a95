"""The part of the demo with a tiered topic: closed segments in remote storage, the newest ones on disk."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from demo_clients import check_all_arrived, consume, create_topic, delete_topic, produce
from demo_stage import (
    Broker,
    DemoFailed,
    ask,
    ask_lines,
    files_below,
    run,
    say,
    show_command,
    show_table,
    title,
    wait_for,
)

from strandline.admin.text import size

TOPIC, GROUP, RECORDS = "tide-archive", "historians", 12_000
TRACE_BYTES = 1_000
SEGMENT_BYTES, LOCAL_BYTES = 1_048_576, 2_097_152


def show_tiered_topic(broker: Broker) -> None:
    """Fill a topic, let it be tiered, read both tiers as one log, look at what is where, delete it."""
    title("A topic with some history, all of it on the broker's disk")
    limits = {"segment_bytes": str(SEGMENT_BYTES), "local_retention_bytes": str(LOCAL_BYTES)}
    create_topic(broker, TOPIC, 1, file_delete_delay_ms="0", **limits)
    produce(broker, TOPIC, 0, RECORDS, trace_bytes=TRACE_BYTES)
    if _show_tiers(broker) != (_local(broker), 0):
        raise DemoFailed("something is in remote storage already")

    title("Let it be tiered: old segments go to remote storage, the newest 2 MB stay on disk")
    local_before = _local(broker)
    began = time.monotonic()
    run(broker, "configs", "alter", "--topic", TOPIC, "--set", "remote.storage.enable=true")
    wait_for(lambda: _is_tiered(broker), "old segments to be copied, and to leave the disk")
    say(f"{time.monotonic() - began:.2f} s later:")
    local, remote = _show_tiers(broker)
    if not 0 < local < local_before or remote < local_before - local:
        raise DemoFailed(f"of {local_before} segments {local} are local and {remote} are remote")
    run(broker, "topics", "tiers", TOPIC)

    title("Read it from offset 0: consumers see one log")
    began = time.monotonic()
    check_all_arrived(consume(broker, TOPIC, GROUP, RECORDS), RECORDS)
    say(
        f"{RECORDS:,} records in {time.monotonic() - began:.2f} s, {size(_fetched(broker))} of them from remote "
        "storage, none lost, none twice, in order"
    )

    title("A remote segment: files in Kafka's layout, and what __remote_log_metadata says about them")
    _show_segment(broker)

    title("Delete it, and nothing is left in remote storage")
    delete_topic(broker, TOPIC)
    wait_for(lambda: not list(_remote_files(broker)), "remote segments to be deleted")
    wait_for(lambda: _states(broker)["DELETE_PARTITION_FINISHED"] == 1, "the end of the deletion to be written down")
    show_command("remote", "dump", "data/logs", "--topic", TOPIC, "--json")
    show_table(["state", "records"], [(state, count) for state, count in _states(broker).items()])


def _show_tiers(broker: Broker) -> tuple[int, int]:
    """How many segments and bytes are where; how many segments are local, and remote."""
    local, remote = _local_logs(broker), [path for path in _remote_files(broker) if path.suffix == ".log"]
    rows = [("on the broker's disk", local), ("in remote storage", remote)]
    show_table(["tier", "segments", "bytes"], [(name, len(logs), _bytes(logs)) for name, logs in rows])
    return len(local), len(remote)


def _is_tiered(broker: Broker) -> bool:
    """Whether every closed segment is copied, and those beyond local retention are deleted from disk."""
    if _bytes(_local_logs(broker)) >= LOCAL_BYTES + SEGMENT_BYTES:
        return False
    (partition,) = ask("topics", "tiers", TOPIC, "--bootstrap", broker.bootstrap)["partitions"]
    return bool(partition["pending"]["segments"] == 0)


def _show_segment(broker: Broker) -> None:
    first = min(path for path in _remote_files(broker) if path.suffix == ".log")
    say(f"{first.parent.relative_to(broker.data)}/{first.stem}:")
    show_table(
        ["file", "bytes"],
        [(path.suffix, path.stat().st_size) for path in sorted(first.parent.glob(f"{first.stem}.*"))],
    )
    show_command("remote", "dump", "data/logs", "--topic", TOPIC)
    about = [row for row in _dump(broker) if row.get("segment_id") == first.stem[21:]]
    for row in about:
        offsets = f", offsets {row['start_offset']} to {row['end_offset']}" if "start_offset" in row else ""
        say(f"  {row['segment_id']}  {row['state']}{offsets}")
    if [row["state"] for row in about] != ["COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED"]:
        raise DemoFailed(f"the segment {first.stem} is not described as copied")


def _fetched(broker: Broker) -> int:
    """Bytes that came from remote segments, as the metrics say."""
    name = f'kafka_server_brokertopicmetrics_remotefetchbytes_total{{topic="{TOPIC}"}} '
    lines = [line for line in broker.get("/metrics").splitlines() if line.startswith(name)]
    found = int(float(lines[0].removeprefix(name))) if lines else 0
    if found == 0:
        raise DemoFailed("nothing was read from remote storage")
    return found


def _states(broker: Broker) -> Counter[str]:
    return Counter(str(row["state"]) for row in _dump(broker))


def _dump(broker: Broker) -> list[dict[str, Any]]:
    """What the metadata topic says about the topic, in the order in which it was written."""
    return ask_lines("remote", "dump", str(broker.data / "logs"), "--topic", TOPIC)


def _local(broker: Broker) -> int:
    return len(_local_logs(broker))


def _local_logs(broker: Broker) -> list[Path]:
    return list((broker.data / "logs" / f"{TOPIC}-0").glob("*.log"))


def _remote_files(broker: Broker) -> list[Path]:
    return files_below(broker.data / "remote", f"{TOPIC}-0-")


def _bytes(paths: list[Path]) -> int:
    total = 0
    for path in paths:
        with suppress(FileNotFoundError):  # the broker deletes segments while we look
            total += path.stat().st_size
    return total
