"""Topics that are deleted and created again, and logs that end too early: said, never mixed up or passed over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from strandline.conversion_api.values import PlanRead, ReadPlan
from strandline.model import TopicIdPartition, TopicPartition
from strandline.pipeline.source.batch import TaskPartition
from strandline.pipeline.source.brokers import SourceTopic, TopicBrokers
from strandline.pipeline.source.decoding import Wanted
from strandline.pipeline.source.errors import RecordsGone, SourceFailed
from strandline.pipeline.source.fetching import Chunk
from strandline.pipeline.source.options import parse_options
from strandline.pipeline.source.parts import BrokerPart, ReadTask
from strandline.pipeline.source.places import find_places
from strandline.pipeline.source.planning import Planner
from strandline.pipeline.source.positions import EARLIEST
from strandline.pipeline.source.reading import ReadingContext, TaskReader
from strandline.pipeline.source.stream import TopicStreamReader
from strandline.pipeline.stores import StoreSettings
from strandline.reads import FetchIsolation

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
OLD, NEW = UUID(int=1), UUID(int=2)
OLD_TEXT, NEW_TEXT = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
ALL = ReadAllAvailable()


@dataclass
class Topic:
    """One topic of a cluster that is not there, in the words of its brokers."""

    topic_id: UUID = OLD
    starts: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    unstable: int = 0
    """So many offsets at the end are of transactions that are not over."""
    pages: int = 1_000_000
    """How many offsets a plan has at most."""
    moments: list[Topic] = field(default_factory=list)
    """What becomes of it, from plan to plan."""

    def become(self, other: Topic) -> None:
        self.topic_id, self.starts, self.ends = other.topic_id, other.starts, other.ends

    def describe(self) -> Any:
        return cast("Any", StoreDescription())

    def plan_read(self, request: PlanRead) -> ReadPlan:
        high_watermark = self.ends[request.partition]
        end = min(high_watermark, request.from_offset + self.pages)
        plan = ReadPlan(
            partition=TopicIdPartition(self.topic_id, TopicPartition(request.topic, request.partition)),
            log_start_offset=self.starts.get(request.partition, 0),
            high_watermark=high_watermark,
            diskless_start_offset=high_watermark,
            segments=(),
            local_ranges=((request.from_offset, end - 1),),
            rows=(),
            end_offset=end,
        )
        if self.moments:
            self.become(self.moments.pop(0))
        return plan

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class StoreDescription:
    store_settings: dict[str, str] = field(default_factory=dict)
    cluster_id: str = "c"


class Brokers(TopicBrokers):
    """Answers without a network."""

    def __init__(self, topic: Topic, settle_s: float = 0) -> None:
        super().__init__("nowhere:1", timeout_s=1, settle_s=settle_s)
        self._topic = topic
        self.lagging = 0
        """How often a new leader still says that its log ends at 1."""

    def topics(self, names: Collection[str]) -> dict[str, SourceTopic]:
        return {"orders": SourceTopic(self._topic.topic_id, tuple(self._topic.ends))}

    def offsets(self, moments: Mapping[TopicPartition, int], isolation: FetchIsolation) -> dict[TopicPartition, int]:
        if self.lagging:
            self.lagging -= 1
            return dict.fromkeys(moments, 1)
        held = self._topic.unstable if isolation is FetchIsolation.TXN_COMMITTED else 0
        return {
            where: self._topic.starts.get(where.partition, 0)
            if moment == EARLIEST
            else self._topic.ends[where.partition] - held
            for where, moment in moments.items()
        }


def planner(topic: Topic, *, is_stream: bool, **given: str) -> Planner:
    options = parse_options({"bootstrap": "nowhere:1", "topic": "orders", **given}, is_stream=is_stream)
    return Planner(options, brokers=Brokers(topic), client=cast("Any", topic))


def stream(topic: Topic, brokers: Brokers | None = None, **given: str) -> TopicStreamReader:
    options = parse_options({"bootstrap": "nowhere:1", "topic": "orders", **given}, is_stream=True)
    return TopicStreamReader(options, Planner(options, brokers=brokers or Brokers(topic), client=cast("Any", topic)))


def spans(tasks: Any) -> dict[int, tuple[int, int]]:
    """What the tasks of a micro-batch read, by partition."""
    assert all(isinstance(one, TaskPartition) for one in tasks)
    return {one.task.partition.partition: (one.task.wanted.start, one.task.wanted.end) for one in cast("Any", tasks)}


def no_loss(sentence: str, instead: int) -> int:
    raise AssertionError(sentence)


# A query


def test_pages_of_a_plan_are_of_one_topic() -> None:
    topic = Topic(ends={0: 100}, pages=40, moments=[Topic(ends={0: 100}), Topic(topic_id=NEW, ends={0: 100})])
    with pytest.raises(SourceFailed, match="topic orders was deleted and created again since the query was planned"):
        find_places(cast("Any", topic), P0, 0, 100, no_loss)
    key, parts = find_places(cast("Any", Topic(ends={0: 100}, pages=40)), P0, 0, 100, no_loss)
    assert key == TopicIdPartition(OLD, P0)
    assert [(part.start, part.end) for part in parts] == [(0, 40), (40, 80), (80, 100)]


class Gone:
    """Reads one part, and then nothing more."""

    async def chunks(self, parts: Any) -> AsyncGenerator[tuple[Any, Chunk], None]:
        if parts[0].start == 0:
            yield parts[0], Chunk(b"", None, "an object", 10)
        raise RecordsGone("An object is gone.")


@pytest.mark.parametrize("fail", [True, False])
def test_a_task_never_goes_on_with_another_topic(fail: bool) -> None:
    context = ReadingContext(
        bootstrap="",
        timeout_s=1,
        isolation=FetchIsolation.HIGH_WATERMARK,
        include_headers=False,
        fail_on_data_loss=fail,
        stores=StoreSettings({}),
    )
    parts = (BrokerPart(start=0, end=10), BrokerPart(start=10, end=20))
    task = ReadTask(partition=TopicIdPartition(OLD, P0), wanted=Wanted(start=0, end=20), parts=parts)

    async def run() -> None:
        reader = TaskReader(task, context, cast("Any", Gone()), cast("Any", Topic(topic_id=NEW, ends={0: 100})))
        async for _ in reader.chunks():
            pass

    with pytest.raises(SourceFailed, match="deleted and created again since the query was planned"):
        asyncio.run(run())


@pytest.mark.parametrize("is_stream", [True, False])
def test_offsets_behind_the_end_are_an_error(is_stream: bool) -> None:
    topic = Topic(ends={0: 100, 1: 50})
    beyond = '{"orders": {"0": 100, "1": 51}}'
    strict = planner(topic, is_stream=is_stream, startingOffsets=beyond)
    with pytest.raises(SourceFailed, match=r"startingOffsets of orders-1 is 51, but .* no records from 50 on"):
        strict.starts([P0, P1])
    lenient = planner(topic, is_stream=is_stream, startingOffsets=beyond, failOnDataLoss="false")
    assert lenient.starts([P0, P1]) == {P0: 100, P1: 50}


def test_ends_behind_the_end_are_an_error() -> None:
    topic, beyond = Topic(ends={0: 100}), '{"orders": {"0": 101}}'
    with pytest.raises(SourceFailed, match="endingOffsets of orders-0 is 101, but the partition ends at 100"):
        planner(topic, is_stream=False, endingOffsets=beyond).ranges([P0])
    lenient = planner(topic, is_stream=False, endingOffsets=beyond, failOnDataLoss="false")
    assert lenient.ranges([P0]) == {P0: (0, 100)}


# A stream


def test_the_checkpoint_knows_the_topic() -> None:
    topic = Topic(ends={0: 100, 1: 50})
    reader = stream(topic, startingOffsets="earliest")
    start = reader.initialOffset()
    assert start == {"orders": {"id": OLD_TEXT, "0": 0, "1": 0}}
    end = reader.latestOffset(start, ALL)
    assert end == {"orders": {"id": OLD_TEXT, "0": 100, "1": 50}}
    assert spans(reader.partitions(start, end)) == {0: (0, 100), 1: (0, 50)}
    assert reader.partitions(end, end) == []


@pytest.mark.parametrize("is_available_now", [True, False])
@pytest.mark.parametrize(
    ("start", "sentence"),
    [
        ({"orders": {"id": OLD_TEXT, "0": 100, "1": 50}}, "Topic orders was deleted and created again since"),
        ({"orders": {"0": 100, "1": 50}}, "orders-0 ends at offset 80, before offset 100 of the checkpoint"),
    ],
)
def test_a_topic_that_is_created_again_with_fewer_records(start: Any, sentence: str, is_available_now: bool) -> None:
    topic = Topic(topic_id=NEW, starts={0: 10}, ends={0: 80, 1: 0})
    strict = stream(topic)
    lenient = stream(topic, failOnDataLoss="false")
    if is_available_now:
        strict.prepareForTriggerAvailableNow()
        lenient.prepareForTriggerAvailableNow()
    with pytest.raises(SourceFailed, match=f"{sentence}.* Start the query with a new checkpoint"):
        strict.latestOffset(start, ALL)
    end = lenient.latestOffset(start, ReadMaxRows(30))
    assert end == {"orders": {"id": NEW_TEXT, "0": 40, "1": 0}}
    assert spans(lenient.partitions(start, end)) == {0: (10, 40)}
    rest = lenient.latestOffset(end, ALL)
    assert spans(strict.partitions(end, rest)) == {0: (40, 80)}
    assert strict.latestOffset(end, ALL) == rest, "the checkpoint is that of the new topic from now on"


def test_a_topic_that_is_created_again_and_has_more_records() -> None:
    start = {"orders": {"id": OLD_TEXT, "0": 100}}
    topic = Topic(topic_id=NEW, ends={0: 500, 1: 5})
    with pytest.raises(SourceFailed, match="Topic orders was deleted and created again"):
        stream(topic).latestOffset(cast("Any", start), ALL)
    lenient = stream(topic, failOnDataLoss="false")
    end = lenient.latestOffset(cast("Any", start), ALL)
    assert spans(lenient.partitions(cast("Any", start), end)) == {0: (0, 500), 1: (0, 5)}


def test_a_topic_that_is_created_again_with_fewer_partitions() -> None:
    start: Any = {"orders": {"0": 100, "1": 50}}
    topic = Topic(topic_id=NEW, ends={0: 500})
    with pytest.raises(SourceFailed, match="orders-1 is not there any more"):
        stream(topic).latestOffset(start, ALL)
    assert stream(topic, failOnDataLoss="false").latestOffset(start, ALL) == {"orders": {"id": NEW_TEXT, "0": 500}}


def test_a_micro_batch_that_is_repeated_after_its_topic_was_created_again() -> None:
    """Spark has written its offsets down, and has them planned again when the query starts."""
    start: Any = {"orders": {"id": OLD_TEXT, "0": 100}}
    end: Any = {"orders": {"id": OLD_TEXT, "0": 200}}
    topic = Topic(topic_id=NEW, ends={0: 500})
    with pytest.raises(SourceFailed, match="created again since this micro-batch was planned"):
        stream(topic).partitions(start, end)
    assert stream(topic, failOnDataLoss="false").partitions(start, end) == []
    start, end = {"orders": {"0": 100}}, {"orders": {"0": 200}}
    shorter = Topic(topic_id=NEW, ends={0: 150})
    with pytest.raises(SourceFailed, match="ends at offset 150, but records up to 200 were planned"):
        stream(shorter).partitions(start, end)
    assert spans(stream(shorter, failOnDataLoss="false").partitions(start, end)) == {0: (100, 150)}


def test_a_topic_that_is_created_again_while_a_micro_batch_is_planned() -> None:
    start: Any = {"orders": {"id": OLD_TEXT, "0": 100}}
    topic = Topic(ends={0: 200, 1: 10}, moments=[Topic(topic_id=NEW, ends={0: 500, 1: 500})])
    reader = stream(topic)
    with pytest.raises(SourceFailed, match="since the query was planned"):
        reader.partitions(start, reader.latestOffset(start, ALL))


def test_a_log_whose_end_was_lost_goes_on_at_its_end() -> None:
    start: Any = {"orders": {"id": OLD_TEXT, "0": 100}}
    topic = Topic(ends={0: 90})
    with pytest.raises(SourceFailed, match=r"before offset 100 .*: the end of its log was lost"):
        stream(topic).latestOffset(start, ALL)
    lenient = stream(topic, failOnDataLoss="false")
    end = lenient.latestOffset(start, ALL)
    assert end == {"orders": {"id": OLD_TEXT, "0": 90}}
    assert lenient.partitions(start, end) == []


def test_a_leader_that_lags_or_waits_for_transactions_has_lost_nothing() -> None:
    start: Any = {"orders": {"id": OLD_TEXT, "0": 100}}
    topic = Topic(ends={0: 100})
    brokers = Brokers(topic, settle_s=30)
    brokers.lagging = 3
    assert stream(topic, brokers).latestOffset(start, ALL) == start
    topic = Topic(ends={0: 120}, unstable=40)
    assert stream(topic, isolation="read_committed").latestOffset(start, ALL) == start
