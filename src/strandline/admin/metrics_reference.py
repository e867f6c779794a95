"""Writes the reference page of all metrics: `python -m strandline.admin.metrics_reference [FILE]`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from prometheus_client import Metric

from strandline.admin.collector import StatusCollector
from strandline.admin.diskless_status import DisklessStatus, ObjectCalls
from strandline.admin.status import BrokerStatus, LogDirRow, TopicRow
from strandline.admin.tiered_status import StorageCalls, TieredStatus, TieredTopic

_INTRODUCTION: Final = """\
# Metrics

This page is generated from what `/metrics` answers (`make docs`); do not edit it. Names are Kafka's
(`kafka.server:type=ReplicaManager,name=LeaderCount`), lowercased and joined by underscores, as dashboards made for
Kafka's JMX exporter expect them. What Kafka does not have begins with `strandline_`. Besides these there are
`process_*`: memory, CPU time and open files of the process.

| metric | type | labels | meaning |
| --- | --- | --- | --- |
"""


class _Example:
    """A broker with one of everything, so that every metric has a sample."""

    def status(self) -> BrokerStatus:
        return BrokerStatus(
            version="",
            node_id=1,
            cluster_id="",
            requests={"PRODUCE": 1},
            log_dirs=(LogDirRow(path="/"),),
            topic_rows=(TopicRow(name="t"),),
            diskless=DisklessStatus(
                batches={"committed": 1},
                cache_bytes={"hot": 1},
                cache_limits={"hot": 1},
                object_calls={"put": ObjectCalls()},
                upkeep_failures={"retention": 0},
            ),
            tiered=TieredStatus(topics={"t": TieredTopic()}, storage_calls={"copy": StorageCalls()}),
        )


def render() -> str:
    """The whole page, in Markdown."""
    return _INTRODUCTION + "".join(f"{row}\n" for row in _rows())


def _rows() -> Iterator[str]:
    for family in sorted(StatusCollector(_Example()).collect(), key=lambda family: family.name):
        labels = ", ".join(f"`{label}`" for label in family.samples[0].labels)
        yield f"| `{_exposed_name(family)}` | {family.type} | {labels} | {family.documentation} |"


def _exposed_name(family: Metric) -> str:
    return str(family.samples[0].name)


def main(arguments: Sequence[str]) -> None:
    """Write the page to the file named, or to standard output."""
    if arguments:
        Path(arguments[0]).write_text(render(), encoding="utf-8")
    else:
        sys.stdout.write(render())


if __name__ == "__main__":
    main(sys.argv[1:])
