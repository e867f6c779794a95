"""A query without an end: `spark.readStream.format("strandline")`. Its offsets are those of the partitions, as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from strandline.model import ZERO_UUID, Offset, TopicPartition
from strandline.pipeline.source.batch import planned, read_partition
from strandline.pipeline.source.brokers import SourceTopic
from strandline.pipeline.source.checkpoint import Checkpoint, Offsets, from_json, to_json
from strandline.pipeline.source.errors import SourceFailed
from strandline.pipeline.source.filters import Bounds
from strandline.pipeline.source.options import SourceOptions
from strandline.pipeline.source.planning import Planner, Range

_BEGIN_AGAIN: Final = (
    "Start the query with a new checkpoint, or with failOnDataLoss=false: it then goes on with what the topic has now, "
    "from the beginning."
)
_GO_ON: Final = "With failOnDataLoss=false the query goes on with what is written from now on."
_PASS_OVER: Final = "With failOnDataLoss=false the query goes on without them."


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what comes, from checkpoint to checkpoint. New partitions are read from their beginning."""

    def __init__(self, options: SourceOptions, planner: Planner | None = None) -> None:
        self._options = options
        self._planner = planner
        self._target: Checkpoint | None = None

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
        topics = planner.topics()
        return to_json(_checkpoint(planner.starts(planner.partitions(topics)), topics))

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """Up to where the next micro-batch reads: as far as records go, or maxOffsetsPerTrigger."""
        known = from_json(start)
        reached = self._without_loss(known, self._latest() if self._target is None else self._target)
        begun = self._begun(known, reached)
        ends = {partition: max(end, begun[partition]) for partition, end in reached.offsets.items()}
        if isinstance(limit, ReadMaxRows):
            ends = limited(begun, ends, limit.max_rows)
        return to_json(replace(reached, offsets=ends))

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
        wanted = from_json(end)
        begun = self._begun(from_json(start), wanted)
        ranges = {
            partition: (begun[partition], stop) for partition, stop in wanted.offsets.items() if begun[partition] < stop
        }
        ranges = self._still_there(ranges, wanted) if ranges else {}
        return planned(self._open, self._options, ranges, Bounds(), wanted.topic_ids) if ranges else []

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The record batches of one task."""
        return read_partition(partition)

    def commit(self, end: Offsets) -> None:
        """Nothing: the checkpoint of the query has the offsets."""

    def stop(self) -> None:
        """Close all connections."""
        if self._planner is not None:
            self._planner.close()

    def _latest(self) -> Checkpoint:
        planner = self._open
        topics = planner.topics()  # asked first: if a topic is created again now, its old id shows that later
        return _checkpoint(planner.latest(planner.partitions(topics)), topics)

    # What is lost

    def _lost(self, sentence: str) -> None:
        if self._options.fail_on_data_loss:
            raise SourceFailed(sentence)

    def _without_loss(self, known: Checkpoint, reached: Checkpoint) -> Checkpoint:
        """`reached` as the next micro-batch can take it. Raises SourceFailed if it is not what follows `known`."""
        behind: dict[TopicPartition, Offset] = {}
        topics = {partition.topic for partition in reached.offsets}
        for topic in sorted(topics):
            if known.is_same_topic(reached, topic) is False:
                self._lost(
                    f"Topic {topic} was deleted and created again since the checkpoint of the query was written: its "
                    f"offsets are those of other records now. {_BEGIN_AGAIN}"
                )
        for partition, offset in known.offsets.items():
            is_same = known.is_same_topic(reached, partition.topic)
            end = reached.offsets.get(partition)
            if end is not None and end < offset and is_same is not False:
                behind[partition] = offset
            is_gone = end is None and partition.topic in topics and self._options.assigned is None
            if is_gone and is_same is None:
                self._lost(
                    f"{partition} is not there any more: its topic was deleted and created again. {_BEGIN_AGAIN}"
                )
        if not behind:
            return reached
        offsets = dict(reached.offsets)
        for partition, end in self._open.log_ends(behind).items():
            offset = behind[partition]
            if end >= offset:
                offsets[partition] = offset  # the records behind it are of transactions that are not over
                continue
            where = f"{partition} ends at offset {end}, before offset {offset} of the checkpoint of the query"
            if known.is_same_topic(reached, partition.topic):
                self._lost(f"{where}: the end of its log was lost. {_GO_ON}")
            else:
                self._lost(
                    f"{where}: its topic was deleted and created again, or the end of its log was lost. {_BEGIN_AGAIN}"
                )
        return replace(reached, offsets=offsets)

    def _begun(self, known: Checkpoint, ends: Checkpoint) -> dict[TopicPartition, Offset]:
        """Where each partition goes on: at its beginning if it is new, or if its topic is another one."""
        begun: dict[TopicPartition, Offset] = {}
        for partition, end in ends.offsets.items():
            offset = known.offsets.get(partition)
            is_same = known.is_same_topic(ends, partition.topic)
            if offset is None or is_same is False or (is_same is None and offset > end):
                continue
            begun[partition] = min(offset, end)
        fresh = [partition for partition in ends.offsets if partition not in begun]
        return {**begun, **self._open.earliest(fresh)} if fresh else begun

    def _still_there(self, ranges: Mapping[TopicPartition, Range], wanted: Checkpoint) -> dict[TopicPartition, Range]:
        """What is left of ranges. A query that is started again repeats a micro-batch that may be planned long ago."""
        planner = self._open
        now = _checkpoint({}, planner.topics())
        for topic in sorted({partition.topic for partition in ranges}):
            if wanted.is_same_topic(now, topic) is False:
                self._lost(
                    f"Topic {topic} was deleted and created again since this micro-batch was planned: its records are "
                    f"gone. {_PASS_OVER}"
                )
        left = {
            partition: offsets
            for partition, offsets in ranges.items()
            if wanted.is_same_topic(now, partition.topic) is not False
        }
        starts = planner.still_there({partition: first for partition, (first, _) in left.items()})
        ends = planner.log_ends({partition: stop for partition, (_, stop) in left.items()})
        for partition, (_, stop) in left.items():
            if ends[partition] < stop:
                self._lost(
                    f"{partition} ends at offset {ends[partition]}, but records up to {stop} were planned: they are "
                    f"gone. {_PASS_OVER}"
                )
        found = {partition: (starts[partition], min(stop, ends[partition])) for partition, (_, stop) in left.items()}
        return {partition: (first, stop) for partition, (first, stop) in found.items() if first < stop}


def limited(
    begun: Mapping[TopicPartition, Offset], ends: Mapping[TopicPartition, Offset], most: int
) -> dict[TopicPartition, Offset]:
    """Ends that are at most so many offsets further, in all: each partition gets a share by what it has.

    Shares are rounded down, and what is left goes to partitions in turn. Every micro-batch begins one partition
    further: the offsets that were read so far, divided by `most`, count micro-batches. So even a partition whose share
    is below one offset gets one in every round.
    """
    sizes = {partition: max(end - begun.get(partition, 0), 0) for partition, end in sorted(ends.items())}
    total = sum(sizes.values())
    if total <= most:
        return dict(ends)
    shares = {partition: size * most // total for partition, size in sizes.items()}
    left = most - sum(shares.values())
    order = list(sizes)
    turn = sum(begun.get(partition, 0) for partition in order) // most % len(order)
    for partition in (*order[turn:], *order[:turn]):
        if left and shares[partition] < sizes[partition]:
            shares[partition] += 1
            left -= 1
    return {partition: begun.get(partition, 0) + share for partition, share in shares.items()}


def _checkpoint(offsets: Mapping[TopicPartition, Offset], topics: Mapping[str, SourceTopic]) -> Checkpoint:
    ids = {name: topic.topic_id for name, topic in topics.items() if topic.topic_id != ZERO_UUID}
    return Checkpoint(offsets=offsets, topic_ids=ids)
