"""Metrics of each partition: replicas of this broker, and diskless partitions whose clients are sent here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from strandline.admin.http.metrics.families import escaped, heading
from strandline.admin.partition_rows import PartitionRow
from strandline.model import NO_OFFSET

_ROWS_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class PartitionFamily:
    """A gauge with a sample for each partition of which the number is known."""

    name: str
    text: str
    value: Callable[[PartitionRow], int]

    kind = "gauge"
    labels = ("topic", "partition")

    @property
    def exposed_name(self) -> str:
        return self.name

    def exposition(self, rows: Sequence[tuple[str, PartitionRow]]) -> Iterator[str]:
        """The text of one scrape, in pieces, for rows with the text of their labels."""
        yield heading(self.name, self.kind, self.text)
        name, value = self.name, self.value
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            some = [(labels, value(row)) for labels, row in rows[first : first + _ROWS_AT_ONCE]]
            yield "".join([f"{name}{labels} {number}\n" for labels, number in some if number != NO_OFFSET])


def labels_of(row: PartitionRow) -> str:
    """The labels of a partition's samples: the same in all families."""
    return f'{{topic="{escaped(row.topic)}",partition="{row.partition}"}}'


_LOG: Final = "kafka_log_log_"
_CLUSTER: Final = "kafka_cluster_partition_"

PARTITIONS: Final = (
    PartitionFamily(
        _LOG + "size",
        "Bytes of local segments; of a diskless partition, of the rows of the control plane; of a hybrid one, both.",
        lambda row: row.size,
    ),
    PartitionFamily(_LOG + "logstartoffset", "The first offset of a partition.", lambda row: row.start),
    PartitionFamily(_LOG + "logendoffset", "The offset that the next record of a partition gets.", lambda row: row.end),
    PartitionFamily(
        "inkless_tiered_high_offset",
        "The last offset that remote storage has of a partition with a diskless part; none if it has nothing.",
        lambda row: row.tiered_high,
    ),
    PartitionFamily(
        "inkless_diskless_start_offset",
        "The first offset that is read from the diskless part of a partition.",
        lambda row: row.diskless_start,
    ),
    PartitionFamily(
        _LOG + "numlogsegments", "Local segments; a diskless partition has none.", lambda row: row.segments
    ),
    PartitionFamily(_CLUSTER + "replicascount", "Replicas of a partition that is led here.", lambda row: row.replicas),
    PartitionFamily(_CLUSTER + "insyncreplicascount", "Those that are in sync.", lambda row: row.in_sync),
    PartitionFamily(
        _CLUSTER + "underreplicated",
        "1 if the partition is led here and replicas are out of sync.",
        lambda row: int(row.is_under_replicated),
    ),
    PartitionFamily(
        _CLUSTER + "underminisr",
        "1 if the partition is led here with fewer replicas in sync than min.insync.replicas.",
        lambda row: int(row.is_under_min_isr),
    ),
    PartitionFamily(
        _CLUSTER + "atminisr",
        "1 if the partition is led here with just as many as that, as each is that has one replica.",
        lambda row: int(row.is_at_min_isr),
    ),
)
