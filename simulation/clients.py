"""Producers. They learn of leaders late, try again, and remember what they were told."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final

from simulation.process import BrokerProcess
from simulation.truth import Violation
from simulation.world import TOPIC, World
from strandline.errors import (
    OutOfOrderSequence,
    RequestTimedOut,
    StrandlineError,
    UnknownTopicOrPartition,
)
from strandline.log import AppendOrigin
from strandline.records import Record, build_batch
from strandline.replication import ACKS_ALL, Append

_PATIENCE: Final = 0.8
_NAME: Final = "clients"

Result = tuple[StrandlineError | None, int]


class Producer:
    """Sends batch after batch to one partition. An idempotent one repeats a batch until it is acknowledged."""

    def __init__(self, world: World, number: int, partition: int, *, acks: int, is_idempotent: bool) -> None:
        self._world, self._number, self._partition = world, number, partition
        self._acks, self._is_idempotent = acks, is_idempotent
        self._chance = random.Random(f"{world.seed}/producer/{number}")
        self._sequence = self._count = 0
        self._target = self._asked = 0
        self.is_over = False
        self.sent = self.acknowledged = 0

    async def run(self) -> None:
        """Produce until told that it is over."""
        chance = self._chance
        while not self.is_over:
            await asyncio.sleep(0.3 * chance.random() ** 2)
            if not self.is_over:
                await self._send_one()

    def _values(self) -> list[bytes]:
        chance = self._chance
        size = 300 if chance.random() < 0.1 else 10
        count = 1 if chance.random() < 0.7 else 3
        values = []
        for _ in range(count):
            self._count += 1
            values.append(f"p{self._number}:{self._count};".encode().ljust(size, b"."))
        return values

    async def _send_one(self) -> None:
        values = self._values()
        now = self._world.clock.now_ms()
        records = [Record(at, now, None, value) for at, value in enumerate(values)]
        batch = build_batch(
            records,
            producer_id=self._number if self._is_idempotent else -1,
            producer_epoch=0 if self._is_idempotent else -1,
            base_sequence=self._sequence if self._is_idempotent else -1,
        )
        self._sequence += len(values)
        self.sent += 1
        while True:
            error, offset = await self._attempt(bytes(batch))
            if error is None:
                self.acknowledged += 1
                self._told(offset, values)
                return
            if not self._is_idempotent:
                return
            self._look_at(error)
            if self.is_over and not error.retriable:
                return
            await asyncio.sleep(0.02 + 0.1 * self._chance.random())

    def _told(self, offset: int, values: list[bytes]) -> None:
        world = self._world
        if self._acks == ACKS_ALL and not world.scenario.may_lose_data:
            truth = world.truths[self._partition]
            truth.acknowledge(offset, values[0])

    def _look_at(self, error: StrandlineError) -> None:
        """A producer that has lost nothing must not be told that it has, unless by a leader that is none any more."""
        world, image = self._world, self._world.partitions()[self._partition]
        if isinstance(error, OutOfOrderSequence) and self._asked == image.leader and not world.scenario.may_lose_data:
            raise Violation(f"producer {self._number} is refused: {error}")

    async def _attempt(self, batch: bytes) -> Result:
        world = self._world
        leader = world.partitions()[self._partition].leader
        if leader > 0 and self._chance.random() < 0.9:
            self._target = leader
        target = self._asked = self._target if self._target > 0 else self._chance.choice(sorted(world.machines))

        def work(reply: Callable[[Result], None]) -> None:
            process = world.machines[target].process
            if process is not None and process.is_alive and process.is_serving:
                produce(process, self._partition, batch, self._acks, reply)

        try:
            return await world.network.ask(_NAME, f"broker-{target}", work, _PATIENCE)
        except RequestTimedOut as error:
            self._target = 0
            return error, -1


def produce(process: BrokerProcess, number: int, batch: bytes, acks: int, reply: Callable[[Result], None]) -> None:
    """What the handler of Produce does. An answer that the producer does not get in time is none."""
    first = -1

    def done(error: StrandlineError | None) -> None:
        reply((error, first))

    partition = process.partition(TOPIC, number)
    if partition is None:
        reply((UnknownTopicOrPartition("not here"), -1))
        return
    try:
        appended = partition.append(
            Append(memoryview(bytearray(batch)), acks=acks, origin=AppendOrigin.CLIENT, done=done)
        )
    except StrandlineError as error:
        reply((error, -1))
        return
    first = appended.info.first_offset
    if appended.is_done:
        done(None)
