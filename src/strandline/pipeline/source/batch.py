"""One query over a range of offsets: `spark.read.format("strandline")`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from pyspark.sql.datasource import DataSourceReader, InputPartition

from strandline.model import TopicPartition
from strandline.pipeline.source.filters import Bounds, narrow
from strandline.pipeline.source.options import SourceOptions
from strandline.pipeline.source.parts import ReadTask
from strandline.pipeline.source.planning import Planner, Range
from strandline.pipeline.source.reading import ReadingContext, read_task


class TaskPartition(InputPartition):
    """A task as Spark passes it on to an executor."""

    def __init__(self, task: ReadTask, context: ReadingContext) -> None:
        super().__init__(None)
        self.task, self.context = task, context

    def __repr__(self) -> str:
        return f"{self.task.partition.topic_partition} {self.task.wanted.start}..{self.task.wanted.end - 1}"


def read_partition(partition: InputPartition) -> Iterator[Any]:
    """The record batches of one task. Spark makes a task without content if there are no tasks at all."""
    if isinstance(partition, TaskPartition):
        yield from read_task(partition.task, partition.context)


class TopicBatchReader(DataSourceReader):
    """Reads what was in the topics when the query was planned."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._bounds = Bounds()

    def partitions(self) -> list[InputPartition]:
        """The tasks. Called once, when the query is planned."""
        planner = Planner(self._options)
        try:
            partitions = planner.partitions(planner.topics())
            return planned(planner, self._options, planner.ranges(partitions), self._bounds)
        finally:
            planner.close()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The record batches of one task."""
        return read_partition(partition)


class FilteringBatchReader(TopicBatchReader):
    """The same, for a Spark that passes filters on (spark.sql.python.filterPushdown.enabled)."""

    def pushFilters(self, filters: list[Any]) -> Iterator[Any]:
        """Take over the filters that say what need not be read, and give back those that Spark has to apply."""
        self._bounds, left = narrow(self._bounds, filters)
        return iter(left)


def planned(
    planner: Planner,
    options: SourceOptions,
    ranges: Mapping[TopicPartition, Range],
    bounds: Bounds,
    topic_ids: Mapping[str, UUID] | None = None,
) -> list[InputPartition]:
    """The tasks that read some ranges, as Spark takes them."""
    plan = planner.plan(ranges, bounds, topic_ids)
    context = ReadingContext(
        bootstrap=options.bootstrap,
        timeout_s=options.timeout_s,
        isolation=options.isolation,
        include_headers=options.include_headers,
        fail_on_data_loss=options.fail_on_data_loss,
        stores=plan.stores,
    )
    return [TaskPartition(task, context) for task in plan.tasks]
