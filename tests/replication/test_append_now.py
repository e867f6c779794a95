"""Appends that are done when they return, and everything that has to go the general way instead."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from strandline.errors import NotLeaderOrFollower, OutOfOrderSequence
from strandline.log import AppendOrigin
from strandline.model import NO_OFFSET
from strandline.records import Codec, Record, build_batch
from strandline.records.control import ControlType, EndTransactionMarker, build_marker
from strandline.replication import LeaderRole, Partition
from strandline.replication.leader import LARGE_APPEND
from tests.replication.conftest import CLOCK, Fixture, batch, image
from tests.replication.test_partition import Bell, Waiter, append, values_in


def begun(fixture: Fixture, **config: str) -> Partition:
    """A partition whose log has begun its segment and its epoch."""
    partition = fixture.partition(**config)
    partition.follow(image())
    append(partition, batch(b"first", producer_id=5, sequence=0))
    return partition


def transactional(sequence: int, producer_id: int = 5) -> memoryview:
    records = [Record(0, CLOCK.now_ms(), None, b"in a transaction")]
    return memoryview(
        build_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, is_transactional=True)
    )


async def test_it_is_written_replicated_and_told_to_watchers(fixture: Fixture) -> None:
    partition = begun(fixture)
    bell = Bell()
    partition.watch(bell)
    assert partition.role.append_now(batch(b"a", b"b")) == 1
    assert partition.role.append_now(batch(b"c", producer_id=5, sequence=1)) == 3
    assert (partition.log.log_end_offset, partition.log.high_watermark, bell.rings) == (4, 4, 2)
    assert values_in(partition) == [b"first", b"a", b"b", b"c"]
    with pytest.raises(OutOfOrderSequence):  # the producer's state has followed
        append(partition, batch(b"again", producer_id=5, sequence=7))


async def test_a_transaction_that_is_open_goes_on(fixture: Fixture) -> None:
    partition = begun(fixture)
    assert partition.role.append_now(transactional(1)) == NO_OFFSET, "it begins the transaction"
    append(partition, transactional(1))
    assert partition.role.append_now(transactional(2)) == 2
    assert partition.role.append_now(batch(b"outside", producer_id=5, sequence=3)) == NO_OFFSET


def not_leading(partition: Partition) -> None:
    partition.follow(image(leader=2, epoch=1, replicas=(1, 2), isr=(1, 2), version=1))


def with_a_follower(partition: Partition) -> None:
    partition.follow(image(replicas=(1, 2), isr=(1, 2), version=1))


def in_a_new_epoch(partition: Partition) -> None:
    partition.follow(image(epoch=1, version=1))


def sealed(partition: Partition) -> None:
    partition.restrict().seal(NotLeaderOrFollower("sealed"))


def removed(partition: Partition) -> None:
    partition.close(NotLeaderOrFollower("gone"))


def closed(partition: Partition) -> None:
    partition.log.abandon()


def being_written(partition: Partition) -> None:
    partition.log.begin_append(batch(b"pending"), leader_epoch=0, origin=AppendOrigin.CLIENT)


def size_on_disk(partition: Partition) -> int:
    return os.path.getsize(partition.log.segments.active.file.path)


REFUSING = (not_leading, in_a_new_epoch, sealed, removed, closed, being_written)
STATES = (*REFUSING, with_a_follower)  # in which no batch is replicated when its append returns


@pytest.mark.parametrize("change", REFUSING, ids=lambda change: change.__name__)
async def test_a_partition_in_another_state_goes_the_general_way(
    fixture: Fixture, change: Callable[[Partition], None]
) -> None:
    partition = begun(fixture)
    assert partition.role.append_now(batch(b"before")) == 1
    change(partition)
    end, size = partition.log.reserved_end, size_on_disk(partition)
    assert partition.role.append_now(batch(b"refused")) == NO_OFFSET
    assert partition.log.reserved_end == end
    assert size_on_disk(partition) == size
    partition.log.appender.abandon()  # else the log could not be closed


def damaged() -> memoryview:
    records = batch(b"damaged")
    records[-1] ^= 1
    return records


def with_a_length_below_zero() -> memoryview:
    records = batch(b"damaged")
    records[8] = 0xFF
    return records


BATCHES: dict[str, Callable[[], memoryview]] = {
    "damaged": damaged,
    "with a length below zero": with_a_length_below_zero,
    "large": lambda: batch(b"large", size=LARGE_APPEND),
    "too large for the topic": lambda: batch(b"large", size=200_000),
    "of a producer that is not known": lambda: batch(b"x", producer_id=6, sequence=0),
    "with a gap": lambda: batch(b"x", producer_id=5, sequence=3),
    "seen before": lambda: batch(b"first", producer_id=5, sequence=0),
    "of a later epoch": lambda: batch(b"x", producer_id=5, sequence=1, producer_epoch=1),
    "of a transaction without a producer": lambda: transactional(-1, producer_id=-1),
    "two batches": lambda: memoryview(bytearray(batch(b"x")) * 2),
    "half a header": lambda: memoryview(bytearray(30)),
}


@pytest.mark.parametrize("name", BATCHES)
async def test_a_batch_that_is_not_ordinary_goes_the_general_way(fixture: Fixture, name: str) -> None:
    partition = begun(fixture, max_message_bytes="150000" if "topic" in name else "2000000")
    size = size_on_disk(partition)
    before = [(entry.last_sequence, entry.epoch) for entry in partition.log.producers.entries.values()]
    records = BATCHES[name]()
    as_it_was = bytes(records)
    assert partition.role.append_now(records) == NO_OFFSET
    assert bytes(records) == as_it_was
    assert (partition.log.reserved_end, size_on_disk(partition)) == (1, size)
    assert [(entry.last_sequence, entry.epoch) for entry in partition.log.producers.entries.values()] == before


CONFIGS = {
    "flush_messages": "1",
    "message_timestamp_type": "LogAppendTime",
    "cleanup_policy": "compact",
    "compression_type": "zstd",
    "segment_index_bytes": "4",
}


@pytest.mark.parametrize("name", CONFIGS)
async def test_a_topic_with_more_to_do_goes_the_general_way(fixture: Fixture, name: str) -> None:
    partition = begun(fixture)
    partition.log.update_config(fixture.config(**{name: CONFIGS[name]}))
    assert partition.role.append_now(batch(b"x" * 60)) == NO_OFFSET
    assert partition.log.reserved_end == 1


async def test_a_failed_write_takes_the_log_offline(fixture: Fixture, tmp_path: Path) -> None:
    partition = begun(fixture)
    read_only = os.open(partition.log.segments.active.file.path, os.O_RDONLY)
    os.dup2(read_only, partition.log.segments.active.file.fileno())
    os.close(read_only)
    assert partition.role.append_now(batch(b"b")) == NO_OFFSET
    assert partition.log.is_offline
    assert partition.role.append_now(batch(b"c", b"d")) == NO_OFFSET


async def test_compressed_batches_are_ordinary(fixture: Fixture) -> None:
    partition = begun(fixture)
    records = [Record(at, CLOCK.now_ms(), None, b"v") for at in range(3)]
    assert partition.role.append_now(memoryview(build_batch(records, codec=Codec.LZ4))) == 1
    assert partition.log.log_end_offset == 4


# Batches of a coordinator


async def test_a_coordinators_batch_has_no_rules_for_clients(fixture: Fixture) -> None:
    """Its topic is compacted and may name a codec; it knows its own keys."""
    partition = begun(fixture)
    partition.log.update_config(fixture.config(cleanup_policy="compact", compression_type="zstd"))
    bell = Bell()
    partition.watch(bell)
    assert partition.role.append_own_now(batch(b"a", b"b")) == 1
    records = [Record(at, CLOCK.now_ms(), b"k", b"v") for at in range(3)]
    assert partition.role.append_own_now(memoryview(build_batch(records, codec=Codec.LZ4))) == 3
    assert (partition.log.log_end_offset, partition.log.high_watermark, bell.rings) == (6, 6, 2)
    assert values_in(partition) == [b"first", b"a", b"b", b"v", b"v", b"v"]


@pytest.mark.parametrize("change", REFUSING, ids=lambda change: change.__name__)
async def test_a_coordinators_batch_meets_the_same_states(
    fixture: Fixture, change: Callable[[Partition], None]
) -> None:
    partition = begun(fixture)
    change(partition)
    end, size = partition.log.reserved_end, size_on_disk(partition)
    assert partition.role.append_own_now(batch(b"refused")) == NO_OFFSET
    assert (partition.log.reserved_end, size_on_disk(partition)) == (end, size)
    partition.log.appender.abandon()  # else the log could not be closed


def control() -> memoryview:
    marker = EndTransactionMarker(ControlType.COMMIT, 0)
    return memoryview(build_marker(marker, producer_id=5, producer_epoch=0, timestamp_ms=CLOCK.now_ms()))


INTERNAL: dict[str, Callable[[], memoryview]] = {
    **{name: BATCHES[name] for name in ("damaged", "large", "too large for the topic", "two batches", "half a header")},
    "a marker": control,
}


@pytest.mark.parametrize("name", INTERNAL)
async def test_a_coordinators_batch_that_is_not_ordinary_goes_the_general_way(fixture: Fixture, name: str) -> None:
    partition = begun(fixture, max_message_bytes="150000" if "topic" in name else "2000000")
    size, records = size_on_disk(partition), INTERNAL[name]()
    as_it_was = bytes(records)
    assert partition.role.append_own_now(records) == NO_OFFSET
    assert bytes(records) == as_it_was
    assert (partition.log.reserved_end, size_on_disk(partition)) == (1, size)


@pytest.mark.parametrize("name", ["flush_messages", "message_timestamp_type", "segment_index_bytes"])
async def test_a_coordinators_topic_with_more_to_do_goes_the_general_way(fixture: Fixture, name: str) -> None:
    partition = begun(fixture)
    partition.log.update_config(fixture.config(**{name: CONFIGS[name]}))
    assert partition.role.append_own_now(batch(b"x" * 60)) == NO_OFFSET
    assert partition.log.reserved_end == 1


# With other replicas


async def test_it_is_written_at_once_and_waits_for_the_replicas(fixture: Fixture) -> None:
    partition = begun(fixture)
    with_a_follower(partition)
    bell, followers_bell, first, second = Bell(), Bell(), Waiter(), Waiter()
    partition.watch(bell)
    partition.watch_growth(followers_bell)
    role = leading(partition)
    assert role.append_now(batch(b"a", b"b")) == 1
    assert not role.wait_replicated(first)
    assert role.append_now(batch(b"c")) == 3
    assert not role.wait_replicated(second)
    assert (partition.log.log_end_offset, partition.log.high_watermark) == (4, 1)
    assert (bell.rings, followers_bell.rings) == (0, 2), "followers fetch it, and consumers do not see it yet"
    assert not first.outcome.done()
    partition.follow(image(replicas=(1, 2), isr=(1,), version=2))
    assert (first.outcome.result(), second.outcome.result()) == (None, None)
    assert partition.log.high_watermark == 4


async def test_it_is_replicated_if_this_broker_alone_is_in_sync(fixture: Fixture) -> None:
    partition = begun(fixture)
    partition.follow(image(replicas=(1, 2), isr=(1,), version=1))
    role, waiter = leading(partition), Waiter()
    assert role.append_now(batch(b"a")) == 1
    assert role.wait_replicated(waiter)
    partition.follow(image(leader=2, epoch=1, replicas=(1, 2), isr=(2,), version=2))
    assert not waiter.outcome.done(), "who was told that it is replicated is not told again"


async def test_it_goes_the_general_way_while_too_few_are_in_sync(fixture: Fixture) -> None:
    partition = begun(fixture, min_insync_replicas="2")
    partition.follow(image(replicas=(1, 2, 3), isr=(1,), version=1))
    end = partition.log.reserved_end
    assert leading(partition).append_now(batch(b"a")) == NO_OFFSET
    assert partition.log.reserved_end == end
    partition.log.update_config(fixture.config(min_insync_replicas="1"))
    assert leading(partition).append_now(batch(b"a")) == 1, "the setting of the moment counts"


async def test_what_was_written_at_once_is_refused_when_leadership_is_lost(fixture: Fixture) -> None:
    partition = begun(fixture)
    with_a_follower(partition)
    waiter, role = Waiter(), leading(partition)
    assert role.append_now(batch(b"a")) == 1
    assert not role.wait_replicated(waiter)
    partition.follow(image(epoch=1, replicas=(1, 2), isr=(1, 2), version=2))
    assert not waiter.outcome.done(), "the same leader in another epoch"
    partition.follow(image(leader=2, epoch=2, replicas=(1, 2), isr=(1, 2), version=3))
    assert isinstance(waiter.outcome.result(), NotLeaderOrFollower)


def leading(partition: Partition) -> LeaderRole:
    assert isinstance(partition.role, LeaderRole)
    return partition.role
