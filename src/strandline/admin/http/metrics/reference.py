"""Writes the reference page of all metrics: `python -m strandline.admin.http.metrics.reference [FILE]`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from strandline.admin.http.metrics.tables import all_families

_INTRODUCTION: Final = """\
# Metrics

This page is generated from what `/metrics` answers (`make docs`); do not edit it. Names are Kafka's
(`kafka.server:type=ReplicaManager,name=LeaderCount`), lowercased and joined by underscores, as dashboards made for
Kafka's JMX exporter expect them. What Kafka does not have begins with `strandline_`, or with
`inkless_` if the design of hybrid topics has a name for it. Besides these there are
`process_*`: memory, CPU time and open files of the process.

| metric | type | labels | meaning |
| --- | --- | --- | --- |
"""


def render() -> str:
    """The whole page, in Markdown."""
    return _INTRODUCTION + "".join(f"{row}\n" for row in _rows())


def _rows() -> Iterator[str]:
    for family in sorted(all_families(), key=lambda family: family.exposed_name):
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
