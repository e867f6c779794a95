"""Groups with more offsets than a step deletes: what happens between two steps of their deletion."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from uuid import UUID

import pytest
from bench.growing.coordinated import committed, group_shard, replay

from strandline.coordinators.groups import CommitRequest, PartitionCommit
from strandline.coordinators.groups.classic_group import ClassicGroup
from strandline.coordinators.groups.schemas import OffsetKey, OffsetValue
from strandline.coordinators.groups.shard import GroupShard
from strandline.coordinators.groups.upkeep import OFFSETS_PER_STEP
from strandline.coordinators.runtime import KeyValue, ReadBatch, ReadRecord, TransactionEnd, WriteDone, WriteResult
from strandline.errors import NonEmptyGroup, NotEnoughReplicas, StrandlineError
from strandline.model import INT32_MAX, ProducerAndEpoch, TopicPartition
from tests.coordinators.steps import take_all

OFFSETS = 3 * OFFSETS_PER_STEP + 1
FIRST, LAST = TopicPartition("t", 0), TopicPartition("t", OFFSETS - 1)
PRODUCER = ProducerAndEpoch(7, 0)


class HeldLog:
    """A log whose writes end one at a time, when a test says how."""

    def __init__(self) -> None:
        self.batches: list[ReadBatch] = []
        self.waiting: deque[tuple[ReadBatch, WriteDone]] = deque()
        self.most_waiting = 0
        self.next_offset = 0

    def max_write_bytes(self) -> int:
        return INT32_MAX

    def write(self, records: Sequence[KeyValue], done: WriteDone) -> None:
        self._enqueue(ReadBatch(records=tuple(ReadRecord(0, key, value) for key, value in records)), done)

    def write_now(self, records: Sequence[KeyValue]) -> WriteResult | None:
        return None

    def write_transactional(self, records: Sequence[KeyValue], producer: ProducerAndEpoch, done: WriteDone) -> None:
        found = tuple(ReadRecord(0, key, value) for key, value in records)
        self._enqueue(ReadBatch(found, producer.producer_id, producer.epoch, is_transactional=True), done)

    def write_marker(self, end: TransactionEnd, done: WriteDone) -> None:
        producer_id, epoch = end.producer
        self._enqueue(
            ReadBatch(producer_id=producer_id, producer_epoch=epoch, is_transactional=True, committed=end.is_commit),
            done,
        )

    def has_transaction(self, producer: ProducerAndEpoch) -> bool:
        return False

    def _enqueue(self, batch: ReadBatch, done: WriteDone) -> None:
        self.waiting.append((batch, done))
        self.most_waiting = max(self.most_waiting, sum(len(batch.records) for batch, _ in self.waiting))

    def finish(self, *, accept: bool = True) -> None:
        batch, done = self.waiting.popleft()
        if not accept:
            done(WriteResult(NotEnoughReplicas("told to fail")))
            return
        base = self.next_offset
        stored = tuple(record._replace(offset=base + at) for at, record in enumerate(batch.records))
        self.batches.append(batch._replace(records=stored))
        self.next_offset += max(len(stored), batch.committed is not None)
        done(WriteResult(None, base))

    def finish_all(self) -> None:
        while self.waiting:
            self.finish()


class World:
    """A shard with one group of many offsets, whose deletion is asked for."""

    def __init__(self) -> None:
        self.log = HeldLog()
        self.log.batches = [committed(at, "g", at) for at in range(OFFSETS)]
        self.log.next_offset = OFFSETS
        self.shard = self.loaded()
        self.answers: list[StrandlineError | None] = []

    def loaded(self) -> GroupShard:
        """What a broker makes of the log."""
        shard = group_shard(self.log)
        replay(shard, self.log.batches)
        take_all(shard.prepare())
        assert not self.log.waiting
        return shard

    def delete(self) -> None:
        self.shard.delete_group("g", self.answers.append)

    def commit(self, partition: TopicPartition, offset: int, producer: ProducerAndEpoch | None = None) -> None:
        topic, number = partition
        topic_id = self.shard._topics.image.topics[topic].topic_id
        commit = PartitionCommit(topic=topic, partition=number, offset=offset, topic_id=topic_id)
        request = CommitRequest(group_id="g", offsets=(commit,), producer=producer)
        self.shard.commit(request, lambda _: None)

    def end_transaction(self, *, is_commit: bool) -> None:
        end = TransactionEnd(PRODUCER, is_commit, 0, 2)
        self.shard.end_transaction(end, lambda _: None)

    def offsets(self) -> dict[TopicPartition, int]:
        """Of the group; a broker that loads the log finds the same."""
        found = {partition: value.offset for partition, value in self.shard.offsets.of_group("g")}
        again = self.loaded()
        assert {partition: value.offset for partition, value in again.offsets.of_group("g")} == found
        assert list(again.groups) == list(self.shard.groups) == (["g"] if found else [])
        return found


@pytest.fixture
def world() -> World:
    return World()


def test_all_offsets_go_and_few_tombstones_are_written_at_a_time(world: World) -> None:
    world.delete()
    assert list(world.shard.groups) == []
    while world.log.waiting:
        assert world.answers == []
        world.log.finish()
    assert world.answers == [None]
    assert world.offsets() == {}
    assert world.log.most_waiting <= OFFSETS_PER_STEP


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_what_is_committed_meanwhile_stays(world: World, steps: int) -> None:
    world.delete()
    for _ in range(steps):
        world.log.finish()
    world.commit(FIRST, 10_000)
    world.commit(LAST, 20_000)
    world.log.finish_all()
    assert world.answers == [None]
    assert world.offsets() == {FIRST: 10_000, LAST: 20_000}


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_what_is_committed_meanwhile_can_be_read_as_soon_as_it_is_acknowledged(world: World, steps: int) -> None:
    world.delete()
    for _ in range(steps):
        world.log.finish()
    world.commit(FIRST, 10_000)
    is_acknowledged = False
    while world.log.waiting:
        is_acknowledged |= any(value is not None for _, _, value in world.log.waiting[0][0].records)
        world.log.finish()
        (found,) = world.shard.fetch("g", [FIRST])
        assert (found.offset == 10_000) == is_acknowledged
    assert world.answers == [None]
    assert world.offsets() == {FIRST: 10_000}


def test_the_second_of_two_deletions_at_a_time_hides_nothing_that_is_committed_behind_it(world: World) -> None:
    world.delete()
    world.log.finish()
    world.commit(LAST, 10_000)
    world.log.finish()
    world.log.finish()
    world.delete()
    world.commit(LAST, 20_000)
    while len(world.answers) < 2:
        world.log.finish()
        assert [one.offset for one in world.shard.fetch("g", [LAST])] == [20_000 if "g" in world.shard.groups else -1]
    world.log.finish_all()
    assert world.answers == [None, None]
    assert world.offsets() == {LAST: 20_000}


def test_commits_that_were_under_way_before_go_as_well(world: World) -> None:
    new = TopicPartition("t", OFFSETS)
    world.commit(FIRST, 10_000)
    world.commit(new, 20_000)
    world.delete()
    world.log.finish_all()
    assert world.answers == [None]
    assert world.offsets() == {}


@pytest.mark.parametrize("partition", [FIRST, LAST])
def test_an_offset_whose_commit_fails_meanwhile_goes(world: World, partition: TopicPartition) -> None:
    world.delete()
    world.log.finish()
    first_tombstones = world.log.waiting[0][0]
    world.commit(partition, 10_000)
    while world.log.waiting:
        is_commit = any(value is not None for _, _, value in world.log.waiting[0][0].records)
        world.log.finish(accept=not is_commit)
    assert len(first_tombstones.records) == OFFSETS_PER_STEP
    assert world.answers == [None]
    assert world.offsets() == {}


def test_offsets_of_transactions_that_were_open_before_go(world: World) -> None:
    world.commit(LAST, 10_000, PRODUCER)
    world.commit(TopicPartition("t", OFFSETS), 20_000, PRODUCER)
    world.log.finish_all()
    world.delete()
    world.log.finish_all()
    assert world.answers == [None]
    world.end_transaction(is_commit=True)
    world.log.finish_all()
    assert world.offsets() == {}


@pytest.mark.parametrize("is_commit", [True, False])
def test_an_offset_that_a_later_transaction_has_is_left_to_it(world: World, is_commit: bool) -> None:
    world.delete()
    world.log.finish()
    world.commit(LAST, 10_000, PRODUCER)
    world.log.finish_all()
    (answer,) = world.answers
    assert isinstance(answer, NonEmptyGroup)
    world.end_transaction(is_commit=is_commit)
    world.log.finish_all()
    assert world.offsets() == {LAST: 10_000 if is_commit else LAST.partition}


def test_a_group_that_the_log_does_not_delete_keeps_its_offsets(world: World) -> None:
    world.delete()
    world.log.finish(accept=False)
    world.log.finish_all()
    (answer,) = world.answers
    assert isinstance(answer, NotEnoughReplicas)
    assert len(world.offsets()) == OFFSETS


def test_offsets_that_the_log_does_not_delete_make_a_group_that_can_be_deleted_again(world: World) -> None:
    world.delete()
    world.log.finish()
    world.log.finish()
    world.log.finish(accept=False)
    (answer,) = world.answers
    assert isinstance(answer, NotEnoughReplicas)
    assert len(world.offsets()) == OFFSETS - OFFSETS_PER_STEP
    world.delete()
    world.log.finish_all()
    assert world.answers[1:] == [None]
    assert world.offsets() == {}


def test_a_group_that_is_there_again_can_be_deleted_before_the_first_deletion_ends(world: World) -> None:
    world.delete()
    world.log.finish()
    world.commit(FIRST, 10_000)
    world.log.finish()
    world.shard.groups["g"] = ClassicGroup("g", 0)  # a member has joined, and left
    world.delete()
    world.log.finish_all()
    assert world.answers == [None, None]
    assert world.offsets() == {}


@pytest.mark.parametrize("steps", range(1, 4))
@pytest.mark.parametrize("number", [*range(OFFSETS_PER_STEP // 2, OFFSETS, OFFSETS_PER_STEP), OFFSETS - 1])
def test_an_offset_that_is_committed_between_two_steps_of_their_expiration_stays(
    world: World, steps: int, number: int
) -> None:
    """All of them are old enough to go."""
    is_judged = number < steps * OFFSETS_PER_STEP
    expiring = world.shard.expire()
    for _ in range(steps):
        next(expiring)
        world.log.finish_all()
    again = TopicPartition("t", number)
    assert (world.shard.offsets.get("g", again) is None) == is_judged
    world.commit(again, 10_000)
    world.log.finish_all()
    for _ in expiring:
        world.log.finish_all()
    assert world.offsets() == {again: 10_000}


def test_stale_offsets_go_and_leave_the_transaction_alone_that_has_one_of_the_new_topic() -> None:
    shard = group_shard()
    current = shard._topics.image.topics["t"].topic_id
    old = OffsetValue(
        offset=1, leader_epoch=0, metadata="", commit_timestamp=1, expire_timestamp=-1, topic_id=UUID(int=99)
    )
    key, other = OffsetKey("g", "t", 0), OffsetKey("g", "t", 1)
    for one in (key, other):
        shard.offsets.put(one, old, 1)
    shard.offsets.put_pending(PRODUCER, key, old._replace(offset=2, topic_id=current), 2)
    take_all(shard.drop_stale_offsets(["t"]))
    assert not shard.offsets.has(other)
    assert shard.offsets.is_unstable(key)
    shard.offsets.end_transaction(PRODUCER.producer_id, committed=True)
    assert [value.offset for _, value in shard.offsets.of_group("g")] == [2]
