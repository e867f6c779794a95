"""Where records are, asked page by page: on the driver for a whole query, in a task when a plan has become old."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from strandline.conversion_api.values import PlanRead
from strandline.model import Offset, TopicIdPartition, TopicPartition
from strandline.pipeline.client import TieringClient
from strandline.pipeline.source.errors import SourceFailed
from strandline.pipeline.source.parts import Part, parts_of

Lost = Callable[[str, Offset], Offset]
"""Called with a sentence when records are gone; raises, or returns where to go on."""


def find_places(
    client: TieringClient,
    partition: TopicPartition,
    start: Offset,
    end: Offset,
    lost: Lost,
    *,
    topic_id: UUID | None = None,
) -> tuple[TopicIdPartition, list[Part]]:
    """The parts that hold every record from `start` to `end`, exclusive. Raises CommandFailed, and what `lost` does.

    Raises SourceFailed if the topic is not the one with `topic_id`, or becomes another one meanwhile: the same offsets
    are other records then.
    """
    found: list[Part] = []
    at = start
    while True:
        plan = client.plan_read(PlanRead(topic=partition.topic, partition=partition.partition, from_offset=at))
        if topic_id is not None and plan.partition.topic_id != topic_id:
            raise recreated(partition)
        topic_id = plan.partition.topic_id
        if plan.log_start_offset > at:
            at = lost(
                f"Records of {partition} from offset {at} on are gone: it begins at {plan.log_start_offset} now",
                min(plan.log_start_offset, end),
            )
        parts = parts_of(plan, at, end)
        found += parts
        reached = min(plan.end_offset, end)
        if reached >= end:
            return plan.partition, found
        if reached <= at:
            raise SourceFailed(
                f"{partition} ends at offset {plan.high_watermark}, but was to be read up to {end}. Was the topic "
                "deleted and created again?"
            )
        at = reached


def recreated(partition: TopicPartition) -> SourceFailed:
    """What to say of a topic that is not the one whose records were planned."""
    return SourceFailed(
        f"{partition} cannot be read: topic {partition.topic} was deleted and created again since the query was "
        "planned. Run the query again to read the new topic."
    )
