"""Every move that a Fetch request can make, and what it leaves behind wherever it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.server.handlers.fetch.held import Holding
from strandline.server.handlers.fetch.states import MOVES, PollState
from tests.server.handlers.fetch.polling import LONG_MS, PollWorld

pytestmark = pytest.mark.plain

Event = Callable[[PollWorld], Awaitable[object] | object]

EVENTS: Final[dict[str, Event]] = {
    "a record here": lambda world: world.here.add_record(),
    "a record there": lambda world: world.there.add_record(),
    "the loop turns": lambda world: world.turns(),
    "the reads are there": lambda world: world.there.bring(),
    "the store is away": lambda world: world.store_is_away(),
    "a reader fails": lambda world: world.reader_fails(),
    "the leader moves": lambda world: world.leader_moves(),
    "time is over": lambda world: world.poll.expired(),
    "the client leaves": lambda world: world.connection.close(None),
    "memory is taken": lambda world: world.take_memory(),
    "memory is free": lambda world: world.free_memory(),
}


class Ask(NamedTuple):
    """What the client asks, and what is there when it does."""

    here: int = 0
    there: int = 0
    wait_ms: int = LONG_MS
    min_bytes: int = 1
    has_limit: bool = False
    """Whether slow reads bring a limit of their own."""


async def happen(world: PollWorld, name: str) -> None:
    done = EVENTS[name](world)
    if done is not None:
        await done  # type: ignore[misc]


async def begun(ask: Ask) -> PollWorld:
    world = PollWorld()
    world.here.records, world.there.records = ask.here, ask.there
    world.there.is_idle = True
    world.there.max_wait_s = 30.0 if ask.has_limit else None
    world.ask(wait_ms=ask.wait_ms, min_bytes=ask.min_bytes)
    return world


SLOW, NOTHING, SOME = Ask(there=1), Ask(), Ask(here=1)
WAYS: Final[dict[tuple[PollState, PollState], tuple[Ask, tuple[str, ...]]]] = {
    (PollState.LOOKING, PollState.ANSWERED): (SOME, ()),
    (PollState.LOOKING, PollState.WAITING): (NOTHING, ()),
    (PollState.LOOKING, PollState.READING): (SLOW, ()),
    (PollState.WAITING, PollState.WOKEN): (NOTHING, ("a record here",)),
    (PollState.WAITING, PollState.LAST_LOOK): (NOTHING, ("time is over",)),
    (PollState.WAITING, PollState.ABANDONED): (NOTHING, ("the client leaves",)),
    (PollState.WOKEN, PollState.LOOKING): (NOTHING, ("a record here", "the loop turns")),
    (PollState.WOKEN, PollState.LAST_LOOK): (NOTHING, ("a record here", "time is over", "the loop turns")),
    (PollState.WOKEN, PollState.ABANDONED): (NOTHING, ("a record here", "the client leaves", "the loop turns")),
    (PollState.READING, PollState.LOOKING): (SLOW, ("the loop turns", "the reads are there", "the loop turns")),
    (PollState.READING, PollState.OVERDUE): (SLOW, ("time is over",)),
    (PollState.READING, PollState.LAST_LOOK): (Ask(here=1, there=1), ("time is over",)),
    (PollState.READING, PollState.ABANDONED): (SLOW, ("the client leaves",)),
    (PollState.OVERDUE, PollState.LAST_LOOK): (SLOW, ("time is over", "time is over")),
    (PollState.OVERDUE, PollState.ABANDONED): (SLOW, ("time is over", "the client leaves")),
    (PollState.LAST_LOOK, PollState.ANSWERED): (NOTHING, ("time is over",)),
}


def test_each_legal_move_has_its_way() -> None:
    assert set(WAYS) == {(source, target) for source, targets in MOVES.items() for target in targets}
    assert set(MOVES) == set(PollState)


@pytest.mark.parametrize(("source", "target"), WAYS, ids=lambda state: state.name)
async def test_each_legal_move_is_made(source: PollState, target: PollState) -> None:
    ask, names = WAYS[source, target]
    world = await begun(ask)
    for name in names:
        await happen(world, name)
    assert (source, target) in world.poll.moves
    await world.close()


@pytest.mark.parametrize("source", PollState)
async def test_no_other_move_is_possible(source: PollState) -> None:
    """A method that would be an illegal move raises, and changes nothing."""
    for target in PollState:
        world = await begun(NOTHING)
        world.poll._state = source
        if target in MOVES[source]:
            world.poll._enter(target)
            assert world.poll.state is target
        else:
            with pytest.raises(RuntimeError, match=f"cannot go from {source.name} to {target.name}"):
                world.poll._enter(target)
            assert world.poll.state is source
        await world.close()


ENDS: Final = frozenset(state for state in PollState if not MOVES[state])
RESTING: Final = frozenset({PollState.WAITING, PollState.WOKEN, PollState.READING, PollState.OVERDUE}) | ENDS


def check(world: PollWorld) -> None:
    """What holds between any two events."""
    poll = world.poll
    assert poll.state in RESTING, "a look ends in the turn in which it begins"
    assert len(world.connection.answered_exchanges) == (poll.state is PollState.ANSWERED)
    held = poll._places.held
    if poll.state in ENDS:
        assert not world.here.watchers, "nothing is watched any more"
        assert not world.there.watchers
        assert poll not in world.memory._waiting
        assert not held.answers, "no file is kept open"
        assert poll._deadline is None or poll._deadline.callback is None
        assert poll._reads_again is None or poll._reads_again.callback is None
    elif poll.state is PollState.WAITING:
        assert not any(one.holding is Holding.WHILE_READING for one in held.answers.values())
        assert held.grant.size == sum(one.memory for one in held.answers.values())


async def follow(ask: Ask, names: list[str]) -> None:
    """Let these things happen to one request, and then let it end."""
    world = await begun(ask)
    check(world)
    for name in names:
        if name == "time is over" and world.poll._deadline is None:
            continue
        await happen(world, name)
        check(world)
    await happen(world, "memory is free")
    await world.turns()
    for _ in range(2):
        world.poll.expired()
    check(world)
    assert world.poll.state in ENDS
    world.there.bring()
    await world.turns()
    check(world)
    assert world.memory.held == world.poll._places.held.grant.size == 0, "no memory is kept"
    await world.close()


@given(
    st.builds(
        Ask,
        here=st.integers(0, 2),
        there=st.integers(0, 2),
        wait_ms=st.sampled_from((0, LONG_MS)),
        min_bytes=st.sampled_from((1, 250)),
        has_limit=st.booleans(),
    ),
    st.lists(st.sampled_from(sorted(EVENTS)), max_size=25),
)
def test_whatever_happens_a_request_is_answered_once_or_abandoned_and_leaves_nothing_behind(
    ask: Ask, names: list[str]
) -> None:
    asyncio.run(follow(ask, names))
