"""Share partitions of one partition of the log: what is written when, and what a new coordinator knows."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.coordinators.runtime import KeyValue, ReadBatch, ReadRecord, WriteDone, WriteResult
from strandline.coordinators.share_states import (
    DeliveryBatch,
    DeliveryState,
    SharePartitionKey,
    ShareState,
    ShareStateSummary,
    ShareStateUpdate,
)
from strandline.coordinators.share_states.schemas import ShareUpdateValue, read_record
from strandline.coordinators.share_states.shard import ShareShard
from strandline.errors import (
    CoordinatorNotAvailable,
    FencedLeaderEpoch,
    InvalidRequest,
    NotCoordinator,
    NotEnoughReplicas,
    StrandlineError,
    UnknownTopicOrPartition,
)
from strandline.share_errors import FencedStateEpoch
from strandline.testing.clock import VirtualClock
from tests.coordinators.steps import take_all

S = DeliveryState
TOPIC, OTHER = UUID(int=1), UUID(int=2)
KEY = SharePartitionKey("pay", TOPIC, 0)
COLD = SharePartitionKey("cold", TOPIC, 1)


@dataclass
class Sink:
    """A log whose writes end when the test says so."""

    waiting: deque[tuple[Sequence[KeyValue], WriteDone]] = field(default_factory=deque)
    records: list[KeyValue] = field(default_factory=list)
    start: int = 0

    def write(self, records: Sequence[KeyValue], done: WriteDone) -> None:
        self.waiting.append((records, done))

    def finish(self, *, accept: bool = True, is_lost: bool = True) -> None:
        records, done = self.waiting.popleft()
        offset = len(self.records)
        if accept or not is_lost:
            self.records += records
        done(WriteResult(None, offset) if accept else WriteResult(NotEnoughReplicas("told to fail")))

    def finish_all(self) -> None:
        while self.waiting:
            self.finish()

    def delete_before(self, offset: int) -> None:
        self.start = offset


class World:
    def __init__(self, updates_per_snapshot: int = 500) -> None:
        self.sink, self.clock = Sink(), VirtualClock(1_000_000)
        self.topics = {TOPIC}
        self.updates_per_snapshot = updates_per_snapshot
        self.shard = self.new_shard()
        self.answers: list[object] = []

    def new_shard(self) -> ShareShard:
        return ShareShard(
            self.sink,
            self.clock,
            has_partition=lambda key: key.topic_id in self.topics and key.partition < 4,
            updates_per_snapshot=self.updates_per_snapshot,
            delete_before=self.sink.delete_before,
        )

    def reload(self) -> None:
        """Another broker takes over, and reads what is in the log."""
        error = NotCoordinator("gone")
        while self.sink.waiting:
            _, done = self.sink.waiting.popleft()
            done(WriteResult(error))
        take_all(self.shard.unloaded(error))
        self.shard = self.new_shard()
        for offset in range(self.sink.start, len(self.sink.records)):
            self.shard.replay(ReadBatch(records=(ReadRecord(offset, *self.sink.records[offset]),)))
        take_all(self.shard.loaded())

    def initialize(self, key: SharePartitionKey = KEY, *, state_epoch: int = 1, start: int = -1) -> None:
        self.shard.initialize(key, state_epoch=state_epoch, start_offset=start, answer=self.answers.append)

    def read(self, leader_epoch: int, key: SharePartitionKey = KEY, *, by: str = "") -> None:
        self.shard.read(key, leader_epoch=leader_epoch, reader=by, answer=self.answers.append)

    def write(
        self,
        *batches: DeliveryBatch,
        start: int = 0,
        leader: int = 4,
        state_epoch: int = 1,
        key: SharePartitionKey = KEY,
        by: str = "",
    ) -> None:
        update = ShareStateUpdate(
            state_epoch=state_epoch,
            leader_epoch=leader,
            start_offset=start,
            delivery_complete_count=len(batches),
            batches=batches,
        )
        self.shard.write(key, update, by, self.answers.append)

    def kinds(self) -> list[str]:
        found = [read_record(*record) for record in self.sink.records]
        names = {ShareState: "S", ShareUpdateValue: "u", type(None): "x"}
        return [names[type(change)] for entry in found if entry is not None for change in entry[1:]]

    def begun(self) -> None:
        self.initialize()
        self.sink.finish_all()
        self.read(4)
        self.sink.finish_all()
        self.answers.clear()


@pytest.fixture
def world() -> World:
    return World()


def test_a_share_partition_is_initialized_read_and_written_as_kafka_does(world: World) -> None:
    world.initialize(state_epoch=2)
    assert world.answers == [], "answered before it is committed"
    world.sink.finish()
    world.read(4)
    world.sink.finish()
    assert world.answers[0] is None
    assert isinstance(world.answers[1], ShareState)
    assert (world.answers[1].state_epoch, world.answers[1].start_offset) == (2, -1)
    acked = DeliveryBatch(0, 2, S.ACKNOWLEDGED, 1)
    world.write(acked, state_epoch=2)
    world.sink.finish()
    assert world.kinds() == ["S", "u", "u"]
    last = read_record(*world.sink.records[-1])
    assert last == (
        KEY,
        ShareUpdateValue(snapshot_epoch=0, leader_epoch=4, start_offset=0, delivery_complete_count=1, batches=(acked,)),
    )


def test_a_read_in_the_same_leader_epoch_writes_nothing(world: World) -> None:
    world.begun()
    world.read(4)
    assert isinstance(world.answers[0], ShareState)
    assert len(world.sink.records) == 2


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda world: world.read(3), FencedLeaderEpoch),
        (lambda world: world.write(leader=3), FencedLeaderEpoch),
        (lambda world: world.write(state_epoch=0), FencedStateEpoch),
        (lambda world: world.write(state_epoch=50), FencedStateEpoch),
        (lambda world: world.initialize(state_epoch=0), FencedStateEpoch),
        (lambda world: world.read(4, SharePartitionKey("pay", TOPIC, 2)), InvalidRequest),
        (lambda world: world.write(key=SharePartitionKey("new", TOPIC, 0)), InvalidRequest),
        (lambda world: world.initialize(SharePartitionKey("pay", OTHER, 0)), UnknownTopicOrPartition),
        (lambda world: world.initialize(SharePartitionKey("pay", TOPIC, 4)), UnknownTopicOrPartition),
    ],
)
def test_what_is_refused_changes_nothing(world: World, ask: object, error: type[StrandlineError]) -> None:
    world.begun()
    before = dict(world.shard)
    assert callable(ask)
    ask(world)
    assert [type(answer) for answer in world.answers] == [error]
    assert not world.sink.waiting
    assert dict(world.shard) == before


def test_a_state_that_begins_anew_still_fences_old_leaders(world: World) -> None:
    world.begun()
    world.initialize(state_epoch=2, start=50)
    world.sink.finish()
    world.read(3)
    assert isinstance(world.answers[-1], FencedLeaderEpoch)
    world.read(4)
    state = world.answers[-1]
    assert isinstance(state, ShareState)
    assert (state.start_offset, state.state_epoch, state.snapshot_epoch) == (50, 2, 1)


def test_a_state_whose_start_is_known_has_nothing_settled_behind_it(world: World) -> None:
    """So the lag can be told before anybody has fetched, as Kafka does after offsets were reset."""
    for state_epoch, start, settled in ((1, -1, -1), (2, 0, 0), (3, 50, 0), (4, -1, -1)):
        world.initialize(state_epoch=state_epoch, start=start)
        world.sink.finish()
        assert world.shard.summary(KEY) == ShareStateSummary(state_epoch, 0, start, settled)


def test_snapshots_come_after_so_many_updates_as_in_kafka() -> None:
    world = World(updates_per_snapshot=2)
    world.begun()
    for at in range(8):
        world.write(DeliveryBatch(at, at, S.ACKNOWLEDGED, 1))
        world.sink.finish()
    # The first update after the first snapshot is not counted.
    assert world.kinds() == ["S", "u", "u", "u", "S", "u", "u", "S", "u", "u"]
    snapshot = read_record(*world.sink.records[7])
    assert snapshot is not None
    assert isinstance(snapshot[1], ShareState)
    assert snapshot[1].batches == (DeliveryBatch(0, 5, S.ACKNOWLEDGED, 1),)
    assert snapshot[1].snapshot_epoch == 2


def test_a_snapshot_holds_a_write_that_was_under_way_when_it_was_asked_for() -> None:
    world = World(updates_per_snapshot=0)
    world.begun()
    world.write(DeliveryBatch(0, 0, S.ACKNOWLEDGED, 1))
    world.write(DeliveryBatch(1, 1, S.ARCHIVED, 1))
    assert len(world.sink.waiting) == 1, "the second is decided when the first is committed"
    world.sink.finish_all()
    world.reload()
    assert dict(world.shard)[KEY].batches == (
        DeliveryBatch(0, 0, S.ACKNOWLEDGED, 1),
        DeliveryBatch(1, 1, S.ARCHIVED, 1),
    )


def test_what_waits_behind_a_failed_write_fails_too(world: World) -> None:
    world.begun()
    world.write(DeliveryBatch(0, 0, S.ACKNOWLEDGED, 1))
    world.write(DeliveryBatch(1, 1, S.ACKNOWLEDGED, 1))
    world.sink.finish(accept=False)
    assert [type(answer) for answer in world.answers] == [CoordinatorNotAvailable] * 2
    world.write(DeliveryBatch(2, 2, S.ACKNOWLEDGED, 1))
    world.sink.finish()
    assert world.answers[-1] is None
    assert dict(world.shard)[KEY].batches == (DeliveryBatch(2, 2, S.ACKNOWLEDGED, 1),)


def test_a_deleted_state_is_gone_and_deleting_it_again_is_harmless(world: World) -> None:
    world.begun()
    for _ in range(2):
        world.shard.delete(KEY, world.answers.append)
        world.sink.finish_all()
    assert world.answers == [None, None]
    assert world.kinds() == ["S", "u", "x"]
    assert world.shard.summary(KEY) == ShareStateSummary()


def test_the_summary_has_no_batches(world: World) -> None:
    world.begun()
    world.write(DeliveryBatch(7, 8, S.ACKNOWLEDGED, 1), start=7)
    world.sink.finish()
    assert world.shard.summary(KEY) == ShareStateSummary(1, 4, 7, 1)


def test_states_of_deleted_topics_are_dropped_also_by_a_coordinator_that_learns_of_it_later(world: World) -> None:
    world.begun()
    world.topics.clear()
    world.reload()
    world.sink.finish_all()
    assert world.kinds() == ["S", "u", "x"]
    assert len(world.shard) == 0


def test_cold_partitions_get_snapshots_so_that_the_log_can_be_pruned(world: World) -> None:
    world.initialize(COLD)
    world.sink.finish()
    world.begun()
    assert world.shard.redundant_before == 0
    world.clock.move(300)
    world.initialize(state_epoch=2)
    world.sink.finish()
    take_all(world.shard.snapshot_cold(300_000))
    assert len(world.sink.waiting) == 1
    world.sink.finish()
    take_all(world.shard.prune())
    assert world.sink.start == 3, "the snapshots of both are the last two records"
    expected = dict(world.shard)
    world.reload()
    assert dict(world.shard) == expected


@given(st.data())
def test_a_new_coordinator_has_the_state_of_the_old_one(data: st.DataObject) -> None:
    """Whatever was written and whatever has failed, unless a failed write is in the log nevertheless."""
    world = World(updates_per_snapshot=data.draw(st.integers(0, 3)))
    world.begun()
    for _ in range(data.draw(st.integers(1, 12))):
        match data.draw(st.sampled_from(["write", "write", "write", "initialize", "delete", "read", "cold", "prune"])):
            case "write":
                first = data.draw(st.integers(0, 9))
                world.write(DeliveryBatch(first, first + 2, S.ACKNOWLEDGED, data.draw(st.integers(1, 2))), start=first)
            case "initialize":
                world.initialize(state_epoch=1, start=data.draw(st.integers(-1, 5)))
            case "delete":
                world.shard.delete(KEY, world.answers.append)
            case "read":
                world.read(data.draw(st.integers(4, 6)))
            case "cold":
                world.clock.move(300)
                take_all(world.shard.snapshot_cold(300_000))
            case "prune":
                take_all(world.shard.prune())
        for _ in range(data.draw(st.integers(0, len(world.sink.waiting)))):
            accepts: bool = data.draw(st.booleans())
            world.sink.finish(accept=accepts)
    world.sink.finish_all()
    expected = dict(world.shard)
    world.reload()
    assert dict(world.shard) == expected


def test_two_brokers_that_lead_in_one_epoch_do_not_both_write() -> None:
    """Who read last may: what the other one knows is older. It may read, too, and then the first one may not."""
    world = World()
    world.begun()
    world.read(4, by="other")
    world.write(DeliveryBatch(0, 0, S.ACKNOWLEDGED, 1))
    assert isinstance(world.answers[-1], FencedLeaderEpoch)
    world.write(DeliveryBatch(0, 0, S.ACKNOWLEDGED, 1), by="other")
    world.sink.finish_all()
    assert world.answers[-1] is None
    world.read(4)
    world.write(DeliveryBatch(1, 1, S.ACKNOWLEDGED, 1), by="other")
    assert isinstance(world.answers[-1], FencedLeaderEpoch)


@pytest.mark.parametrize("updates_per_snapshot", [1, 500])
def test_a_write_that_comes_late_does_not_bring_back_what_is_settled(updates_per_snapshot: int) -> None:
    world = World(updates_per_snapshot)
    world.begun()
    world.write(DeliveryBatch(7, 8, S.ACKNOWLEDGED, 1), start=7)
    world.sink.finish_all()
    for _ in range(3):
        world.write(DeliveryBatch(2, 3, S.AVAILABLE, 1), start=2)
        world.sink.finish_all()
        for known in (world.shard, world.new_shard()):
            if known is not world.shard:
                known.replay(
                    ReadBatch(records=tuple(ReadRecord(at, *one) for at, one in enumerate(world.sink.records)))
                )
            [(_, state)] = known
            assert (state.start_offset, state.batches) == (7, (DeliveryBatch(7, 8, S.ACKNOWLEDGED, 1),))


def test_a_leader_of_a_group_that_was_deleted_does_not_write_for_the_next_one() -> None:
    """Both lives of the group have the same state epoch, and the leader the same epoch."""
    world = World()
    world.begun()
    world.shard.delete(KEY, world.answers.append)
    world.initialize()
    world.sink.finish_all()
    world.write(DeliveryBatch(0, 0, S.ACKNOWLEDGED, 1))
    assert isinstance(world.answers[-1], FencedLeaderEpoch)
    world.read(4)
    world.write(DeliveryBatch(0, 0, S.ACKNOWLEDGED, 1))
    world.sink.finish_all()
    assert world.answers[-1] is None


def test_a_beginning_that_is_repeated_very_late_changes_nothing() -> None:
    """The coordinator of the group gave it up and asked again; members have settled records since."""
    world = World()
    world.begun()
    world.write(DeliveryBatch(0, 4, S.ACKNOWLEDGED, 1), start=5)
    world.sink.finish_all()
    before = len(world.sink.records)
    world.initialize()
    world.sink.finish_all()
    assert world.answers[-1] is None
    assert len(world.sink.records) == before
    world.write(DeliveryBatch(5, 5, S.ACKNOWLEDGED, 1), start=5)
    world.sink.finish_all()
    assert world.answers[-1] is None, "its leader goes on"
    world.initialize(start=3)
    world.sink.finish_all()
    [(_, state)] = world.shard
    assert (state.start_offset, state.batches) == (3, ()), "an administrator may begin anew in the same epoch"
