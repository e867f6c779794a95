"""Options, positions, filters, parts: what is decided without asking anybody."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, In, IsNotNull, LessThan, LessThanOrEqual

from strandline.conversion_api.values import PlacedRow, PlannedRow, ReadPlan, SegmentDescription
from strandline.model import TopicIdPartition, TopicPartition
from strandline.pipeline.source.checkpoint import Checkpoint, from_json, to_json
from strandline.pipeline.source.committed import first_transactional, without_aborted
from strandline.pipeline.source.errors import SourceFailed
from strandline.pipeline.source.filters import Bounds, narrow
from strandline.pipeline.source.options import parse_options
from strandline.pipeline.source.parts import Part, RowPart, divided, in_time, parts_of
from strandline.pipeline.source.positions import EARLIEST, LATEST, parse_positions, resolve
from strandline.pipeline.source.stream import limited
from strandline.reads import FetchIsolation
from strandline.records import ControlType, EndTransactionMarker, Record, build_batch, build_marker

NEEDED = {"bootstrap": "localhost:9092", "topic": "orders"}
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


# Options


def test_names_of_sparks_kafka_source_are_known_in_any_case() -> None:
    given_options = {
        "kafka.bootstrap.servers": "a:1,b:2",
        "SUBSCRIBE": "orders, payments",
        "StartingOffsets": "latest",
        "kafka.isolation.level": "read_committed",
        "minpartitions": "7",
        "inkless.storage.aws.secret.access.key": "hidden",
    }
    options = parse_options(given_options, is_stream=False)
    assert (options.bootstrap, options.topics) == ("a:1,b:2", ("orders", "payments"))
    assert (options.starting.default, options.min_partitions) == (LATEST, 7)
    assert options.isolation is FetchIsolation.TXN_COMMITTED
    assert options.store_settings == {"inkless.storage.aws.secret.access.key": "hidden"}
    assert "hidden" not in repr(options)


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        ({"topics": "orders"}, "has no option topics"),
        ({"topic": " , "}, "Which topic"),
        ({"bootstrap": ""}, "The option bootstrap is missing"),
        ({"subscribe": "orders"}, "mean the same"),
        ({"assign": '{"orders": [0]}'}, "leave out topic"),
        ({"startingOffsets": "first"}, "startingOffsets has to be earliest, latest or JSON"),
        ({"startingOffsets": '{"orders": {"0": -3}}'}, "-2 for earliest"),
        ({"endingOffsets": "earliest"}, "cannot be earliest"),
        ({"endingOffsets": '{"orders": {"0": -2}}'}, "-1 for latest"),
        ({"startingTimestamp": "yesterday"}, "startingTimestamp has to be a time in milliseconds"),
        ({"startingTimestamp": str(1 << 63)}, "startingTimestamp has to be a time in milliseconds"),
        ({"endingOffsetsByTimestamp": '{"orders": {"0": 9223372036854775808}}'}, "no number in Kafka is above"),
        ({"startingOffsets": '{"orders": {"0": 9223372036854775808}}'}, "startingOffsets of orders-0 is 92233"),
        ({"startingOffsets": '{"orders": {"0": 1.9}}'}, "startingOffsets has to be earliest, latest or JSON"),
        ({"startingOffsets": '{"orders": {"0": true}}'}, "startingOffsets has to be earliest, latest or JSON"),
        ({"startingOffsets": '{"orders": {"0": Infinity}}'}, "startingOffsets has to be earliest, latest or JSON"),
        ({"timeoutMs": "9" * 400}, "timeoutMs has to be a whole number above 0"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, "error or latest"),
        ({"minPartitions": "0"}, "minPartitions has to be a whole number above 0"),
        ({"isolation": "serializable"}, "isolation has to be read_uncommitted or read_committed"),
        ({"includeHeaders": "perhaps"}, "includeHeaders has to be true or false"),
        ({"config": "/nowhere/at/all"}, "The file of the option config"),
    ],
)
def test_an_option_that_makes_no_sense_is_a_sentence(extra: dict[str, str], sentence: str) -> None:
    with pytest.raises(SourceFailed, match=sentence):
        parse_options({**NEEDED, **extra}, is_stream=False)


def test_a_stream_begins_at_the_end_and_has_none() -> None:
    assert parse_options(NEEDED, is_stream=True).starting.default == LATEST
    assert parse_options(NEEDED, is_stream=False).starting.default == EARLIEST
    with pytest.raises(SourceFailed, match="A stream has no end"):
        parse_options({**NEEDED, "endingOffsets": '{"orders": {"0": 5}}'}, is_stream=True)


# Positions


def test_positions_in_offsets_names_and_times() -> None:
    asked: list[dict[TopicPartition, int]] = []

    def find(moments: Any) -> dict[TopicPartition, int]:
        asked.append(dict(moments))
        return {partition: 40 if moment == LATEST else -1 for partition, moment in moments.items()}

    offsets = parse_positions({"startingOffsets": '{"orders": {"0": 7, "1": -1}}'}, "starting", default="earliest")
    assert resolve(offsets, [P0, P1], find) == {P0: 7, P1: 40}
    assert asked == [{P1: LATEST}]
    with pytest.raises(SourceFailed, match="orders-2 is not among"):
        resolve(offsets, [TopicPartition("orders", 2)], find)
    time = parse_positions({"endingTimestamp": "1000"}, "ending", default="latest")
    assert resolve(time, [P0], find) == {P0: 40}, "nothing is that new: the end"
    strict = parse_positions({"startingTimestamp": "1000"}, "starting", default="earliest")
    with pytest.raises(SourceFailed, match="No record of orders-0 is as new as 1000"):
        resolve(strict, [P0], find)


def test_offsets_of_a_stream_are_json_and_back() -> None:
    offsets = {P0: 5, P1: 6, TopicPartition("b", 10): 7}
    checkpoint = Checkpoint(offsets=offsets, topic_ids={"orders": UUID(int=1), "b": UUID(int=2)})
    assert from_json(to_json(checkpoint)) == checkpoint
    assert to_json(checkpoint) == {
        "b": {"id": "AAAAAAAAAAAAAAAAAAAAAg", "10": 7},
        "orders": {"id": "AAAAAAAAAAAAAAAAAAAAAQ", "0": 5, "1": 6},
    }
    earlier = Checkpoint(offsets=offsets)
    assert from_json({"b": {"10": 7}, "orders": {"0": 5, "1": 6}}) == earlier, "as earlier versions wrote it"
    assert to_json(earlier) == {"b": {"10": 7}, "orders": {"0": 5, "1": 6}}


@given(st.dictionaries(st.integers(0, 9), st.tuples(st.integers(0, 50), st.integers(0, 50))), st.integers(1, 200))
def test_a_limit_is_shared_and_never_left_unused(sizes: dict[int, tuple[int, int]], most: int) -> None:
    begun = {TopicPartition("t", number): first for number, (first, _) in sizes.items()}
    ends = {TopicPartition("t", number): first + size for number, (first, size) in sizes.items()}
    found = limited(begun, ends, most)
    taken = sum(found[partition] - begun[partition] for partition in begun)
    assert taken == min(most, sum(size for _, size in sizes.values()))
    assert all(begun[one] <= found[one] <= ends[one] for one in begun)


@pytest.mark.parametrize("most", [1, 2, 3, 5, 9, 10, 11, 20, 25])
@pytest.mark.parametrize("lags", [[1000] * 10, [1_000_000, *[3] * 9], [*[5] * 9, 1_000_000], [0, 40, 0, 10_000]])
def test_no_partition_waits_for_ever(lags: list[int], most: int) -> None:
    """Others get new records all the time: each partition is read, one round of all partitions at the latest."""
    begun = {TopicPartition("t", number): 7 * number for number in range(len(lags))}
    ends = {one: begun[one] + lag for one, lag in zip(begun, lags, strict=True)}
    waiting = dict.fromkeys(begun, 0)
    for _ in range(300):
        found = limited(begun, ends, most)
        for one in begun:
            waiting[one] = waiting[one] + 1 if found[one] == begun[one] < ends[one] else 0
        assert max(waiting.values()) < len(lags)
        begun = found
        ends = {one: end + (most if end - begun[one] > 100 else 0) for one, end in ends.items()}


# Filters


def test_filters_narrow_bounds() -> None:
    filters = [
        IsNotNull(("offset",)),
        EqualTo(("partition",), 3),
        In(("partition",), (3, 4)),
        GreaterThan(("offset",), 10),
        LessThanOrEqual(("offset",), 20),
        EqualTo(("topic",), "orders"),
        GreaterThan(("value",), b"x"),
        IsNotNull(("key",)),
    ]
    bounds, left = narrow(Bounds(), filters)
    assert bounds == Bounds(topics=frozenset({"orders"}), partitions=frozenset({3}), min_offset=11, max_offset=20)
    assert left == filters[-2:]


@given(st.integers(-5000, 5000), st.sampled_from([EqualTo, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual]))
def test_times_are_narrowed_exactly_and_left_to_spark(micros: int, kind: Any) -> None:
    one = kind(("timestamp",), EPOCH + timedelta(microseconds=micros))
    bounds, left = narrow(Bounds(), [one])
    assert left == [one]
    compare: dict[Any, Callable[[int], bool]] = {
        EqualTo: lambda value: value == micros,
        GreaterThan: lambda value: value > micros,
        GreaterThanOrEqual: lambda value: value >= micros,
        LessThan: lambda value: value < micros,
        LessThanOrEqual: lambda value: value <= micros,
    }
    for millis in range(-7, 8):
        assert (bounds.min_timestamp <= millis <= bounds.max_timestamp) == compare[kind](millis * 1000)


# Parts


def row(first: int, last: int, *, size: int = 100, newest: int = 0, stamped: bool = False) -> PlacedRow:
    return PlacedRow("wal/x", PlannedRow(first, last, 0, size, int(stamped), newest, newest, 0))


def segment(first: int, last: int, *, size: int = 1000, newest: int = 0) -> SegmentDescription:
    return SegmentDescription(
        segment_id=UUID(int=first),
        start_offset=first,
        end_offset=last,
        max_timestamp_ms=newest,
        broker_id=1,
        event_timestamp_ms=0,
        segment_size_in_bytes=size,
        leader_epochs=((0, first),),
    )


def plan(*, segments: Any = (), ranges: Any = (), rows: Any = (), start: int = 0, end: int) -> ReadPlan:
    return ReadPlan(
        partition=TopicIdPartition(UUID(int=1), P0),
        log_start_offset=start,
        high_watermark=end,
        diskless_start_offset=0,
        segments=tuple(segments),
        local_ranges=tuple(ranges),
        rows=tuple(rows),
        end_offset=end,
    )


def spans(parts: Any) -> list[tuple[int, int]]:
    return [(part.start, part.end) for part in parts]


def test_parts_follow_each_other_and_count_what_segments_share_once() -> None:
    found = parts_of(
        plan(segments=[segment(0, 9), segment(5, 19)], ranges=[(20, 29)], rows=[row(30, 39), row(40, 49)], end=50),
        3,
        45,
    )
    assert spans(found) == [(3, 10), (10, 20), (20, 30), (30, 40), (40, 45)]


@given(st.integers(1, 3000), st.none() | st.integers(1, 40))
def test_tasks_have_about_the_size_and_every_offset_once(max_bytes: int, max_records: int | None) -> None:
    every = parts_of(plan(segments=[segment(0, 99)], ranges=[(100, 120)], rows=[row(121, 150)], end=151), 0, 151)
    groups = list(divided(every, max_bytes=max_bytes, max_records=max_records))
    flat: list[Part] = [part for group in groups for part in group]
    assert spans(flat)[0][0] == 0
    assert spans(flat)[-1][1] == 151
    assert all(before.end == after.start for before, after in pairwise(flat))
    for group in groups:
        assert len(group) == 1 or sum(part.size for part in group) <= max_bytes
        if max_records is not None:
            assert sum(part.end - part.start for part in group) <= max_records


def test_parts_that_are_too_old_are_left_out() -> None:
    every = parts_of(
        plan(
            segments=[segment(0, 9, newest=5), segment(10, 19, newest=50)],
            rows=[row(20, 29, newest=5), row(30, 39, newest=50), row(40, 49, newest=50, stamped=True)],
            end=50,
        ),
        0,
        50,
    )
    assert spans(in_time(every, 10, 100)) == [(10, 20), (30, 40), (40, 50)]
    kept = list(in_time(every, -1, 20))
    assert (40, 50) not in spans(kept), "all of its records are newer"
    assert isinstance(kept[-1], RowPart)


# Committed records


def test_batches_of_aborted_transactions_are_left_out() -> None:
    def batch(offset: int, producer: int, *, is_transactional: bool = True) -> bytes:
        return bytes(
            build_batch(
                [Record(offset, 0, None, b"v")],
                base_offset=offset,
                producer_id=producer,
                producer_epoch=0,
                is_transactional=is_transactional,
            )
        )

    def marker(offset: int, producer: int, kind: ControlType) -> bytes:
        end = EndTransactionMarker(kind, 0)
        return bytes(build_marker(end, producer_id=producer, producer_epoch=0, timestamp_ms=0, base_offset=offset))

    plain = batch(0, 9, is_transactional=False)
    data = [
        plain,
        batch(1, 1),
        batch(2, 2),
        marker(3, 1, ControlType.ABORT),
        batch(4, 1),
        marker(5, 2, ControlType.COMMIT),
    ]
    assert without_aborted(b"".join(data), [(1, 1)]) == b"".join([plain, data[2], *data[3:]])
    assert first_transactional(b"".join(data)) == (len(plain), 1)
    assert first_transactional(plain) == (len(plain), None)
