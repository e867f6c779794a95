"""One run: a cluster is made, used and broken, then healed; in the end every replica has to be the same."""

from __future__ import annotations

import asyncio
import gc
import shutil
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from simulation.clients import Producer
from simulation.faults import Faults
from simulation.loop import VirtualLoop
from simulation.scenario import Scenario
from simulation.truth import Violation, batches
from simulation.world import TOPIC, TOPIC_ID, World
from strandline.records import iter_headers, read_records
from strandline.replication import ACKS_ALL

_SECONDS_TO_HEAL = 60.0
_MEMORY = Path("/dev/shm")


class Outcome(NamedTuple):
    """What has become of a run."""

    seed: int
    violation: str
    """Empty if there was none."""
    digest: str
    trace: tuple[str, ...]
    virtual_seconds: float
    messages: int
    acknowledged: int
    elections: int


def run(scenario: Scenario, *, directory: Path | None = None) -> Outcome:
    """Run a scenario. The logs lie in memory, and are gone afterwards unless a directory is given."""
    kept = directory is not None
    root = directory or Path(
        tempfile.mkdtemp(prefix="strandline-simulation-", dir=_MEMORY if _MEMORY.is_dir() else None)
    )
    root.mkdir(parents=True, exist_ok=True)
    try:
        return _Run(scenario, root.resolve()).outcome()
    finally:
        if not kept:
            shutil.rmtree(root, ignore_errors=True)
        gc.collect(1)


def _sentence(failure: BaseException) -> str:
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    if isinstance(failure, Violation):
        return str(failure)
    where = "".join(traceback.format_exception(failure)[-4:])
    return f"{type(failure).__name__}: {failure}\n{where}"


class _Run:
    def __init__(self, scenario: Scenario, root: Path) -> None:
        self._scenario, self._root = scenario, root
        self._loop = VirtualLoop()
        self._failure: BaseException | None = None

    def outcome(self) -> Outcome:
        loop = self._loop
        asyncio.set_event_loop(None)
        world = World(self._scenario, self._root, loop)
        loop.set_exception_handler(self._failed)
        violation = ""
        acknowledged = 0
        try:
            with world.disks.installed():
                main = loop.create_task(self._main(world))
                main.add_done_callback(lambda _: loop.stop())
                loop.run_forever()
                failure = self._failure or world.violation
                if failure is not None:
                    raise failure
                acknowledged = main.result()
        except Exception as failure:  # noqa: BLE001  (whatever fails is found)
            violation = _sentence(failure)
        finally:
            with suppress(Exception):
                self._end(world)
        world.tell(violation or "done")
        return Outcome(
            seed=self._scenario.seed,
            violation=violation,
            digest=world.digest,
            trace=tuple(world.trace),
            virtual_seconds=loop.time(),
            messages=world.network.messages,
            acknowledged=acknowledged,
            elections=sum(one.leader_epoch for one in world.partitions()),
        )

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None and self._failure is None:
            self._failure = error
            loop.stop()

    def _end(self, world: World) -> None:
        loop = self._loop
        loop.set_exception_handler(lambda *_: None)
        for process in tuple(world.running()):
            process.kill(is_silent=True)
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.close()

    async def _main(self, world: World) -> int:
        scenario = self._scenario
        for node in world.machines:
            world.start(node)
        while not all(process.is_serving for process in world.running()):  # noqa: ASYNC110  (time costs nothing here)
            await asyncio.sleep(0.1)
        nodes = sorted(world.machines)
        assignments = [
            [nodes[(number + at) % len(nodes)] for at in range(scenario.replicas)]
            for number in range(scenario.partitions)
        ]
        world.controller.create_topic(TOPIC, TOPIC_ID, assignments, **scenario.topic_config)
        producers = [
            Producer(world, 3 * number + kind + 1, number, acks=acks, is_idempotent=is_idempotent)
            for number in range(scenario.partitions)
            for kind, (acks, is_idempotent) in enumerate(((ACKS_ALL, True), (ACKS_ALL, False), (1, False)))
        ]
        faults = Faults(world)
        async with asyncio.TaskGroup() as tasks:
            ticking = tasks.create_task(world.tick())
            producing = [tasks.create_task(producer.run()) for producer in producers]
            await faults.run(scenario.steps)
            await faults.heal_all()
            for producer in producers:
                producer.is_over = True
            await self._settled(world, producing)
            ticking.cancel()
        self._check_end(world)
        return sum(producer.acknowledged for producer in producers)

    async def _settled(self, world: World, producing: list[asyncio.Task[None]]) -> None:
        deadline = world.loop.time() + _SECONDS_TO_HEAL
        while why := self._why_not_settled(world, producing):
            if world.loop.time() > deadline:
                raise Violation(f"stuck: {_SECONDS_TO_HEAL:g} s after everything was healed, {why}")
            await asyncio.sleep(0.2)
            for node, machine in world.machines.items():
                if not machine.is_running:
                    world.start(node)
            if world.scenario.may_lose_data:
                Faults(world)._elect_uncleanly()

    def _why_not_settled(self, world: World, producing: list[asyncio.Task[None]]) -> str:
        for image in world.partitions():
            name = f"{TOPIC}-{image.partition}"
            if set(image.isr) != set(image.replicas):
                return f"in sync of {name} are {image.isr} of {image.replicas}, its leader is {image.leader}"
            leader = world.machines[image.leader].process
            led = None if leader is None else leader.partition(TOPIC, image.partition)
            if led is None or not led.is_leader:
                return f"broker {image.leader} does not lead {name}"
            for node in image.replicas:
                process = world.machines[node].process
                partition = None if process is None else process.partition(TOPIC, image.partition)
                if partition is None or partition.log.log_end_offset != led.log.log_end_offset:
                    return f"broker {node} has not all of {name}"
                if partition.log.log_start_offset < led.log.log_start_offset:
                    return f"broker {node} does not know where {name} starts"
                if partition.log.high_watermark != led.log.log_end_offset:
                    return f"broker {node} does not know that all of {name} is replicated"
        if not all(task.done() for task in producing):
            return "a producer waits"
        return ""

    def _check_end(self, world: World) -> None:
        for image in world.partitions():
            truth = world.truths[image.partition]
            logs = {}
            for node in image.replicas:
                process = world.machines[node].process
                partition = None if process is None else process.partition(TOPIC, image.partition)
                assert partition is not None
                truth.check(f"broker {node}", partition.log)
                logs[node] = partition.log
            start = max(log.log_start_offset for log in logs.values())
            contents = {
                node: [one for one in batches(log, start, log.log_end_offset) if one.first >= start]
                for node, log in logs.items()
            }
            first = next(iter(contents.values()))
            for node, content in contents.items():
                if content != first:
                    raise Violation(f"{truth.name}: the log of broker {node} differs from that of another replica")
            self._check_values(truth.name, b"".join(batch.data for batch in first))

    def _check_values(self, name: str, data: bytes) -> None:
        """No record is there twice, and those of an idempotent producer are in order."""
        if self._scenario.may_lose_data:
            return
        last: dict[int, int] = {}
        seen: set[bytes] = set()
        for position, header in iter_headers(data):
            for record in read_records(memoryview(data)[position : position + header.size]):
                value = bytes(record.value or b"")
                if value in seen:
                    raise Violation(f"{name}: {value!r} is there twice")
                seen.add(value)
                if header.producer_id >= 0:
                    number = int(value.split(b":")[1].split(b";")[0])
                    if number <= last.get(header.producer_id, 0):
                        raise Violation(f"{name}: records of producer {header.producer_id} are out of order: {value!r}")
                    last[header.producer_id] = number
