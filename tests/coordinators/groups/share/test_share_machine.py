"""Share groups under random requests, random time and a log that may refuse: what must hold in every case.

Members join, leave, fall silent and forget their epochs; topics appear, grow, vanish and come again; state is created,
refused, or never heard of again; the shard is loaded anew. Whatever happens, epochs never go back, every partition of a
subscribed topic is read in the end, only what has state is read, and the log tells the same story as memory.
"""

from __future__ import annotations

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from strandline.clock import SystemChance
from tests.coordinators.groups.share.share_story import NAMES, SUBSCRIPTIONS, ShareStory

ACTIONS = ("beat", "beat", "beat", "change topics", "beat with a wrong epoch", "leave", "lose memory", "vanish")
ANSWERS = ("succeeds", "succeeds", "fails", "is silent")
UPHEAVALS = (*["nothing"] * 4, "restart", "delete group", "alter offsets", "delete offsets")
WRITES = (*[True] * 6, False, None)
TIMES = (0.0, 0.5, 1.0, 5.0, 31.0, 46.0)


class ShareMachine(RuleBasedStateMachine):
    """Short stories, which Hypothesis makes shorter still when one of them goes wrong."""

    story: ShareStory | None = None

    @initialize(max_size=st.sampled_from([2, 200]), interval_ms=st.sampled_from([0, 1000]))
    def start(self, max_size: int, interval_ms: int) -> None:
        self.story = ShareStory(max_size, interval_ms)
        self.story.appear(0)

    @property
    def the(self) -> ShareStory:
        assert self.story is not None
        return self.story

    @rule(subscription=st.integers(0, len(SUBSCRIPTIONS) - 1))
    def appear(self, subscription: int) -> None:
        self.the.appear(subscription)

    @rule(who=st.integers(0, 5), what=st.sampled_from(ACTIONS), number=st.integers(0, 7))
    def act(self, who: int, what: str, number: int) -> None:
        self.the.act(who, what, number)

    @rule(what=st.integers(0, 5), name=st.sampled_from(NAMES))
    def topics_change(self, what: int, name: str) -> None:
        self.the.topics_change(what, name)

    @rule(what=st.sampled_from(ANSWERS))
    def share_coordinator(self, what: str) -> None:
        self.the.share_coordinator(what)

    @rule(accept=st.sampled_from(WRITES))
    def finish_write(self, accept: bool | None) -> None:
        self.the.finish_write(accept)

    @rule(seconds=st.sampled_from(TIMES))
    def pass_time(self, seconds: float) -> None:
        self.the.pass_time(seconds)

    @rule()
    def everyone_beats(self) -> None:
        self.the.everyone_beats()

    @rule(what=st.sampled_from(UPHEAVALS), number=st.integers(0, 7))
    def upheaval(self, what: str, number: int) -> None:
        self.the.upheaval(what, number)

    @rule()
    def calm(self) -> None:
        self.the.calm()

    @invariant()
    def all_holds(self) -> None:
        if self.story is not None:
            self.story.check()

    def teardown(self) -> None:
        if self.story is not None:
            self.story.end()


TestShareMachine = ShareMachine.TestCase
TestShareMachine.settings = hypothesis_settings(stateful_step_count=40)


@pytest.mark.parametrize("seed", range(30))
def test_long_stories_of_share_groups(seed: int) -> None:
    """Hundreds of steps, which get into corners that short stories seldom reach."""
    chance = SystemChance(seed)
    story = ShareStory((2, 200)[chance.below(2)], (0, 1000)[chance.below(2)])
    for _ in range(400):
        match chance.below(16):
            case 0 | 1:
                story.appear(chance.below(4))
            case 2:
                story.topics_change(chance.below(6), NAMES[chance.below(3)])
            case 3 | 4:
                story.share_coordinator(ANSWERS[chance.below(len(ANSWERS))])
            case 5 | 6 | 7 | 8:
                story.finish_write(seed % 2 == 0 or WRITES[chance.below(len(WRITES))])
            case 9:
                story.pass_time(TIMES[chance.below(len(TIMES))])
            case 10:
                story.upheaval(UPHEAVALS[chance.below(len(UPHEAVALS))], chance.below(8))
            case 11:
                story.everyone_beats()
            case 12 if chance.below(10) == 0:
                story.calm()
            case _:
                story.act(chance.below(6), ACTIONS[chance.below(len(ACTIONS))], chance.below(8))
        story.check()
    story.end()
