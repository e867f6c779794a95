"""The part of the demo with the switch: a topic with history becomes diskless while a producer and a consumer run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from demo_clients import create_topic, delete_topic
from demo_stage import Broker, DemoFailed, ask, console, files_below, run, say, show_command, title, wait_for
from demo_traffic import Traffic
from rich.console import RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

TOPIC, READERS, PARTITIONS = "tide-records", "archivists", 3
HISTORY, HISTORY_BYTES, LEAST = 12_000, 1_000, 1_500
SEGMENT_BYTES, LOCAL_MS = 1_048_576, 3_000
RULER = 30
TIERS = {  # remote and local overlap: what is copied leaves the disk later
    "remote": ("░", "blue"),
    "remote and local": ("▓", "cyan"),
    "local": ("█", "green"),
    "diskless": ("▒", "magenta"),
}


class Ranges(NamedTuple):
    """Where the offsets of a partition are. Ends are not included; -1 is a boundary that is not there yet."""

    partition: int
    start: int
    remote_end: int
    local_start: int
    boundary: int
    end: int

    @property
    def prefix_end(self) -> int:
        """Where the diskless part begins, or the log ends."""
        return self.boundary if self.boundary >= 0 else self.end

    def tier_of(self, offset: int) -> str:
        """The tier that has an offset."""
        if offset >= self.prefix_end:
            return "diskless"
        is_local = offset >= self.local_start
        if offset < self.remote_end:
            return "remote and local" if is_local else "remote"
        return "local"

    def words(self) -> str:
        """The ranges as numbers."""
        parts = (
            ("remote", self.start, self.remote_end),
            ("local", self.local_start, self.prefix_end),
            ("diskless", self.prefix_end, self.end),
        )
        return ", ".join(f"{tier} {first} to {end - 1}" for tier, first, end in parts if first < end)


def show_switch(broker: Broker) -> str:
    """Switch a topic under load, show its tiers meanwhile, delete it; what became of its records, as a sentence."""
    title("A tiered topic with history is switched to diskless, while a producer and a consumer run")
    tiered = {"remote_storage_enable": "true", "local_retention_ms": str(LOCAL_MS), "segment_bytes": str(SEGMENT_BYTES)}
    create_topic(broker, TOPIC, PARTITIONS, file_delete_delay_ms="0", **tiered)
    traffic = Traffic(broker, TOPIC, PARTITIONS, group=READERS)
    traffic.fill(HISTORY, HISTORY_BYTES)
    wait_for(lambda: all(row.remote_end > 0 for row in _ranges(broker)), "some of the history to be copied")
    say("    ".join(f"{mark} {tier}" for tier, (mark, _) in TIERS.items()))
    with traffic, _Rulers(broker, traffic) as rulers:
        rulers.until(lambda _: traffic.read >= HISTORY + LEAST, "both clients to be at work")
        rulers.say(f"a classic topic: {HISTORY:,} records of history, and the consumer has caught up with the producer")
        show_command("migration", "start", TOPIC)
        began = time.monotonic()
        ask("migration", "start", TOPIC, "--bootstrap", broker.bootstrap)
        rulers.until(lambda rows: all(row.boundary >= 0 for row in rows), "every partition to have its boundary")
        rulers.say(f"{time.monotonic() - began:.2f} s later all that is written is diskless; nothing was copied for it")
        rulers.until(lambda _: _state(broker) == "HYBRID", "the older part to be in remote storage")
        rulers.say(f"{time.monotonic() - began:.2f} s later the older part is in remote storage: the topic is HYBRID")
        rulers.until(_is_off_disk, "the older part to leave the disk")
        rulers.say(f"{time.monotonic() - began:.2f} s later nothing of it is on the broker's disk any more")
        traffic.stop()
    say(f"the broker took no records of a partition for {_write_pause(broker) * 1000:.0f} ms at most")
    run(broker, "migration", "status", TOPIC)
    if traffic.lost or traffic.duplicated:
        raise DemoFailed(f"{traffic.lost} records were lost and {traffic.duplicated} came twice")
    delete_topic(broker, TOPIC)
    wait_for(lambda: not _remote_files(broker), "remote segments to be deleted")
    return (
        f"Across the switch: {traffic.acknowledged:,} records acknowledged, {traffic.read:,} read, "
        f"{traffic.lost} lost, {traffic.duplicated} duplicated."
    )


class _Rulers:
    """A block that shows where the offsets of each partition are: redrawn on a terminal, else at every sentence."""

    def __init__(self, broker: Broker, traffic: Traffic) -> None:
        self._broker, self._traffic = broker, traffic
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def until(self, is_true: Callable[[Sequence[Ranges]], bool], what: str) -> None:
        """Redraw until something is true of the partitions. Raises DemoFailed."""

        def look() -> bool:
            self._traffic.check()
            rows = _ranges(self._broker)
            if self._live is not None:
                self._live.update(self._drawn(rows), refresh=True)
            return is_true(rows)

        wait_for(look, what)

    def say(self, text: str) -> None:
        """A sentence, and the rulers at this moment."""
        say(text)
        console.print(self._drawn(_ranges(self._broker)))

    def __enter__(self) -> _Rulers:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def _drawn(self, rows: Sequence[Ranges]) -> RenderableType:
        longest = max(row.end for row in rows)
        lines = [Text.assemble(f"{row.partition} ", *_marks(row, longest), f" {row.words()}") for row in rows]
        lines.append(Text(f"  {self._traffic.acknowledged:,} acknowledged, {self._traffic.read:,} read", style="dim"))
        drawn = Text("\n").join(lines)
        drawn.no_wrap = True
        return Padding(drawn, (0, 0, 0, 4), expand=False)


def _marks(row: Ranges, longest: int) -> Iterator[tuple[str, str]]:
    """One column for as many offsets as fit, so that the longest partition has the whole width.

    A column has the tier of its last offset: the newest records are seen however few they are.
    """
    for column in range(RULER):
        first, last = column * longest // RULER, (column + 1) * longest // RULER - 1
        is_there = first < row.end and last >= row.start
        yield TIERS[row.tier_of(min(last, row.end - 1))] if is_there else (" ", "")


def _ranges(broker: Broker) -> list[Ranges]:
    rows = json.loads(broker.get(f"/topics/{TOPIC}/tiers"))["partitions"]
    return [_range(row, row.get("migration") or {"b0": -1}) for row in rows]


def _range(row: dict[str, Any], migration: dict[str, Any]) -> Ranges:
    boundary = migration["b0"]
    return Ranges(
        row["partition"],
        row["log_start_offset"],
        row["highest_remote_offset"] + 1,
        row["local_log_start_offset"],
        boundary,
        migration["high_watermark"] if boundary >= 0 else row["log_end_offset"],
    )


def _is_off_disk(rows: Sequence[Ranges]) -> bool:
    return all(row.local_start == row.boundary for row in rows)


def _write_pause(broker: Broker) -> float:
    name = f'strandline_migration_last_write_pause_seconds{{topic="{TOPIC}"}} '
    (line,) = (line for line in broker.get("/metrics").splitlines() if line.startswith(name))
    return float(line.removeprefix(name))


def _state(broker: Broker) -> str:
    return str(json.loads(broker.get(f"/topics/{TOPIC}/migration"))["state"])


def _remote_files(broker: Broker) -> list[Path]:
    return files_below(broker.data / "remote", f"{TOPIC}-")
