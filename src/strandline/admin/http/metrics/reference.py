"""Writes the reference page of all metrics: `python -m strandline.admin.http.metrics.reference [FILE]`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from strandline.admin.http.metrics.broker import BROKER
from strandline.admin.http.metrics.dependencies import DEPENDENCIES
from strandline.admin.http.metrics.diskless import DISKLESS_TIER, DISKLESS_TOPICS
from strandline.admin.http.metrics.families import Family
from strandline.admin.http.metrics.tiered import TIERED
from strandline.admin.http.metrics.traffic import TRAFFIC

_INTRODUCTION: Final = """\
# Metrics

This page is generated from what `/metrics` answers (`make docs`); do not edit it. Names are Kafka's
(`kafka.server:type=ReplicaManager,name=LeaderCount`), lowercased and joined by underscores, as dashboards made for
Kafka's JMX exporter expect them. What Kafka does not have begins with `strandline_`. Besides these there are
`process_*`: memory, CPU time and open files of the process.

| metric | type | labels | meaning |
| --- | --- | --- | --- |
"""


def render() -> str:
    """The whole page, in Markdown."""
    return _INTRODUCTION + "".join(f"{row}\n" for row in _rows())


def _rows() -> Iterator[str]:
    families: list[Family[Any]] = [*BROKER, *TRAFFIC, *DEPENDENCIES, *DISKLESS_TOPICS, *DISKLESS_TIER, *TIERED]
    for family in sorted(families, key=lambda family: family.name):
        labels = ", ".join(f"`{label}`" for label in family.labels)
        yield f"| `{family.exposed_name}` | {family.kind} | {labels} | {family.text} |"


def main(arguments: Sequence[str]) -> None:
    """Write the page to the file named, or to standard output."""
    if arguments:
        Path(arguments[0]).write_text(render(), encoding="utf-8")
    else:
        sys.stdout.write(render())


if __name__ == "__main__":
    main(sys.argv[1:])
