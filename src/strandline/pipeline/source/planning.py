"""On the driver: which offsets a query reads, where they are, and in which tasks they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from uuid import UUID

from strandline.client import CommandFailed
from strandline.model import Offset, TopicIdPartition, TopicPartition
from strandline.pipeline.client import TieringClient
from strandline.pipeline.source.brokers import SourceTopic, TopicBrokers, flattened
from strandline.pipeline.source.decoding import Wanted
from strandline.pipeline.source.errors import SourceFailed
from strandline.pipeline.source.filters import Bounds
from strandline.pipeline.source.options import SourceOptions
from strandline.pipeline.source.parts import Part, ReadTask, divided, in_time, total_size
from strandline.pipeline.source.places import find_places
from strandline.pipeline.source.positions import EARLIEST, LATEST, resolve
from strandline.pipeline.stores import StoreSettings

Range = tuple[Offset, Offset]
"""First offset, and the one behind the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """The tasks of a query, and what each of them needs."""

    tasks: tuple[ReadTask, ...]
    stores: StoreSettings = field(repr=False)


class Planner:
    """Asks brokers. Blocking; to be closed."""

    def __init__(
        self, options: SourceOptions, *, brokers: TopicBrokers | None = None, client: TieringClient | None = None
    ) -> None:
        self._options = options
        self._brokers = brokers or TopicBrokers(options.bootstrap, timeout_s=options.timeout_s)
        self._client = client or TieringClient(options.bootstrap, timeout_s=options.timeout_s)

    def close(self) -> None:
        """Close all connections."""
        self._brokers.close()
        self._client.close()

    # Offsets

    def topics(self) -> dict[str, SourceTopic]:
        """The topics of the query as they are now. Raises SourceFailed."""
        return self._brokers.topics(self._options.topics)

    def partitions(self, topics: Mapping[str, SourceTopic]) -> list[TopicPartition]:
        """The partitions of the query. Raises SourceFailed."""
        options = self._options
        known = {name: topic.partitions for name, topic in topics.items()}
        if options.assigned is None:
            return flattened(known)
        for topic, numbers in options.assigned.items():
            missing = sorted(set(numbers) - set(known[topic]))
            if missing:
                raise SourceFailed(f"Topic {topic} has no partition {missing[0]}, which assign names.")
        return flattened(options.assigned)

    def ranges(self, partitions: list[TopicPartition]) -> dict[TopicPartition, Range]:
        """From where to where each partition is read. Raises SourceFailed."""
        options = self._options
        starts, ends = self.starts(partitions), resolve(options.ending, partitions, self._find)
        latest = self.latest(partitions)  # asked afterwards: an end that was the latest then is not behind it
        for partition, end in ends.items():
            if end > latest[partition]:
                ends[partition] = self._lost(
                    f"endingOffsets of {partition} is {end}, but the partition ends at {latest[partition]}",
                    latest[partition],
                )
        return {partition: (starts[partition], ends[partition]) for partition in partitions}

    def starts(self, partitions: list[TopicPartition]) -> dict[TopicPartition, Offset]:
        """Where the options say to begin. Raises SourceFailed if a partition does not have the offset they name."""
        starting = self._options.starting
        found = resolve(starting, partitions, self._find)
        if starting.offsets is None:
            return found
        found = self.still_there(found)
        # Readers of committed records may begin behind the last stable offset: their records come later.
        for partition, end in self.log_ends(found).items():
            if found[partition] > end:
                found[partition] = self._lost(
                    f"startingOffsets of {partition} is {found[partition]}, but the partition has no records from "
                    f"{end} on",
                    end,
                )
        return found

    def still_there(self, starts: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, Offset]:
        """Offsets that are in the log or behind it: later ones than these where records are gone."""
        earliest = self.earliest(list(starts))
        found = dict(starts)
        for partition, start in starts.items():
            if start < earliest[partition]:
                found[partition] = self._lost(
                    f"{partition} begins at offset {earliest[partition]}, records from {start} on were asked for",
                    earliest[partition],
                )
        return found

    def earliest(self, partitions: list[TopicPartition]) -> dict[TopicPartition, Offset]:
        """Where logs begin."""
        return self._find(dict.fromkeys(partitions, EARLIEST))

    def latest(self, partitions: list[TopicPartition]) -> dict[TopicPartition, Offset]:
        """Where logs end, for readers of this isolation."""
        return self._find(dict.fromkeys(partitions, LATEST))

    def log_ends(self, expected: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, Offset]:
        """Where logs end that should have these offsets, whatever the isolation."""
        return self._brokers.log_ends(expected)

    def _find(self, moments: Mapping[TopicPartition, int]) -> dict[TopicPartition, Offset]:
        return self._brokers.offsets(moments, self._options.isolation)

    def _lost(self, sentence: str, instead: Offset) -> Offset:
        if self._options.fail_on_data_loss:
            raise SourceFailed(f"{sentence}. With failOnDataLoss=false the query goes on without them.")
        return instead

    # Tasks

    def plan(
        self, ranges: Mapping[TopicPartition, Range], bounds: Bounds, topic_ids: Mapping[str, UUID] | None = None
    ) -> QueryPlan:
        """The tasks that read these offsets, as far as they can meet the bounds. Raises SourceFailed.

        It also does if a topic is not the one with the given id any more.
        """
        known = topic_ids or {}
        try:
            cluster = self._client.describe()
            plans = [
                self._places(partition, wanted, bounds, known.get(partition.topic))
                for partition, wanted in ranges.items()
            ]
        except CommandFailed as failure:
            raise SourceFailed(str(failure)) from failure
        found = [plan for plan in plans if plan is not None]
        options = self._options
        max_bytes = options.bytes_per_task
        if options.min_partitions is not None:
            size = total_size(list(chain.from_iterable(parts for _, _, parts in found)))
            max_bytes = min(max_bytes, max(size // options.min_partitions, 1))
        tasks = [
            ReadTask(partition=partition, wanted=_within(wanted, parts), parts=parts)
            for partition, wanted, every in found
            for parts in divided(every, max_bytes=max_bytes, max_records=options.max_records_per_partition)
        ]
        settings = {**cluster.store_settings, **options.store_settings}
        return QueryPlan(tasks=tuple(tasks), stores=StoreSettings(settings, cluster.cluster_id))

    def _places(
        self, partition: TopicPartition, offsets: Range, bounds: Bounds, topic_id: UUID | None
    ) -> tuple[TopicIdPartition, Wanted, list[Part]] | None:
        """The parts of one partition that are to be read; None if there are none."""
        if bounds.topics is not None and partition.topic not in bounds.topics:
            return None
        if bounds.partitions is not None and partition.partition not in bounds.partitions:
            return None
        wanted = Wanted(
            start=max(offsets[0], bounds.min_offset),
            end=min(offsets[1], bounds.max_offset + 1),
            min_timestamp=bounds.min_timestamp,
            max_timestamp=bounds.max_timestamp,
        )
        if wanted.start >= wanted.end or wanted.min_timestamp > wanted.max_timestamp:
            return None
        key, parts = find_places(self._client, partition, wanted.start, wanted.end, self._lost, topic_id=topic_id)
        return key, wanted, list(in_time(parts, wanted.min_timestamp, wanted.max_timestamp))


def _within(wanted: Wanted, parts: tuple[Part, ...]) -> Wanted:
    return Wanted(
        start=parts[0].start,
        end=parts[-1].end,
        min_timestamp=wanted.min_timestamp,
        max_timestamp=wanted.max_timestamp,
    )
