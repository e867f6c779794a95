"""Every move that the switch of a partition can make, and what it makes of the log, of clients and of what is known."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline.controlplane.values import DisklessLog, MigrationState
from strandline.errors import KafkaStorageError, RequestTimedOut, StrandlineError
from strandline.hybrid.partition import ServedPartition
from strandline.hybrid.partitions import Classic
from strandline.hybrid.parts.diskless import DisklessPart
from strandline.hybrid.parts.prefix_here import PrefixHere
from strandline.hybrid.parts.replica import ReplicaPart
from strandline.hybrid.parts.unsettled import UnsettledPart
from strandline.hybrid.remote.topics import TieredTopics
from strandline.hybrid.switching.describing import describe
from strandline.hybrid.switching.stages import MOVES, PENDING, Stage, SwitchedParts, WhileDraining, WhileSealed
from strandline.hybrid.switching.status import MigrationPhase
from strandline.hybrid.switching.switch import PartitionSwitch
from strandline.log import AppendOrigin, LogAppendInfo
from strandline.model import NO_TIMESTAMP, TopicIdPartition
from strandline.replication import Append, Appended, Partition
from tests.replication.conftest import TOPIC_ID, TP, Fixture, batch, fixture, image
from tests.replication.test_partition import values_in

__all__ = ["fixture"]

BOUNDARY: Final = 3
PLANE_LOG: Final = DisklessLog(
    partition=TopicIdPartition(TOPIC_ID, TP),
    log_start_offset=0,
    high_watermark=BOUNDARY,
    diskless_start_offset=BOUNDARY,
    diskless_log_start_offset=BOUNDARY,
    diskless_log_start_epoch=0,
    migration_state=MigrationState.MIGRATING,
    last_epoch=0,
)


class BehindTheBoundary:
    """What a switch asks of both parts, and of what serves them. Every append is done at once."""

    end = BOUNDARY
    problem = ""

    def __init__(self) -> None:
        self.appended: list[bytes] = []
        self.served = object()

    @property
    def parts(self) -> SwitchedParts:
        return SwitchedParts(cast(PrefixHere, self), cast(DisklessPart, self), cast(ServedPartition, self.served))

    @property
    def appends(self) -> BehindTheBoundary:
        return self

    def append(self, append: Append) -> Appended:
        records = append.records
        self.appended.append(bytes(records))
        info = LogAppendInfo(
            BOUNDARY, BOUNDARY, NO_TIMESTAMP, 0, is_duplicate=False, size=len(records), max_timestamp=NO_TIMESTAMP
        )
        return Appended(info, is_done=True)


class Event(NamedTuple):
    """Something that happens to a switch, at a time, and the stage that it is at afterwards."""

    to: Stage
    happens: Callable[[PartitionSwitch, float, BehindTheBoundary], object]


EVENTS: Final = {
    "another leader epoch": Event(Stage.UNKNOWN, lambda switch, *_: switch.epoch_began()),
    "no setting": Event(Stage.RELEASED, lambda switch, *_: switch.released()),
    "no boundary": Event(Stage.CLASSIC, lambda switch, *_: switch.no_boundary()),
    "others first": Event(Stage.WAITING, lambda switch, *_: switch.others_come_first()),
    "transactions": Event(Stage.DRAINING, lambda switch, *_: switch.transactions_open(frozenset({7}), "Open.")),
    "sealed": Event(Stage.SEALED, lambda switch, now, _: switch.sealed(now)),
    "stepped back": Event(Stage.STEPPED_BACK, lambda switch, *_: switch.stepped_back("Not now.")),
    "refused": Event(Stage.UNKNOWN, lambda switch, *_: switch.boundary_refused("Another epoch.")),
    "boundary": Event(Stage.BOUNDARY_KNOWN, lambda switch, *_: switch.boundary_known(PLANE_LOG)),
    "joined": Event(Stage.SWITCHED, lambda switch, _, behind: switch.joined(behind.parts)),
    "copied": Event(Stage.SWITCHED, lambda switch, *_: switch.prefix_compared(None, is_copying=False, problem="")),
    "lost": Event(Stage.UNKNOWN, lambda switch, *_: switch.boundary_lost()),
}
# How each stage is reached from the first one.
WAYS: Final[dict[Stage, tuple[str, ...]]] = {
    Stage.CLASSIC: (),
    Stage.UNKNOWN: ("another leader epoch",),
    Stage.WAITING: ("others first",),
    Stage.DRAINING: ("transactions",),
    Stage.SEALED: ("sealed",),
    Stage.STEPPED_BACK: ("sealed", "stepped back"),
    Stage.BOUNDARY_KNOWN: ("sealed", "boundary"),
    Stage.SWITCHED: ("sealed", "boundary", "joined"),
    Stage.RELEASED: ("no setting",),
}


def led(made: Fixture) -> PartitionSwitch:
    """Of a partition that this broker leads, and serves as a classic one."""
    replica = made.partition()
    replica.follow(image(epoch=3))
    part = ReplicaPart(replica, TieredTopics())
    return PartitionSwitch(Classic(part, ServedPartition(part)))


def at(made: Fixture, stage: Stage) -> PartitionSwitch:
    switch = led(made)
    for name in WAYS[stage]:
        EVENTS[name].happens(switch, 1.0, BehindTheBoundary())
    assert switch.stage is stage
    return switch


@pytest.mark.parametrize("stage", Stage)
async def test_events_lead_exactly_to_the_stages_of_the_table(fixture: Fixture, stage: Stage) -> None:
    reached = set()
    for event in EVENTS.values():
        switch = at(fixture, stage)
        before = switch.at, switch.epoch, switch.log, switch.problem, switch.replica.is_sealed
        try:
            event.happens(switch, 2.0, BehindTheBoundary())
        except RuntimeError:
            assert (switch.at, switch.epoch, switch.log, switch.problem, switch.replica.is_sealed) == before
        else:
            assert switch.stage is event.to
            reached.add(event.to)
    assert reached == MOVES[stage]


def test_every_crash_is_survived() -> None:
    """A broker that starts knows nothing, and then what the control plane has: whatever it was about to do."""
    assert all(Stage.UNKNOWN in MOVES[stage] for stage in Stage if stage is not Stage.RELEASED)
    assert MOVES[Stage.UNKNOWN] >= {Stage.UNKNOWN, Stage.CLASSIC, Stage.BOUNDARY_KNOWN}
    assert Stage.SEALED in MOVES[Stage.SEALED], "an answer may be lost"


class Client:
    """Sends batches to a replica, each once, and counts their answers."""

    def __init__(self, replica: Partition) -> None:
        self._replica = replica
        self.sent, self.refused = 0, 0
        self.answers: list[int] = []

    def send(self) -> None:
        number, records = self.sent, batch(b"%d" % self.sent)
        self.sent += 1
        self.answers.append(0)

        def done(error: StrandlineError | None) -> None:
            self.answers[number] += 1
            self.refused += error is not None

        try:
            appended = self._replica.append(Append(records, acks=-1, origin=AppendOrigin.CLIENT, done=done))
        except RequestTimedOut:
            self.answers[number] += 1
            self.refused += 1
        else:
            self.answers[number] += appended.is_done


@contextmanager
def opened() -> Iterator[Fixture]:
    with TemporaryDirectory() as directory:
        made = Fixture(Path(directory))
        try:
            yield made
        finally:
            made.writer.close()
            made.logs.shutdown()


async def follow(names: Sequence[str]) -> None:
    """Let these things happen, those that are legal, while a client writes."""
    with opened() as made:
        switch, behind = led(made), BehindTheBoundary()
        client, sealed_at, is_sealed = Client(switch.replica), None, False
        for number, name in enumerate(names):
            event, before, now = EVENTS[name], switch.stage, float(number)
            client.send()
            is_legal = event.to in MOVES[before] and (name != "copied" or before is Stage.SWITCHED)
            if not is_legal:
                with pytest.raises(RuntimeError, match=r"cannot go from|has no prefix"):
                    event.happens(switch, now, behind)
                assert switch.stage is before
                continue
            since = event.happens(switch, now, behind)
            assert switch.stage is event.to
            if event.to is Stage.SEALED and sealed_at is None:
                sealed_at = now
            if name == "joined":
                assert since == sealed_at, "writers were shut out since then"
            if event.to not in {Stage.SEALED, Stage.UNKNOWN, Stage.BOUNDARY_KNOWN}:
                sealed_at = None
            if event.to in {Stage.SEALED, Stage.UNKNOWN, Stage.SWITCHED}:
                is_sealed = True
            elif event.to is not Stage.BOUNDARY_KNOWN:
                is_sealed = False
            check(switch, is_sealed=is_sealed, sealed_at=sealed_at, behind=behind)
        held = client.answers.count(0)
        written = len(values_in(switch.replica))
        assert client.sent == written + len(behind.appended) + client.refused + held
        assert set(client.answers) <= {0, 1}
        assert not held or switch.stage in {Stage.SEALED, Stage.BOUNDARY_KNOWN}
        assert [int(value) for value in values_in(switch.replica)] == sorted(map(int, values_in(switch.replica)))


def check(switch: PartitionSwitch, *, is_sealed: bool, sealed_at: float | None, behind: BehindTheBoundary) -> None:
    assert switch.replica.is_sealed == is_sealed
    if isinstance(switch.at, WhileSealed):
        assert switch.at.sealed_at == sealed_at
    match switch.stage:
        case Stage.SWITCHED:
            served: object = behind.served
        case Stage.UNKNOWN | Stage.BOUNDARY_KNOWN:
            assert isinstance(switch.served.newest, UnsettledPart)
            served = switch.served
        case _:
            served = switch.classic.served
            assert not is_sealed or switch.stage is Stage.SEALED
    assert switch.served is served
    assert switch.is_pending == (switch.stage in PENDING)
    assert switch.boundary == (BOUNDARY if switch.stage is Stage.SWITCHED else -1)


@given(st.lists(st.sampled_from(sorted(EVENTS)), max_size=30))
def test_a_log_takes_records_only_at_stages_that_serve_it_and_no_append_is_lost_or_answered_twice(
    names: list[str],
) -> None:
    asyncio.run(follow(names))


# What belongs to a stage


async def test_holders_are_named_while_the_partition_drains(fixture: Fixture) -> None:
    switch = at(fixture, Stage.DRAINING)
    assert describe(switch).held_by == (7,)
    switch.refuse_transactions(2.0)
    assert switch.at == WhileDraining()
    switch.transactions_open(frozenset({8}), "Open.")
    switch.let_transactions_begin()
    assert describe(switch).held_by == ()
    switch.transactions_open(frozenset({9}), "Open.")
    switch.sealed(1.0)
    assert describe(switch).held_by == ()


async def test_phases_are_those_of_the_stages(fixture: Fixture) -> None:
    phases = {stage: describe(at(fixture, stage)).phase for stage in Stage if stage is not Stage.SWITCHED}
    assert {stage: phase for stage, phase in phases.items() if phase is not None} == {
        Stage.WAITING: MigrationPhase.WAITING,
        Stage.DRAINING: MigrationPhase.DRAINING_TRANSACTIONS,
        Stage.SEALED: MigrationPhase.SEALING,
        Stage.STEPPED_BACK: MigrationPhase.SEALING,
    }


async def test_why_nothing_is_served_is_told_as_long_as_nothing_is(fixture: Fixture) -> None:
    switch = at(fixture, Stage.UNKNOWN)
    switch.not_answered(RequestTimedOut("The database is away."))
    assert switch.problem == "The database is away."
    switch.boundary_known(PLANE_LOG)
    switch.store_closed(KafkaStorageError("The object store is away."))
    assert switch.problem == "The object store is away."
    switch.joined(BehindTheBoundary().parts)
    assert switch.problem == ""


async def test_a_released_partition_is_settled_as_a_classic_one(fixture: Fixture) -> None:
    switch = at(fixture, Stage.UNKNOWN)
    switch.released()
    assert switch.classic.part.settled_epoch == switch.replica.leader_epoch == 3


async def test_an_epoch_that_begins_is_the_one_in_which_the_stage_holds(fixture: Fixture) -> None:
    switch = at(fixture, Stage.SEALED)
    switch.replica.follow(image(epoch=4, version=1))
    assert switch.epoch == 3
    switch.epoch_began()
    assert switch.epoch == 4


# One writer


async def test_nothing_of_a_switch_can_be_assigned(fixture: Fixture) -> None:
    switch = led(fixture)
    names = [name for name in dir(PartitionSwitch) if isinstance(getattr(PartitionSwitch, name), property)]
    assert len(names) > 10
    for name in names:
        with pytest.raises(AttributeError):
            setattr(switch, name, None)


def test_no_other_module_assigns_what_is_inside_a_switch() -> None:
    (root,) = strandline.__path__
    inside = set(PartitionSwitch.__slots__) - {"__weakref__"}
    found = [
        f"{module.name}:{target.lineno} {ast.unparse(target)}"
        for module in Path(root).rglob("*.py")
        for target in assigned(ast.parse(module.read_text()))
        if target.attr in inside and not (isinstance(target.value, ast.Name) and target.value.id == "self")
    ]
    assert found == []


def assigned(tree: ast.AST) -> Iterator[ast.Attribute]:
    """The attributes that a module assigns or deletes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node
