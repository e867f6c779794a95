"""A query without an end: `spark.readStream.format("strandline")`. Its offsets are those of the partitions, as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from strandline.model import Offset, TopicPartition
from strandline.tiering.source.batch import planned, read_partition
from strandline.tiering.source.filters import Bounds
from strandline.tiering.source.options import SourceOptions
from strandline.tiering.source.planning import Planner

Offsets = dict[str, dict[str, int]]
"""{"topic": {"0": offset}}: what Spark keeps in the checkpoint of the query."""


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what comes, from checkpoint to checkpoint. New partitions are read from their beginning."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._planner: Planner | None = None
        self._target: dict[TopicPartition, Offset] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_planner": None, "_target": self._target}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    @property
    def _open(self) -> Planner:
        if self._planner is None:
            self._planner = Planner(self._options)
        return self._planner

    def initialOffset(self) -> Offsets:
        """Where a new query begins."""
        planner = self._open
        return to_json(planner.starts(planner.partitions()))

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """Up to where the next micro-batch reads: as far as records go, or maxOffsetsPerTrigger."""
        latest = self._latest() if self._target is None else self._target
        begun = self._with_new_partitions(from_json(start), latest)
        ends = {partition: max(end, begun.get(partition, 0)) for partition, end in latest.items()}
        return to_json(limited(begun, ends, limit.max_rows) if isinstance(limit, ReadMaxRows) else ends)

    def getDefaultReadLimit(self) -> ReadLimit:
        """maxOffsetsPerTrigger, as Spark calls it."""
        most = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        """Read no further than what is there now."""
        self._target = self._latest()

    def reportLatestOffset(self) -> Offsets:
        """How far records go, for the status of the query."""
        return to_json(self._latest())

    def partitions(self, start: Offsets, end: Offsets) -> list[InputPartition]:
        """The tasks of one micro-batch."""
        ends = from_json(end)
        begun = self._with_new_partitions(from_json(start), ends)
        ranges = {partition: (begun[partition], stop) for partition, stop in ends.items() if begun[partition] < stop}
        if not ranges:
            return []
        planner = self._open
        starts = planner.still_there({partition: first for partition, (first, _) in ranges.items()})
        there = {
            partition: (starts[partition], stop) for partition, (_, stop) in ranges.items() if starts[partition] < stop
        }
        return planned(planner, self._options, there, Bounds())

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The record batches of one task."""
        return read_partition(partition)

    def commit(self, end: Offsets) -> None:
        """Nothing: the checkpoint of the query has the offsets."""

    def stop(self) -> None:
        """Close all connections."""
        if self._planner is not None:
            self._planner.close()

    def _latest(self) -> dict[TopicPartition, Offset]:
        planner = self._open
        return planner.latest(planner.partitions())

    def _with_new_partitions(
        self, begun: dict[TopicPartition, Offset], ends: Mapping[TopicPartition, Offset]
    ) -> dict[TopicPartition, Offset]:
        fresh = [partition for partition in ends if partition not in begun]
        return {**begun, **self._open.earliest(fresh)} if fresh else begun


def limited(
    begun: Mapping[TopicPartition, Offset], ends: Mapping[TopicPartition, Offset], most: int
) -> dict[TopicPartition, Offset]:
    """Ends that are at most so many offsets further, in all: each partition gets a share by what it has."""
    sizes = {partition: max(end - begun.get(partition, 0), 0) for partition, end in ends.items()}
    total = sum(sizes.values())
    if total <= most:
        return dict(ends)
    left = most
    found: dict[TopicPartition, Offset] = {}
    for partition, size in sizes.items():
        share = min(size, -(-size * most // total), left)
        left -= share
        found[partition] = begun.get(partition, 0) + share
    return found


def to_json(offsets: Mapping[TopicPartition, Offset]) -> Offsets:
    """As Spark keeps it."""
    found: Offsets = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def from_json(offsets: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, Offset]:
    """The reverse."""
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in offsets.items()
        for partition, offset in partitions.items()
    }
