"""Share partition and share coordinator together, in any order of deliveries, answers, failed writes and restarts.

`test_delivery_model` knows what becomes of each offset; here are the promises that a group relies on, whatever fails:
what was answered as settled is not delivered again, nothing that is not settled is left out, and counts only grow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, cast
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from strandline.config.share_group import ShareGroupConfig
from strandline.coordinators.runtime import ReadBatch, ReadRecord, Timers, wait_result
from strandline.coordinators.share_states import (
    DeliveryState,
    SharePartitionKey,
    ShareState,
    ShareStateUpdate,
)
from strandline.coordinators.share_states.shard import ShareShard
from strandline.errors import NotCoordinator, NotLeaderOrFollower, StrandlineError
from strandline.hybrid.partition import ServedPartition
from strandline.share_delivery.delivery import Acknowledgement, AcknowledgeType, FetchedBatch
from strandline.share_delivery.partition import SharePartition
from strandline.tasks import TaskSet
from strandline.testing.clock import VirtualClock
from tests.coordinators.share_states.test_shard import Sink
from tests.coordinators.steps import take_all
from tests.share_delivery.test_share_partition import LeaderStates, Served

T = AcknowledgeType
KEY = SharePartitionKey("g", UUID(int=1), 0)
MEMBERS = st.sampled_from(["a", "b"])
LIMIT = 3
LOCK_S = 20
RECORDS = 12
ACTIONS = (
    *["fetch and answer"] * 5,
    *["log answers", "log fails", "time passes"] * 2,
    *("fetch", "answer", "leave", "leader", "coordinator"),
)


class ShardStates(LeaderStates):
    """`ShareGroupStates` over a shard, which another one may replace."""

    def __init__(self, shard: Callable[[], ShareShard]) -> None:
        self._shard = shard

    async def read(self, key: SharePartitionKey, *, leader_epoch: int) -> ShareState:
        found: ShareState | StrandlineError = await wait_result(
            lambda answer: self._shard().read(key, leader_epoch=leader_epoch, reader="", answer=answer)
        )
        if isinstance(found, StrandlineError):
            raise found
        return found

    async def write(self, key: SharePartitionKey, update: ShareStateUpdate) -> None:
        error: StrandlineError | None = await wait_result(lambda answer: self._shard().write(key, update, "", answer))
        if error is not None:
            raise error


class Leader:
    """A broker that leads the partition in one epoch."""

    def __init__(self, machine: StoredDelivery, epoch: int, predecessor: SharePartition | None) -> None:
        self.tasks, self.timers = TaskSet(), Timers(machine.clock)
        self.served = Served()
        self.served.leader_epoch = epoch
        self.share = SharePartition(
            KEY,
            cast(ServedPartition, self.served),
            ShardStates(lambda: machine.shard),
            lambda: ShareGroupConfig(share_delivery_count_limit=LIMIT, share_record_lock_duration_ms=LOCK_S * 1000),
            clock=machine.clock,
            timers=self.timers,
            spawn=self.spawn,
            on_fenced=lambda share: None,
            predecessor=predecessor,
        )

    def spawn(self, work: Coroutine[Any, Any, None]) -> object:
        return self.tasks.start(work, name="share")


class StoredDelivery(RuleBasedStateMachine):
    """A log of `RECORDS` records, a leader that may change, and a coordinator that may be read again."""

    @initialize(updates_per_snapshot=st.integers(1, 4))
    def begin(self, updates_per_snapshot: int) -> None:
        self.loop = asyncio.new_event_loop()
        self.updates_per_snapshot = updates_per_snapshot
        self.clock, self.sink = VirtualClock(), Sink()
        self.shard = self.new_shard()
        self.shard.initialize(KEY, state_epoch=1, start_offset=0, answer=lambda error: None)
        self.sink.finish_all()
        self.epoch = 1
        self.old: list[Leader] = []
        self.asked: list[tuple[asyncio.Task[None], Sequence[int], AcknowledgeType]] = []
        self.counts: dict[int, int] = {}
        """Of the last delivery."""
        self.held: dict[int, str] = {}
        self.said: set[int] = set()
        self.settled: set[int] = set()
        self.floor: dict[int, int] = {}
        """Delivery counts that are known to be stored."""
        self.leader: Leader = self.run(self.lead(None))
        self.let_log_work()

    def new_shard(self) -> ShareShard:
        return ShareShard(
            self.sink,
            self.clock,
            has_partition=lambda key: True,
            updates_per_snapshot=self.updates_per_snapshot,
            delete_before=lambda offset: None,
        )

    async def lead(self, predecessor: SharePartition | None) -> Leader:
        return Leader(self, self.epoch, predecessor)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def settle(self) -> None:
        """Until everybody waits for the log."""
        self.run(self.let_all_work())
        for task, offsets, kind in [one for one in self.asked if one[0].done()]:
            self.asked = [one for one in self.asked if one[0] is not task]
            if task.exception() is None:
                self.note_stored(offsets, kind)
            else:
                assert isinstance(task.exception(), StrandlineError), task.exception()

    async def let_all_work(self) -> None:
        await self.clock.settle()
        for leader in (*self.old, self.leader):
            leader.timers.run_due()
        await self.clock.settle()

    def let_log_work(self) -> None:
        self.settle()
        while self.sink.waiting:
            self.sink.finish()
            self.settle()

    def note_stored(self, offsets: Sequence[int], kind: AcknowledgeType) -> None:
        for offset in offsets:
            if kind in (T.ACCEPT, T.REJECT):
                self.settled.add(offset)
            elif kind is T.RELEASE:
                self.floor[offset] = max(self.floor.get(offset, 0), self.counts[offset])

    @property
    def share(self) -> SharePartition:
        return self.leader.share

    def is_ready(self) -> bool:
        return hasattr(self, "leader") and self.share.is_loaded and self.share.failure is None

    @rule(
        action=st.sampled_from(ACTIONS),
        member=MEMBERS,
        length=st.integers(1, 5),
        kind=st.sampled_from([T.ACCEPT, T.RELEASE, T.RELEASE, T.REJECT, T.RENEW]),
        one=st.booleans(),
        other=st.booleans(),
    )
    def step(self, action: str, member: str, length: int, kind: AcknowledgeType, one: bool, other: bool) -> None:
        """One of many: rules of their own would be left out of many runs, and deliveries must not be."""
        match action:
            case "fetch and answer" if self.is_ready():
                self.fetch_and_answer(member, length, kind, is_quick=one)
            case "fetch" if self.is_ready():
                self.fetch(member, length)
            case "answer" if self.is_ready():
                self.answer_some(member, kind, length)
            case "leave" if self.is_ready():
                self.leave(member)
            case "log answers" if self.sink.waiting:
                self.log_answers(accept=True, is_lost=False)
            case "log fails" if self.sink.waiting:
                self.log_answers(accept=False, is_lost=one)
            case "time passes":
                self.time_passes(LOCK_S + 1 if one else 1)
            case "leader":
                self.another_leader(is_new_epoch=one, is_quick=other)
            case "coordinator":
                self.another_coordinator(are_written=one)

    # What members do

    def fetch_and_answer(self, member: str, length: int, kind: AcknowledgeType, *, is_quick: bool) -> None:
        before = set(self.held)
        self.fetch(member, length)
        self.say(member, sorted(set(self.held) - before), kind)
        if is_quick:
            self.let_log_work()

    def fetch(self, member: str, length: int) -> None:
        first = self.share.next_offset()
        if first is None or first >= RECORDS:
            return
        last = min(first + length, RECORDS) - 1
        acquired = self.share.acquire(
            member, first, [FetchedBatch(first, last)], max_records=50, batch_size=50, is_strict=False
        )
        for one in acquired:
            for offset in range(one.first, one.last + 1):
                assert offset not in self.settled, f"{offset} was settled and is delivered again"
                assert self.floor.get(offset, 0) < one.delivery_count <= LIMIT
                self.counts[offset], self.held[offset] = one.delivery_count, member
                if one.delivery_count == LIMIT:
                    self.said.add(offset)  # it may be given up when its lock ends
        self.settle()

    def answer_some(self, member: str, kind: AcknowledgeType, length: int) -> None:
        mine = [offset for offset, holder in self.held.items() if holder == member]
        self.say(member, sorted(mine)[:length], kind)

    def say(self, member: str, chosen: Sequence[int], kind: AcknowledgeType) -> None:
        if not chosen:
            return
        said = [Acknowledgement(offset, offset, [kind]) for offset in chosen]
        if kind in (T.ACCEPT, T.REJECT):
            self.said |= set(chosen)

        async def ask() -> asyncio.Task[None]:
            return asyncio.ensure_future(self.share.acknowledge(member, said))

        self.asked.append((self.run(ask()), chosen, kind))
        if kind is not T.RENEW:
            for offset in chosen:
                del self.held[offset]
        self.settle()

    def leave(self, member: str) -> None:
        async def release() -> None:
            self.share.release(member)

        self.run(release())
        self.held = {offset: holder for offset, holder in self.held.items() if holder != member}
        self.settle()

    # What happens to the brokers

    def log_answers(self, *, accept: bool, is_lost: bool) -> None:
        self.sink.finish(accept=accept, is_lost=is_lost)
        self.settle()

    def time_passes(self, seconds: int) -> None:
        self.run(self.clock.advance(seconds))
        self.settle()

    def another_leader(self, *, is_new_epoch: bool, is_quick: bool) -> None:
        """In another epoch on another broker, which knows nothing of the first; or here, with its knowledge."""
        self.old.append(self.leader)
        before = self.share
        if is_new_epoch:
            self.epoch += 1
        else:
            before.fence(NotLeaderOrFollower("No member fetches it any more."))
        self.leader = self.run(self.lead(None if is_new_epoch else before))
        self.held.clear()
        self.settle()
        if is_quick:
            self.let_log_work()

    def another_coordinator(self, *, are_written: bool) -> None:
        """It reads the log; writes that wait may be in it, but nobody is told."""
        while self.sink.waiting:
            self.sink.finish(accept=False, is_lost=not are_written)
        take_all(self.shard.unloaded(NotCoordinator("another broker coordinates")))
        self.shard = self.new_shard()
        records = tuple(ReadRecord(at, *record) for at, record in enumerate(self.sink.records))
        self.shard.replay(ReadBatch(records=records))
        self.settle()

    @invariant()
    def the_start_is_behind_nothing_that_is_open(self) -> None:
        if hasattr(self, "shard"):
            for _, state in self.shard:
                assert all(offset in self.said for offset in range(state.start_offset))
                for first, last, kind, count in state.batches:
                    assert count <= LIMIT
                    if kind in (DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED):
                        assert all(offset in self.said for offset in range(first, last + 1))

    def teardown(self) -> None:
        """When nothing fails any more, every record that is not settled is delivered."""
        if not hasattr(self, "leader"):
            return
        try:
            self.another_leader(is_new_epoch=True, is_quick=True)
            for _ in range(200):
                self.let_log_work()
                if self.is_ready() and self.share.next_offset() == RECORDS and not self.sink.waiting:
                    break
                if self.is_ready():
                    self.fetch("a", 5)
                    self.say("a", sorted(self.held), T.ACCEPT)
            assert self.is_ready(), self.share.failure
            assert self.said == set(range(RECORDS))
        finally:
            for leader in (*self.old, self.leader):
                self.run(leader.tasks.close())
            for task, _, _ in self.asked:
                task.cancel()
            self.run(self.clock.settle())
            self.loop.close()


TestStoredDelivery = StoredDelivery.TestCase
TestStoredDelivery.settings = settings(settings(), stateful_step_count=60)
