"""The control plane against dictionaries: any order of calls must agree with something too simple to be wrong."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from strandline.controlplane import (
    BatchRow,
    BatchToCommit,
    CommittedBatch,
    FileToCommit,
    FindBatches,
    Refusal,
    RetentionRule,
    SqlControlPlane,
)
from strandline.model import TopicIdPartition
from strandline.records import TimestampType
from strandline.sql import SqlStore, open_store
from strandline.testing.clock import VirtualClock
from tests.controlplane.making import OTHER_TOPIC, TOPIC, HandSetClock, batch, wal
from tests.partitions import id_partition
from tests.postgres import start_postgres

T = TypeVar("T")

PARTITIONS = [id_partition(TOPIC, 0), id_partition(TOPIC, 1), id_partition(OTHER_TOPIC, 0)]
partitions = st.sampled_from(PARTITIONS)
producers = st.none() | st.tuples(st.integers(1, 2), st.integers(0, 2), st.integers(-2, 2))
EVER = 1 << 60


@dataclass
class Batch:
    """A batch that was accepted."""

    base: int
    count: int
    size: int
    timestamp: int
    file: str
    epoch: int
    """The largest of the log when it was committed."""


@dataclass
class Log:
    """A log as a list."""

    start: int = 0
    end: int = 0
    epoch: int = -1
    boundary: int = 0
    """B0: -1 while it is unset. Batches lie above it."""
    batches: list[Batch] = field(default_factory=list)
    # producer id -> epoch, and the batches of that epoch: first sequence, count, base offset
    producers: dict[int, tuple[int, list[tuple[int, int, int]]]] = field(default_factory=dict)

    @property
    def first(self) -> int:
        """Where the records begin that the control plane knows of."""
        return max(self.start, self.boundary)

    def judge(self, item: BatchToCommit) -> Refusal | int | None:
        """A refusal, the offset of a duplicate, or None for "take it"."""
        if item.producer_id < 0 or item.producer_id not in self.producers:
            return None
        epoch, sent = self.producers[item.producer_id]
        if item.producer_epoch == epoch:
            for first, count, base in sent[-5:]:
                if (first, count) == (item.base_sequence, item.record_count):
                    return base
            first, count, _ = sent[-1]
            return None if item.base_sequence == first + count else Refusal.OUT_OF_ORDER_SEQUENCE
        if item.producer_epoch < epoch:
            return Refusal.INVALID_PRODUCER_EPOCH
        return None if item.base_sequence == 0 else Refusal.OUT_OF_ORDER_SEQUENCE

    def take(self, item: BatchToCommit, timestamp: int, key: str) -> int:
        base = self.end
        self.end += item.record_count
        self.epoch = max(self.epoch, item.leader_epoch)
        self.batches.append(Batch(base, item.record_count, item.byte_size, timestamp, key, self.epoch))
        if item.producer_id >= 0:
            epoch, sent = self.producers.get(item.producer_id, (item.producer_epoch, []))
            sent = sent if epoch == item.producer_epoch else []
            self.producers[item.producer_id] = (
                item.producer_epoch,
                [*sent, (item.base_sequence, item.record_count, base)],
            )
        return base


class ControlPlaneAgainstModel(RuleBasedStateMachine):
    """Several brokers' worth of calls, one after the other; the model knows nothing of rows or transactions."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.time = HandSetClock()
        self.logs: dict[TopicIdPartition, Log] = {}
        self.committed: list[tuple[FileToCommit, Sequence[CommittedBatch]]] = []
        self.files: dict[str, bool] = {}  # key -> whether it was committed; False for orphans
        self.forgotten: set[str] = set()
        self.numbers = itertools.count()

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(call)

    def url(self) -> str:
        return "sqlite:///:memory:"

    @initialize()
    def begin(self) -> None:
        async def opened() -> SqlStore:
            return await self.stack.enter_async_context(open_store(self.url()))

        self.plane = SqlControlPlane(self.run(opened()), clock=VirtualClock(), time=self.time)
        self.create(PARTITIONS[:2])

    @rule(chosen=st.lists(partitions, max_size=3))
    def create(self, chosen: list[TopicIdPartition]) -> None:
        self.run(self.plane.lifecycle.create_logs(chosen))
        for partition in chosen:
            if not self.is_switched(partition):
                self.logs.setdefault(partition, Log())

    def is_switched(self, partition: TopicIdPartition) -> bool:
        """Whether the log of the partition is not to be created at 0."""
        return False

    def is_open(self, partition: TopicIdPartition) -> bool:
        """Whether there is a log that takes batches."""
        return partition in self.logs and self.logs[partition].boundary >= 0

    def draw_batch(self, data: st.DataObject, sent: dict[tuple[TopicIdPartition, int], int]) -> BatchToCommit:
        """Mostly what a good producer would send next, sometimes something else."""
        partition, count = data.draw(partitions), data.draw(st.integers(1, 3))
        producer = data.draw(producers)
        triple = (-1, -1, -1)
        if producer is not None:
            producer_id, epoch, slip = producer
            known = self.logs.get(partition, Log()).producers.get(producer_id)
            following = sent.get((partition, producer_id), 0)
            if known and known[0] == epoch:
                following = max(following, known[1][-1][0] + known[1][-1][1])
            triple = (producer_id, epoch, max(0, following + slip))
            sent[partition, producer_id] = triple[2] + count
        return batch(
            partition,
            count,
            size=data.draw(st.integers(61, 70)),
            timestamp=data.draw(st.integers(-1, 40)),
            timestamp_type=data.draw(st.sampled_from(TimestampType)),
            leader_epoch=data.draw(st.integers(0, 2)),
            producer=triple,
        )

    @rule(data=st.data(), sizes=st.lists(st.integers(0, 6), min_size=1, max_size=3), now=st.integers(1, 50))
    def commit(self, data: st.DataObject, sizes: list[int], now: int) -> None:
        sent: dict[tuple[TopicIdPartition, int], int] = {}
        files = [wal(f"f{next(self.numbers)}", *(self.draw_batch(data, sent) for _ in range(size))) for size in sizes]
        self.time.now = now
        answers = self.run(self.plane.commits.commit_files(files))
        for file, file_answers in zip(files, answers, strict=True):
            assert len(file_answers) == len(file.batches)
            for item, answer in zip(file.batches, file_answers, strict=True):
                self.check(file, item, answer, now)
            self.committed.append((file, file_answers))
            self.files[file.object_key] = True

    def check(self, file: FileToCommit, item: BatchToCommit, answer: CommittedBatch, now: int) -> None:
        if not self.is_open(item.partition):
            assert answer.refusal is Refusal.UNKNOWN_LOG
            return
        log = self.logs[item.partition]
        verdict = log.judge(item)
        if isinstance(verdict, Refusal):
            assert answer.refusal is verdict
            assert answer.message
        elif verdict is not None:
            assert (answer.refusal, answer.base_offset, answer.is_duplicate) == (None, verdict, True)
        else:
            is_appended = item.timestamp_type is TimestampType.LOG_APPEND_TIME
            base = log.take(item, now if is_appended else item.max_timestamp, file.object_key)
            time = now if is_appended else -1
            assert answer == CommittedBatch(None, base, time, log.start, leader_epoch=log.epoch)

    @precondition(lambda self: self.committed)
    @rule(data=st.data())
    def commit_again(self, data: st.DataObject) -> None:
        file, answers = data.draw(st.sampled_from(self.committed))
        self.time.now = 60
        (again,) = self.run(self.plane.commits.commit_files([file]))
        if file.object_key in self.forgotten:
            assert {answer.refusal for answer in again} <= {Refusal.STALE_FILE}
        else:
            assert list(again) == list(answers)

    @rule(partition=partitions, part=st.floats(0, 1), is_all=st.booleans(), beyond=st.integers(0, 1))
    def delete_records(self, partition: TopicIdPartition, part: float, is_all: bool, beyond: int) -> None:
        log = self.logs.get(partition)
        end = log.end if log else 0
        target = -1 if is_all else int(part * end) + beyond
        trimmed = self.run(self.plane.trimming.delete_records({partition: target}))[partition]
        if log is None or log.boundary < 0:
            assert trimmed.refusal is Refusal.UNKNOWN_LOG
        elif target > end:
            assert trimmed.refusal is Refusal.OFFSET_OUT_OF_RANGE
        else:
            log.start = max(log.start, end if is_all else target)
            assert trimmed.log_start_offset == log.start

    @rule(partition=partitions, ms=st.integers(-1, 60), size=st.integers(-1, 400), max_rows=st.integers(1, 4))
    def retain(self, partition: TopicIdPartition, ms: int, size: int, max_rows: int) -> None:
        """Retention goes row by row, so the rows that were there decide; the model only bounds the result."""
        before = self.rows(partition)
        total = self.byte_size(partition)
        rule_ = RetentionRule(partition, ms, size)
        self.time.now = 60
        (trimmed,) = self.run(self.plane.trimming.enforce_retention([rule_], max_rows=max_rows))
        log = self.logs.get(partition)
        if log is None:
            assert trimmed.refusal is Refusal.UNKNOWN_LOG
            return
        start, deleted = log.start, 0
        for row in before[: max_rows if log.start >= log.boundary else 0]:  # a prefix goes first, and not from here
            timestamp = row.max_timestamp if row.max_timestamp >= 0 else row.log_append_time_ms
            total -= row.byte_size
            if not (0 <= ms < 60 - timestamp or 0 <= size <= total):
                break
            start, deleted = row.last_offset + 1, deleted + 1
        assert (trimmed.log_start_offset, trimmed.rows_deleted) == (start, deleted)
        log.start = start

    @rule(partition=partitions)
    def delete_topic(self, partition: TopicIdPartition) -> None:
        self.run(self.plane.lifecycle.delete_topics([partition.topic_id]))
        for other in PARTITIONS:
            if other.topic_id == partition.topic_id:
                self.logs.pop(other, None)

    @rule()
    def expire_producers(self) -> None:
        self.run(self.plane.producers.expire_producers(silent_ms=-EVER, limit=1_000))
        for log in self.logs.values():
            log.producers.clear()

    @rule()
    def take_orphan(self) -> None:
        key = f"f{next(self.numbers)}"
        assert self.run(self.plane.files.take_orphans([key, *self.files], broker_id=1)) == self.expected_taken(key)
        self.files[key] = False
        (answers,) = self.run(self.plane.commits.commit_files([wal(key, batch(PARTITIONS[0]))]))
        assert [answer.refusal for answer in answers] == [Refusal.STALE_FILE]

    def expected_taken(self, key: str) -> list[str]:
        """The objects of forgotten files have been deleted: if one is there again it is taken again."""
        again, self.forgotten = self.forgotten, set()
        for name in again:
            self.files[name] = False
            self.committed = [pair for pair in self.committed if pair[0].object_key != name]
        return (
            sorted([key, *again]) if self.plane.store.dialect.name == "postgresql" else self.in_asked_order(key, again)
        )

    def in_asked_order(self, key: str, again: set[str]) -> list[str]:
        return [name for name in [key, *self.files] if name == key or name in again]

    @rule()
    def clean(self) -> None:
        marked = self.run(self.plane.files.files_to_delete(marked_for_ms=-EVER, limit=2))
        self.run(self.plane.files.forget_files([file.file_id for file in marked]))
        self.forgotten |= {file.object_key for file in marked}

    # What must hold

    def rows(self, partition: TopicIdPartition) -> tuple[BatchRow, ...]:
        log = self.logs.get(partition)
        request = FindBatches(partition, log.first if log else 0, 1 << 40)
        (found,) = self.run(self.plane.reads.find_batches([request], max_rows=10_000))
        assert (found.refusal is None) == self.is_open(partition)
        return found.rows

    def byte_size(self, partition: TopicIdPartition) -> int:
        log = self.run(self.plane.reads.logs([partition])).get(partition)
        return log.byte_size if log else 0

    @invariant()
    def logs_agree(self) -> None:
        found = self.run(self.plane.reads.logs(PARTITIONS))
        assert set(found) == set(self.logs)
        assert (
            self.run(self.plane.lifecycle.topic_ids())
            == {partition.topic_id for partition in self.logs} | self.switching()
        )
        for partition, log in self.logs.items():
            assert (found[partition].log_start_offset, found[partition].high_watermark) == (log.start, log.end)
            assert (found[partition].last_epoch, found[partition].diskless_log_start_offset) == (
                log.epoch,
                log.boundary,
            )
            rows = self.rows(partition)
            assert found[partition].byte_size == sum(row.byte_size for row in rows)
            log.batches = [item for item in log.batches if item.base + item.count > self.first_base(rows, log)]
            self.rows_agree(rows, log)

    def switching(self) -> set[UUID]:
        """Topics whose switch to diskless was requested."""
        return set()

    @staticmethod
    def first_base(rows: tuple[BatchRow, ...], log: Log) -> int:
        return rows[0].base_offset if rows else log.end

    @staticmethod
    def rows_agree(rows: tuple[BatchRow, ...], log: Log) -> None:
        """Each row is made of whole batches of one file, in order, and nothing is missing."""
        if rows:
            assert rows[0].base_offset <= log.first <= rows[0].last_offset
        remaining = list(log.batches)
        for row in rows:
            inside = [item for item in remaining if item.base <= row.last_offset]
            remaining = remaining[len(inside) :]
            assert inside[0].base == row.base_offset
            assert inside[-1].base + inside[-1].count == row.last_offset + 1
            assert {item.file for item in inside} == {row.object_key}
            assert sum(item.size for item in inside) == row.byte_size
            assert max(item.timestamp for item in inside) == row.max_timestamp
            assert {item.epoch for item in inside} == {row.leader_epoch}
        assert remaining == []

    @invariant()
    def times_agree(self) -> None:
        for partition in self.logs:
            rows = self.rows(partition)
            for timestamp in (-1, 0, 20, 39, 50):
                expected = next((row for row in rows if row.max_timestamp >= timestamp), None)
                assert self.run(self.plane.reads.first_row_at_time(partition, timestamp)) == expected
            largest = max((row.max_timestamp for row in rows), default=None)
            first = next((row for row in rows if row.max_timestamp == largest), None)
            assert self.run(self.plane.reads.row_of_max_timestamp(partition)) == first

    @invariant()
    def files_agree(self) -> None:
        used = {row.object_key for partition in self.logs for row in self.rows(partition)}
        listed = self.run(self.plane.files.files_after(0, 10_000))
        assert {file.object_key for file in listed} == set(self.files) - self.forgotten
        assert {file.object_key for file in listed if file.marked_for_deletion_at_ms is None} == used

    @invariant()
    def producers_agree(self) -> None:
        for partition, log in self.logs.items():
            expected = {
                producer_id: (epoch, sent[-1][0] + sent[-1][1] - 1)
                for producer_id, (epoch, sent) in log.producers.items()
            }
            found = self.run(self.plane.producers.producers(partition))
            assert {state.producer_id: (state.producer_epoch, state.last_sequence) for state in found} == expected

    def teardown(self) -> None:
        self.run(self.stack.aclose())
        self.runner.close()


class ControlPlaneOnPostgresAgainstModel(ControlPlaneAgainstModel):
    """The same on the other database; slower, so fewer times."""

    def url(self) -> str:
        return start_postgres().new_database()


ControlPlaneAgainstModel.TestCase.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
TestControlPlaneAgainstModel = ControlPlaneAgainstModel.TestCase
ControlPlaneOnPostgresAgainstModel.TestCase.settings = settings(max_examples=4, stateful_step_count=15, deadline=None)
TestControlPlaneOnPostgresAgainstModel = ControlPlaneOnPostgresAgainstModel.TestCase
