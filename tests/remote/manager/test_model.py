"""Any order of appends, copies, faults, expirations and restarts: nothing is lost, and nothing is leaked."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.objects.memory import MemoryStore
from strandline.remote.manager.limits import ManagerLimits
from strandline.testing.clock import VirtualClock
from tests.log.harness import batch
from tests.remote.manager.world import SIZE, World, open_world
from tests.remote.manager.world import settings as topic_settings

Step: TypeAlias = tuple[str, int]

QUIET = (
    "fail put_file",
    "fail put",
    "fail delete",
    "lose put_file",
    "lose put",
    "lose delete",
    "fail topic",
    "lose topic",
)

steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 6)),
        st.tuples(st.just("roll"), st.just(0)),
        st.tuples(st.just("wait"), st.integers(1, 8)),
        st.tuples(st.sampled_from(QUIET), st.integers(1, 5)),
        st.tuples(st.just("retention"), st.integers(-1, 12)),
        st.tuples(st.just("local retention"), st.integers(0, 3)),
        st.tuples(st.just("delete records"), st.integers(0, 100)),
        st.tuples(st.just("copy disable"), st.integers(0, 1)),
        st.tuples(st.sampled_from(["restart", "crash", "new epoch", "forget snapshots"]), st.just(0)),
        st.tuples(st.sampled_from(["off and on", "off, unset and on"]), st.integers(0, 4)),
    ),
    min_size=4,
    max_size=30,
)


@dataclass
class Model:
    """What was appended, and how much of it may be deleted."""

    batches: list[bytes] = field(default_factory=list)
    deleted_up_to: int = 0
    least_retention: int | None = None

    def check_log_start(self, log_start: int) -> None:
        """Only as much is deleted as DeleteRecords and retention.bytes allow."""
        if log_start <= self.deleted_up_to:
            return
        assert self.least_retention is not None, f"the log starts at {log_start} without a reason"
        kept = sum(map(len, self.batches[log_start:]))
        assert kept >= self.least_retention, f"the log starts at {log_start}: only {kept} bytes are left"


@dataclass
class Scenario:
    """The world and the model side by side."""

    world: World
    model: Model = field(default_factory=Model)
    config: dict[str, object] = field(default_factory=dict)

    def append(self, count: int) -> None:
        for _ in range(count):
            data = bytearray(batch(value=b"%05d" % len(self.model.batches)))
            info = self.world.harness.append(memoryview(data), epoch=self.world.epoch)
            assert info.first_offset == len(self.model.batches)
            self.model.batches.append(bytes(data))

    def configure(self, **changes: object) -> None:
        self.config.update(changes)
        self.world.configure(**self.config)

    async def step(self, name: str, number: int) -> None:
        """One event of the script, while the manager is at work."""
        kind, _, detail = name.partition(" ")
        if kind in ("fail", "lose"):
            self.break_something(kind, detail, number)
        elif name == "append":
            self.append(number)
        elif name == "roll":
            self.world.log.roll()
        elif name == "wait":
            await self.world.pass_time(number)
        elif name == "delete records":
            self.delete_records(number)
        elif name.startswith("off"):
            await self.switch_off_and_on(number, is_unset="unset" in name)
        else:
            self.change_settings(name, number)

    def break_something(self, kind: str, what: str, times: int) -> None:
        world = self.world
        if what == "topic":
            world.topic.fail_next += times if kind == "fail" else 0
            world.topic.lose_next += times if kind == "lose" else 0
        elif kind == "fail":
            world.store.fail(what, times=times)
        else:
            world.store.lose_answer(what, times=times)

    def change_settings(self, name: str, number: int) -> None:
        model = self.model
        if name == "retention":
            size = -1 if number < 0 else number * SIZE
            self.configure(retention_bytes=size)
            if size >= 0:
                model.least_retention = size if model.least_retention is None else min(size, model.least_retention)
        elif name == "local retention":
            self.configure(local_retention_bytes=number * SIZE)
            self.world.log.retention.delete_old_segments(self.world.clock.now_ms())
        else:
            self.configure(remote_log_copy_disable=bool(number))

    def delete_records(self, percent: int) -> None:
        target = self.world.log.high_watermark * percent // 100
        self.world.log.delete_records(target)
        self.model.deleted_up_to = max(self.model.deleted_up_to, target)

    async def switch_off_and_on(self, seconds: int, *, is_unset: bool) -> None:
        """Everything remote may go, and what is local is the log from now on."""
        world, model = self.world, self.model
        self.configure(remote_storage_enable=False, remote_log_delete_on_disable=True)
        model.deleted_up_to = max(model.deleted_up_to, world.log.local_log_start_offset)
        if seconds:
            await world.pass_time(seconds)
        if is_unset:
            self.configure(remote_log_delete_on_disable=False)
            await world.pass_time(1)
        self.configure(remote_storage_enable=True, remote_log_delete_on_disable=False)

    async def heal(self) -> None:
        self.world.store.heal()
        self.world.topic.fail_next = self.world.topic.lose_next = 0
        self.configure(remote_log_copy_disable=False)
        await self.world.pass_time(3)
        await self.world.until_copied()

    async def check(self) -> None:
        await self.world.check_nothing_leaked()
        await self.world.check_nothing_lost(self.model.batches)
        self.model.check_log_start(self.world.log.log_start_offset)


def rounds(script: list[Step]) -> list[tuple[list[Step], str]]:
    """The script, cut at restarts: what happens, and how it ends."""
    cut: list[tuple[list[Step], str]] = [([], "")]
    for name, number in script:
        if name in ("restart", "crash", "new epoch", "forget snapshots"):
            cut[-1] = cut[-1][0], name
            cut.append(([], ""))
        else:
            cut[-1][0].append((name, number))
    return cut


@asynccontextmanager
async def scenario() -> AsyncIterator[Scenario]:
    limits = ManagerLimits(task_interval_ms=500, task_retry_backoff_ms=100, task_retry_backoff_max_ms=1000)
    with tempfile.TemporaryDirectory() as directory:
        async with open_world(
            Path(directory), MemoryStore(VirtualClock()), limits=limits, config=topic_settings()
        ) as world:
            world.create_log()
            yield Scenario(world)


@given(script=steps)
@settings(max_examples=40)
async def test_whatever_happens_nothing_is_lost_and_nothing_is_leaked(script: list[Step]) -> None:
    async with scenario() as played:
        world = played.world
        for events, end in rounds(script):
            async with world.running():
                await world.until_ready()
                for name, number in events:
                    await played.step(name, number)
                if not end:
                    await played.heal()
                    await played.check()
            restart(world, end)


def restart(world: World, end: str) -> None:
    if end == "restart":
        world.harness.reopen()
    elif end:
        world.harness.crash()
    if end == "new epoch":
        world.epoch += 1
    if end == "forget snapshots":
        world.forget_snapshots()
