"""Any order of fetches, appends, answers, metadata, restarts and time: nothing acknowledged is lost by an election.

The model has what the leader can only guess: which records each broker really has, and the state that the controller
has, which the leader hears of late. The controller may elect any member of its in-sync set at any time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

from strandline.clock import SystemChance
from strandline.errors import IneligibleReplica, InvalidUpdateVersion, NotLeaderOrFollower, StrandlineError
from strandline.metadata import PartitionImage
from strandline.replication.leader_environment import IsrProposal
from tests.replication.conftest import image
from tests.replication.led import ALL, LAG, Led, registered

OTHERS = (2, 3)


@dataclass
class Told:
    """An answer of the controller on its way to the leader."""

    proposal: IsrProposal
    result: PartitionImage | StrandlineError


class LeaderAmongFollowers:
    """`isr` and `version` are the controller's; `has` is what each broker has; `seen` what the leader's image shows."""

    def __init__(self, directory: Path) -> None:
        self.led = Led(directory, min_isr=1)
        self.isr: tuple[int, ...] = ALL
        self.version = self.led.version
        self.has = dict.fromkeys(ALL, 0)
        self.epochs = {1: 10, 2: 20, 3: 30}
        self.fenced: set[int] = set()
        self.fetching_epochs = dict(self.epochs)
        self.news: deque[tuple[PartitionImage, dict[int, int], set[int]]] = deque()
        self.answers: deque[Told] = deque()
        self.answered: list[tuple[int, list[StrandlineError | None]]] = []

    def changed(self, isr: tuple[int, ...]) -> PartitionImage:
        """The controller has another state, of this partition or of brokers. The leader will see it."""
        self.version += isr != self.isr
        self.isr = isr
        state = image(isr=isr, replicas=ALL, epoch=self.led.epoch, version=self.version)
        self.news.append((state, dict(self.epochs), set(self.fenced)))
        return state

    # What happens at the leader

    def append(self, count: int) -> None:
        for _ in range(count):
            (told,) = self.led.append()
            self.answered.append((self.led.end, told))
        self.has[1] = self.led.end

    def time_passes(self, seconds: float) -> None:
        self.led.clock.move(seconds)

    def look(self) -> None:
        self.led.role.check_in_sync_set()

    def metadata_arrives(self) -> None:
        if not self.news:
            return
        state, epochs, fenced = self.news.popleft()
        self.led.brokers.image = registered(epochs, fenced=tuple(fenced))
        self.led.partition.follow(state)

    def answer_arrives(self) -> None:
        if self.answers:
            told = self.answers.popleft()
            told.proposal.answered(told.result)

    # What followers do

    def copy(self, broker: int, short: int) -> None:
        self.has[broker] = max(self.has[broker], self.led.end - short)

    def fetch(self, broker: int) -> None:
        self._fetch(broker, self.fetching_epochs[broker])

    def lie(self, broker: int, epoch: int) -> None:
        """Something that is not the broker says that it has everything."""
        try:
            self.led.role.follower_fetched(broker, epoch, self.led.end, 0, self.led.end)
        except NotLeaderOrFollower:
            assert epoch == 19

    def _fetch(self, broker: int, epoch: int) -> None:
        try:
            self.led.role.follower_fetched(broker, epoch, self.has[broker], 0, self.led.end)
        except NotLeaderOrFollower:
            assert epoch < self.led.brokers.image.brokers[broker].epoch

    # What the controller does

    def decide(self) -> None:
        if not self.led.controller.proposals:
            return
        proposal = self.led.controller.proposals.pop(0)
        change = proposal.change
        result: PartitionImage | StrandlineError
        if change.partition_epoch != self.version:
            result = InvalidUpdateVersion("Another state.")
        elif any(
            member.broker_epoch not in (-1, self.epochs[member.node_id]) or member.node_id in self.fenced
            for member in change.isr
        ):
            result = IneligibleReplica("Another incarnation.")
        else:
            members = {member.node_id for member in change.isr}
            result = self.changed(tuple(broker for broker in ALL if broker in members))
        self.answers.append(Told(proposal, result))

    def restart(self, broker: int, keeps: bool) -> None:
        """A new incarnation, which may have lost its disk. The controller takes it out of the set."""
        self.epochs[broker] += 1
        self.fetching_epochs[broker] = self.epochs[broker]
        self.fenced.discard(broker)
        if not keeps:
            self.has[broker] = 0
        self.changed(tuple(member for member in self.isr if member != broker))

    def fence(self, broker: int) -> None:
        self.fenced.add(broker)
        self.changed(tuple(member for member in self.isr if member != broker))

    def unfence(self, broker: int) -> None:
        self.fenced.discard(broker)
        self.changed(self.isr)

    # What has to be true

    def nothing_acknowledged_is_missing_where_a_leader_may_come_from(self) -> None:
        high_watermark = self.led.high_watermark
        for member in self.isr:
            assert high_watermark <= self.has[member], (member, self.isr, self.has)

    def what_is_told_is_below_the_high_watermark(self) -> None:
        for end, told in self.answered:
            assert told == ([None] if end <= self.led.high_watermark else [])
        self.answered = [(end, told) for end, told in self.answered if not told]

    def the_leader_is_in_sync(self) -> None:
        assert 1 in self.led.partition.isr


Action: TypeAlias = Callable[[LeaderAmongFollowers, SystemChance], object]


def other(dice: SystemChance) -> int:
    return OTHERS[dice.below(2)]


ACTIONS: list[tuple[int, Action]] = [
    (6, lambda w, d: w.append(1 + d.below(3))),
    (2, lambda w, d: w.time_passes((0.1, LAG / 2, LAG + 1)[d.below(3)])),
    (3, lambda w, d: w.look()),
    (8, lambda w, d: w.metadata_arrives()),
    (8, lambda w, d: w.answer_arrives()),
    (8, lambda w, d: w.copy(other(d), d.below(4) // 3)),
    (12, lambda w, d: w.fetch(other(d))),
    (1, lambda w, d: w.lie(other(d), (-1, 19, 10**6)[d.below(3)])),
    (12, lambda w, d: w.decide()),
    (1, lambda w, d: w.restart(other(d), keeps=d.below(2) == 0)),
    (1, lambda w, d: w.fence(other(d))),
    (3, lambda w, d: w.unfence(other(d))),
]
"""What can happen, and how often."""
CHOICES = [action for weight, action in ACTIONS for _ in range(weight)]


@pytest.mark.parametrize("seed", range(8))
def test_any_order(tmp_path: Path, seed: int) -> None:
    dice = SystemChance(seed)
    world = LeaderAmongFollowers(tmp_path)
    joined = 0
    for _ in range(2000):
        before = len(world.isr)
        CHOICES[dice.below(len(CHOICES))](world, dice)
        joined += len(world.isr) > before
        world.nothing_acknowledged_is_missing_where_a_leader_may_come_from()
        world.what_is_told_is_below_the_high_watermark()
        world.the_leader_is_in_sync()
    assert joined > 20
    assert world.led.high_watermark > 200
    world.led.close()
