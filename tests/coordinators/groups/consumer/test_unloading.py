"""A shard that is unloaded in several steps: what comes back to it between two of them changes nothing any more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pytest

from strandline.coordinators.groups import HeartbeatRequest
from strandline.coordinators.groups.classic_group import ClassicGroup
from strandline.coordinators.groups.consumer.regular_expressions import Matches, TopicMatcher, matching_topics
from strandline.coordinators.groups.incarnations import TopicIncarnations
from strandline.coordinators.groups.shard import GROUPS_PER_STEP, GroupShard
from strandline.coordinators.runtime import KeyValue, WriteDone, WriteResult
from strandline.errors import NotCoordinator, StrandlineError
from tests.coordinators.groups.consumer.shard_world import ShardWorld
from tests.coordinators.groups.timed_shard import Log
from tests.coordinators.steps import take_all

AWAY = NotCoordinator("Another broker coordinates this group now.")


class HeldMatcher(TopicMatcher):
    """Matches when a test says so, as a thread that is busy."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def match(
        self, expressions: Collection[str], topics: Collection[str], done: Callable[[Matches | Exception], None]
    ) -> None:
        self.waiting.append(lambda: done(matching_topics(expressions, topics)))

    def finish(self) -> None:
        while self.waiting:
            self.waiting.pop()()


class ClosableLog(Log):
    """Fails every write at once when it is closed, as the writer of a partition does."""

    closed: StrandlineError | None = None
    refused = 0

    def write(self, records: Sequence[KeyValue], done: WriteDone) -> None:
        if self.closed is None:
            super().write(records, done)
            return
        self.refused += 1
        done(WriteResult(self.closed))

    def close(self, error: StrandlineError) -> None:
        self.closed = error
        while self.waiting:
            _, done = self.waiting.popleft()
            done(WriteResult(error))


class World(ShardWorld):
    """A consumer group with an expression that is being matched, and so many groups that they go in several steps."""

    def __init__(self) -> None:
        self.matcher = HeldMatcher()
        super().__init__()
        self.join("m1", regex="ord.*")
        for number in range(GROUPS_PER_STEP + 1):
            self.shard.groups[f"another-{number}"] = ClassicGroup(f"another-{number}", 0)

    def new_shard(self) -> GroupShard:
        self.log = self.closable = ClosableLog()
        incarnations = TopicIncarnations(self.topics)
        return GroupShard(self.log, self.timers, self.clock, self.ids, self.settings, incarnations, self.matcher)

    def begin_to_unload(self) -> None:
        """As the runtime does, whose other steps come later."""
        self.closable.close(AWAY)
        self.unloading = self.shard.unloaded(AWAY)
        next(self.unloading)
        assert "g" in self.shard.groups

    def end(self) -> None:
        """Nothing is left of the shard, nor comes back by itself."""
        take_all(self.unloading)
        take_all(self.shard.let_go())
        assert len(self.timers) == 0
        self.let_time_pass(60)
        assert (len(self.timers), self.closable.refused) == (0, 0)


@pytest.fixture
def world() -> World:
    return World()


def test_a_match_that_comes_back_is_dropped(world: World) -> None:
    world.begin_to_unload()
    before = world.group.epoch
    world.matcher.finish()
    assert world.group.epoch == before
    world.end()


def test_a_decision_is_refused_and_not_written_again(world: World) -> None:
    world.begin_to_unload()
    answers: list[StrandlineError | None] = []
    for group_id in ("g", "gone"):
        world.shard.share.end_offset_deletion(group_id, (), answers.append)
    world.shard.consumer.remove(world.group, list(world.group.members.values()), "it leaves", answers.append)
    assert answers == [AWAY] * 3
    world.end()


def test_what_failed_with_the_end_of_the_shard_is_not_written_again(world: World) -> None:
    answers = world.send(
        HeartbeatRequest(group_id="g", member_id="m2", topics=("orders",), rebalance_timeout_ms=9, owned={})
    )
    world.begin_to_unload()
    assert isinstance(answers.only.error, NotCoordinator)
    world.end()
