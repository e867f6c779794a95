"""Shards of coordinators with so many offsets, groups or transactional ids: loading them, and sweeps over them.

Each is one partition of an internal topic, though a broker has fifty of each. The longest step of a sweep is what
other tasks of the event loop wait for.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, cast
from uuid import UUID

from bench.growing.measuring import Growth, Measured
from strandline.clock import SystemClock
from strandline.config.groups import GroupSettings
from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.coordinators.groups.consumer.schemas import (
    ConsumerRecordType,
    CurrentAssignmentValue,
    SubscriptionValue,
    TopicPartitionsValue,
)
from strandline.coordinators.groups.incarnations import TopicIncarnations
from strandline.coordinators.groups.schemas import (
    GroupValue,
    MemberValue,
    OffsetKey,
    OffsetValue,
    write_group_key,
    write_group_value,
    write_offset_key,
    write_offset_value,
)
from strandline.coordinators.groups.shard import GroupShard
from strandline.coordinators.runtime import (
    KeyValue,
    ReadBatch,
    ReadRecord,
    Timers,
    TransactionalSink,
    TransactionEnd,
    WriteDone,
    WriteResult,
)
from strandline.coordinators.transactions.metadata import TransactionMetadata
from strandline.coordinators.transactions.schemas import write_key, write_value
from strandline.coordinators.transactions.shard import TransactionShard
from strandline.coordinators.transactions.states import TransactionState
from strandline.errors import NotCoordinator
from strandline.metadata.image import MetadataImage, TopicImage
from strandline.model import INT32_MAX, ZERO_UUID, ProducerAndEpoch

_TOPIC: Final = TopicImage("t", UUID(int=1), ())
_OLD_MS: Final = 1_000


class InstantSink:
    """Whatever is written is committed at once."""

    def max_write_bytes(self) -> int:
        return INT32_MAX

    def write(self, records: Sequence[KeyValue], done: WriteDone) -> None:
        done(WriteResult(None, 0))

    def write_now(self, records: Sequence[KeyValue]) -> WriteResult | None:
        return WriteResult(None, 0)

    def write_transactional(self, records: Sequence[KeyValue], producer: ProducerAndEpoch, done: WriteDone) -> None:
        done(WriteResult(None, 0))

    def write_marker(self, end: TransactionEnd, done: WriteDone) -> None:
        done(WriteResult(None, 0))

    def has_transaction(self, producer: ProducerAndEpoch) -> bool:
        return False  # nothing is kept


class KeptMarkers:
    """Markers that are never written."""

    def __init__(self) -> None:
        self.outstanding = 0

    def send(self, transaction: TransactionMetadata, *, coordinator_epoch: int, done: Callable[[], None]) -> None:
        self.outstanding += 1

    def forget(self, transactional_ids: Collection[str]) -> None:
        self.outstanding -= len(transactional_ids)


class OneTopic:
    """An image with one topic."""

    image = MetadataImage(topics={_TOPIC.name: _TOPIC}, topics_by_id={_TOPIC.topic_id: _TOPIC})


def group_shard(sink: TransactionalSink | None = None) -> GroupShard:
    """Without groups."""
    clock, nobody = SystemClock(), cast("Any", None)
    topics = TopicIncarnations(OneTopic())
    return GroupShard(sink or InstantSink(), Timers(clock), clock, nobody, GroupSettings(), topics, nobody)


def transaction_shard(markers: KeptMarkers | None = None) -> TransactionShard:
    """Without transactional ids."""
    clock = SystemClock()
    return TransactionShard(InstantSink(), markers or KeptMarkers(), clock, Timers(clock), epoch=lambda: 0)


# What is read from the log


def offsets_of_one_group(size: int) -> Iterator[ReadBatch]:
    """So many partitions, whose offsets were committed long ago."""
    for number in range(size):
        yield committed(number, "g", number)


def offsets_of_many_groups(size: int) -> Iterator[ReadBatch]:
    """One of each group."""
    for number in range(size):
        yield committed(number, f"g{number}", 0)


def offsets_without_topic_ids(size: int) -> Iterator[ReadBatch]:
    """As older brokers have stored them."""
    for number in range(size):
        yield committed(number, f"g{number}", 0, topic_id=ZERO_UUID)


def offsets_of_deleted_topics(size: int) -> Iterator[ReadBatch]:
    """As many tombstones are due."""
    for number in range(size):
        yield committed(number, f"g{number}", 0, topic=f"gone-{number}")


def offsets_of_ended_transactions(size: int) -> Iterator[ReadBatch]:
    """Of one consumer that commits exactly once."""
    for number in range(size):
        yield committed(2 * number, "g", 0, producer=ProducerAndEpoch(1, number % 30_000))
        yield ReadBatch(producer_id=1, producer_epoch=number % 30_000, is_transactional=True, committed=True)


def offsets_of_open_transactions(size: int) -> Iterator[ReadBatch]:
    """Of as many consumers, with an offset that is committed and one that is deleted in between."""
    for number in range(size):
        yield committed(3 * number, f"g{number}", 0, producer=ProducerAndEpoch(number, 0))
        yield committed(3 * number + 1, f"g{number}", 1)
        yield ReadBatch(records=(ReadRecord(3 * number + 2, write_offset_key(OffsetKey(f"g{number}", "t", 2)), None),))


def committed(
    at: int,
    group: str,
    partition: int,
    *,
    topic: str = _TOPIC.name,
    topic_id: UUID = _TOPIC.topic_id,
    producer: ProducerAndEpoch | None = None,
) -> ReadBatch:
    """A committed offset, or one that is part of a transaction."""
    value = OffsetValue(
        offset=at, leader_epoch=0, metadata="", commit_timestamp=_OLD_MS, expire_timestamp=-1, topic_id=topic_id
    )
    records = (ReadRecord(at, write_offset_key(OffsetKey(group, topic, partition)), write_offset_value(value)),)
    if producer is None:
        return ReadBatch(records=records)
    return ReadBatch(
        records=records, producer_id=producer.producer_id, producer_epoch=producer.epoch, is_transactional=True
    )


def classic_groups(size: int) -> Iterator[ReadBatch]:
    """With one member each."""
    for number in range(size):
        member = MemberValue(
            member_id="m",
            client_id="c",
            client_host="h",
            rebalance_timeout_ms=60_000,
            session_timeout_ms=45_000,
            subscription=b"",
            assignment=b"",
        )
        value = GroupValue(protocol_type="consumer", generation=1, protocol="range", leader="m", members=(member,))
        yield ReadBatch(records=(ReadRecord(number, write_group_key(f"g{number}"), write_group_value(value)),))


def consumer_groups(size: int) -> Iterator[ReadBatch]:
    """With one member each, that has a partition."""
    for number in range(size):
        group = ConsumerGroup(f"g{number}")
        subscription = SubscriptionValue(client_id="c", client_host="h", topics=(_TOPIC.name,))
        owned = TopicPartitionsValue(topic_id=_TOPIC.topic_id, partitions=(0,), epochs=(1,))
        assignment = CurrentAssignmentValue(member_epoch=1, previous_epoch=1, state=0, assigned=(owned,))
        values: list[tuple[ConsumerRecordType, str, Any]] = [
            (ConsumerRecordType.MEMBER, "m", subscription),
            (ConsumerRecordType.CURRENT_ASSIGNMENT, "m", assignment),
        ]
        records = [group.record(group.key(kind, name), value) for kind, name, value in values]
        yield ReadBatch(records=tuple(ReadRecord(number, key, value) for key, value in records))


def transactional_ids(size: int, state: TransactionState = TransactionState.COMPLETE_COMMIT) -> Iterator[ReadBatch]:
    """That nobody has used for long."""
    for number in range(size):
        one = TransactionMetadata(
            transactional_id=f"id-{number}",
            producer_id=number,
            producer_epoch=0,
            timeout_ms=60_000,
            state=state,
            last_update_ms=_OLD_MS,
        )
        records = (ReadRecord(number, write_key(one.transactional_id), write_value(one.value(), version=1)),)
        yield ReadBatch(records=records)


GROUP_SHAPES: Final[Mapping[str, Callable[[int], Iterator[ReadBatch]]]] = {
    "offsets of one group": offsets_of_one_group,
    "groups with one offset": offsets_of_many_groups,
    "groups with offsets without topic ids": offsets_without_topic_ids,
    "groups with offsets of deleted topics": offsets_of_deleted_topics,
    "transactions of a consumer": offsets_of_ended_transactions,
    "consumers with open transactions": offsets_of_open_transactions,
}


MEMBER_SHAPES: Final[Mapping[str, Callable[[int], Iterator[ReadBatch]]]] = {
    "classic groups with a member": classic_groups,
    "consumer groups with a member": consumer_groups,
}


def replay(shard: GroupShard | TransactionShard, batches: Iterable[ReadBatch]) -> None:
    """All of them."""
    for batch in batches:
        shard.replay(batch)


# Measured


def measure(root: Path, size: int) -> Measured:
    """CPU time of replay and sweeps, and of their longest steps."""
    found: dict[Growth, float] = {}
    for what, shape in GROUP_SHAPES.items():
        shard = group_shard()
        found[Growth(f"replay {what}", "CPU ms")] = _timed(partial(replay, shard, list(shape(size))))
        _steps(found, f"prepare {what}", shard.prepare())
        _steps(found, f"begin with {what}", shard.loaded())
        _steps(found, f"expire {what}", shard.expire())
    for what, shape in MEMBER_SHAPES.items():
        shard = group_shard()
        found[Growth(f"replay {what}", "CPU ms")] = _timed(partial(replay, shard, list(shape(size))))
        _steps(found, f"prepare {what}", shard.prepare())
        _steps(found, f"begin with {what}", shard.loaded())
    shard = group_shard()
    replay(shard, offsets_of_many_groups(size))
    _steps(found, "delete a topic without offsets beside groups with one offset", shard.drop_stale_offsets(["another"]))
    _steps(found, "unload groups with one offset", chain(shard.unloaded(NotCoordinator("lost")), shard.let_go()))
    prepared = transaction_shard()
    replay(prepared, transactional_ids(size, TransactionState.PREPARE_COMMIT))
    _steps(found, "send markers of prepared transactions", prepared.loaded())
    transactions = transaction_shard()
    replayed = partial(replay, transactions, list(transactional_ids(size)))
    found[Growth("replay transactional ids", "CPU ms")] = _timed(replayed)
    _steps(found, "begin with transactional ids", transactions.loaded())
    _steps(found, "look for transactions that take too long", transactions.abort_timed_out())
    _steps(found, "expire transactional ids", transactions.expire(60_000))
    return found


def _timed(work: Callable[[], object]) -> float:
    """CPU ms."""
    gc.collect()
    before = time.process_time()
    work()
    return (time.process_time() - before) * 1e3


def _steps(found: dict[Growth, float], what: str, steps: Iterator[None]) -> None:
    """CPU ms of all steps, and of the longest, without collections of garbage, which are no part of it."""
    longest = total = 0.0
    gc.collect()
    gc.disable()
    try:
        has_more = True
        while has_more:
            before = time.thread_time()
            has_more = next(steps, found) is not found
            spent = (time.thread_time() - before) * 1e3
            longest, total = max(longest, spent), total + spent
    finally:
        gc.enable()
    found[Growth(what, "CPU ms")] = total
    found[Growth(f"{what}: longest turn of the loop", "ms", 0)] = longest
