"""Which processes are taken for dead: the rule by itself, case by case and in any history of looks."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from strandline.metadata.controller.deaths import CONFIRM_SECONDS, SILENT_SECONDS, Deaths, LocksSeen, Sign

ONE, TWO = UUID(int=1), UUID(int=2)
WATCHED = {ONE: 1, TWO: 2}
STEP = 0.25
assert CONFIRM_SECONDS < STEP


class Looks:
    """Looks at two processes, STEP seconds one after the other."""

    def __init__(self) -> None:
        self.deaths = Deaths()
        self.now, self.view = 0.0, 0
        self.heard: dict[int, float] = {}
        self.look(alive=(ONE, TWO))

    def look(
        self, *, alive: tuple[UUID, ...] = (), named: tuple[UUID, ...] = (), sign: Sign = Sign.SILENT
    ) -> frozenset[UUID]:
        """The dead after a look, and after asking the suspects."""
        self.now += STEP
        seen = LocksSeen(self.view, set(alive), {*alive, *named})
        self.deaths.looked(self.now, seen, WATCHED, lambda node, since: self.heard.get(node, -1.0) > since)
        for process in self.deaths.suspects:
            self.deaths.asked(process, sign)
        return self.deaths.dead


def test_a_free_lock_in_two_looks_and_a_refused_connection_are_a_death() -> None:
    looks = Looks()
    assert looks.look(alive=(TWO,), sign=Sign.REFUSED) == frozenset()
    assert looks.look(alive=(TWO,), sign=Sign.REFUSED) == {ONE}
    assert looks.look(alive=(TWO,), sign=Sign.REFUSED) == {ONE}, "it stays dead"


def test_two_looks_too_soon_after_each_other_are_one() -> None:
    looks = Looks()
    looks.look(alive=(TWO,), sign=Sign.REFUSED)
    looks.now -= STEP
    assert looks.look(alive=(TWO,), sign=Sign.REFUSED) == frozenset()


def test_a_broker_that_answers_lives_however_often_its_lock_is_free() -> None:
    looks = Looks()
    for _ in range(100):
        assert looks.look(alive=(TWO,), sign=Sign.ANSWERED) == frozenset()


def test_a_heartbeat_is_a_word_as_well() -> None:
    looks = Looks()
    looks.look(alive=(TWO,), sign=Sign.REFUSED)
    looks.heard[1] = looks.now + 0.01
    assert looks.look(alive=(TWO,), sign=Sign.REFUSED) == frozenset()
    assert looks.look(alive=(TWO,), sign=Sign.REFUSED) == frozenset(), "a new absence began"
    assert looks.look(alive=(TWO,), sign=Sign.REFUSED) == {ONE}, "the heartbeat was from before it"


def test_a_broker_that_says_nothing_has_longer_than_a_session_needs_to_be_opened_again() -> None:
    looks = Looks()
    for _ in range(int(SILENT_SECONDS / STEP)):
        assert looks.look(alive=(TWO,)) == frozenset()
    assert looks.look(alive=(TWO,)) == {ONE}


def test_a_restart_of_the_database_frees_all_locks_and_kills_nobody() -> None:
    looks = Looks()
    looks.look(sign=Sign.REFUSED)
    looks.view += 1  # our own session was renewed as well: the look before was at another history
    assert looks.look(sign=Sign.REFUSED) == frozenset()
    assert looks.look(alive=(ONE,), sign=Sign.REFUSED) == {TWO}, "which has really died meanwhile"


def test_looks_before_and_after_one_that_failed_are_not_two_in_a_row() -> None:
    looks = Looks()
    looks.look(alive=(TWO,), sign=Sign.REFUSED)
    looks.deaths.nothing_seen()
    assert looks.look(alive=(TWO,), sign=Sign.REFUSED) == frozenset()


def test_a_name_that_a_later_process_has_taken_is_a_death_whatever_answers_at_the_address() -> None:
    looks = Looks()
    looks.look(alive=(TWO,), named=(ONE,))
    assert looks.look(alive=(TWO,), named=(ONE,)) == {ONE}


def test_a_broker_of_an_earlier_version_has_only_the_lock_of_its_name() -> None:
    looks = Looks()
    looks.deaths = Deaths()
    for _ in range(100):
        assert looks.look(alive=(TWO,), named=(ONE,), sign=Sign.REFUSED) == frozenset()
    looks.look(alive=(TWO,), sign=Sign.REFUSED)
    assert looks.look(alive=(TWO,), sign=Sign.REFUSED) == {ONE}


def test_what_is_not_watched_any_more_is_forgotten() -> None:
    looks = Looks()
    for _ in range(2):
        looks.look(alive=(TWO,), sign=Sign.REFUSED)
    looks.deaths.looked(looks.now, LocksSeen(0, {TWO}, {TWO}), {TWO: 2}, lambda _node, _since: False)
    assert looks.deaths.dead == frozenset()


@dataclass
class _Process:
    node_id: int
    lives: bool = True
    is_suspended: bool = False
    was_suspended: bool = False
    has_lock: bool = True


class DeathsAgainstProcesses(RuleBasedStateMachine):
    """Processes that live and lose their sessions now and then are never taken for dead; those that died always are.

    A suspended process keeps its session until the server is restarted. If that happens, it is silent and has no lock,
    as a dead one; then it may be taken for dead.
    """

    def __init__(self) -> None:
        super().__init__()
        self.deaths = Deaths()
        self.processes = {ONE: _Process(1), TWO: _Process(2)}
        self.now, self.view = 0.0, 0
        self.heard: dict[int, float] = {}

    @rule(seconds=st.floats(0.01, 3.0))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(process=st.sampled_from([ONE, TWO]))
    def die(self, process: UUID) -> None:
        self.processes[process].lives = self.processes[process].has_lock = False

    @rule(process=st.sampled_from([ONE, TWO]))
    def lose_session(self, process: UUID) -> None:
        self.processes[process].has_lock = False

    @rule(process=st.sampled_from([ONE, TWO]))
    def take_lock_again(self, process: UUID) -> None:
        one = self.processes[process]
        one.has_lock = one.has_lock or (one.lives and not one.is_suspended)

    @rule(process=st.sampled_from([ONE, TWO]), is_suspended=st.booleans())
    def suspend(self, process: UUID, is_suspended: bool) -> None:
        one = self.processes[process]
        one.is_suspended = is_suspended
        one.was_suspended |= is_suspended

    @rule()
    def restart_database(self) -> None:
        self.view += 1
        for one in self.processes.values():
            one.has_lock = False

    @rule(process=st.sampled_from([ONE, TWO]))
    def heartbeat(self, process: UUID) -> None:
        one = self.processes[process]
        if one.lives and not one.is_suspended:
            self.heard[one.node_id] = self.now

    @rule()
    def look(self) -> None:
        alive = {process for process, one in self.processes.items() if one.has_lock}
        look = LocksSeen(self.view, alive, alive)
        self.deaths.looked(self.now, look, WATCHED, lambda node, since: self.heard.get(node, -1.0) > since)
        for process in self.deaths.suspects:
            one = self.processes[process]
            answer = Sign.SILENT if one.is_suspended else Sign.ANSWERED
            self.deaths.asked(process, answer if one.lives else Sign.REFUSED)

    @rule()
    def look_for_long(self) -> None:
        for _ in range(3):
            self.look()
            self.now += STEP
        for process, one in self.processes.items():
            assert one.lives or process in self.deaths.dead

    @invariant()
    def the_living_are_not_dead(self) -> None:
        for process in self.deaths.dead:
            one = self.processes[process]
            assert not one.lives or one.was_suspended


TestDeathsAgainstProcesses = DeathsAgainstProcesses.TestCase
