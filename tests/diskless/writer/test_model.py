"""Clients with requests in flight, any order of uploads, any failure: what is acknowledged is there once and in order.

Idempotent clients behave as Kafka's do: at most five batches in flight for a partition; after an error nothing new is
sent until the others are answered, and then everything from the first batch that failed on is sent again.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from strandline.diskless.values import DisklessAppended
from strandline.diskless.writer import WriterLimits
from strandline.errors import InvalidProducerEpoch, StrandlineError
from strandline.model import TopicIdPartition
from strandline.objects import ObjectStoreError, ObjectStoreUnavailable
from strandline.records import read_header, read_records
from strandline.sql import IntegrityViolation, StoreUnavailable, TransactionConflict
from strandline.testing.clock import VirtualClock
from tests.diskless.writer.writing import P0, P1, World, batch, open_world
from tests.waiting import until

PARTITIONS = (P0, P1)
IN_FLIGHT = 5
BATCHES_EACH = 12

UPLOAD_FAILURES = {
    "refused": ObjectStoreError("refused"),
    "unavailable": ObjectStoreUnavailable("unavailable"),
}
COMMIT_FAILURES = {
    "conflict": TransactionConflict("conflict"),
    "unavailable": StoreUnavailable("unavailable"),
    "broken": IntegrityViolation("broken"),
}

Step: TypeAlias = tuple[str, int]

steps = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 3)),
        st.tuples(st.just("send loose"), st.integers(0, 1)),
        st.tuples(st.just("upload"), st.integers(0, 7)),
        st.tuples(st.sampled_from([f"upload {name}" for name in UPLOAD_FAILURES]), st.integers(0, 7)),
        st.tuples(st.sampled_from([f"commit {name}" for name in COMMIT_FAILURES]), st.just(0)),
        st.tuples(st.just("lose answer"), st.just(0)),
        st.tuples(st.just("lose upload"), st.just(0)),
        st.tuples(st.just("hold commits"), st.just(0)),
        st.tuples(st.just("let commits go"), st.just(0)),
        st.tuples(st.just("wait"), st.integers(1, 3)),
    ),
    min_size=5,
    max_size=60,
)


@dataclass
class Client:
    """One idempotent producer of one partition. A batch is known by its sequence number."""

    producer: int
    partition: TopicIdPartition
    size: int
    acknowledged: dict[int, int] = field(default_factory=dict)
    in_flight: set[int] = field(default_factory=set)
    next_sequence: int = 0
    resend_from: int | None = None

    def send(self, world: World) -> None:
        """Send as a client would, if it would."""
        if self.resend_from is not None:
            if self.in_flight:
                return
            self.next_sequence, self.resend_from = self.resend_from, None
        if len(self.in_flight) == IN_FLIGHT or self.next_sequence == BATCHES_EACH:
            return
        sequence, self.next_sequence = self.next_sequence, self.next_sequence + 1
        self.in_flight.add(sequence)
        one = batch(
            self.partition,
            producer=self.producer,
            sequence=sequence,
            value=b"%d/%d" % (self.producer, sequence) + b" " * self.size,
        )
        world.writer.append(one, lambda result: self.answered(sequence, result))

    def answered(self, sequence: int, result: DisklessAppended | StrandlineError) -> None:
        self.in_flight.remove(sequence)
        if isinstance(result, DisklessAppended):
            assert self.acknowledged.setdefault(sequence, result.base_offset) == result.base_offset
            return
        assert not isinstance(result, InvalidProducerEpoch)
        self.resend_from = sequence if self.resend_from is None else min(self.resend_from, sequence)

    @property
    def is_done(self) -> bool:
        return len(self.acknowledged) == BATCHES_EACH and not self.in_flight


@dataclass
class Loose:
    """Batches without a producer id. They are not sent again."""

    sent: int = 0
    acknowledged: dict[int, tuple[TopicIdPartition, int]] = field(default_factory=dict)
    answers: Counter[int] = field(default_factory=Counter)

    def send(self, world: World, partition: TopicIdPartition) -> None:
        number, self.sent = self.sent, self.sent + 1

        def done(result: DisklessAppended | StrandlineError) -> None:
            self.answers[number] += 1
            if isinstance(result, DisklessAppended):
                self.acknowledged[number] = partition, result.base_offset

        world.writer.append(batch(partition, value=b"loose/%d" % number), done)


@given(script=steps, patience=st.sampled_from([0.0, 30.0]), attempts=st.integers(1, 2))
async def test_whatever_fails_acknowledged_batches_are_there_once_and_in_order(
    script: list[Step], patience: float, attempts: int
) -> None:
    limits = WriterLimits(
        max_bytes=4000, max_pending_bytes=12_000, parallel_uploads=3, patience=patience, upload_attempts=attempts
    )
    clock = VirtualClock()
    with tempfile.TemporaryDirectory() as directory:
        async with open_world(Path(directory), limits=limits, clock=clock, objects_url="memory://") as world:
            world.store.is_held = True
            clients = [Client(i + 1, PARTITIONS[i % 2], 1200 * (i // 2)) for i in range(4)]
            loose = Loose()
            for name, number in script:
                await step(world, clock, clients, loose, name, number)
            await finish(world, clock, clients)
            await until(lambda: len(loose.answers) == loose.sent)
            await check(world, clients, loose)


async def step(world: World, clock: VirtualClock, clients: list[Client], loose: Loose, name: str, number: int) -> None:
    """One event of the script."""
    kind, _, detail = name.partition(" ")
    if name == "send loose":
        loose.send(world, PARTITIONS[number])
    elif kind == "send":
        clients[number].send(world)
    elif kind == "upload" and world.store.held:
        world.store.release(number % len(world.store.held), UPLOAD_FAILURES.get(detail))
    elif kind == "commit":
        world.held_commits.failures.append(COMMIT_FAILURES[detail])
    elif name == "lose upload":
        world.faults.lose_answer("put")
    elif kind == "lose":
        world.held_commits.lost_answers.append(StoreUnavailable("lost"))
    elif kind == "hold":
        world.held_commits.gate.clear()
    elif kind == "let":
        world.held_commits.gate.set()
    elif kind == "wait":
        await clock.advance(0.1 * number)
    await clock.settle()
    await until(lambda: not world.held_commits.is_busy, "the database")
    await clock.settle()


async def finish(world: World, clock: VirtualClock, clients: list[Client]) -> None:
    """There are no new troubles: every client gets its batches through."""
    world.held_commits.gate.set()

    def goes_on() -> bool:
        world.store.release_all()
        clock.move(0.05)
        for client in clients:
            client.send(world)
        return all(client.is_done for client in clients)

    await until(goes_on, "every client to be done")


async def check(world: World, clients: list[Client], loose: Loose) -> None:
    stored = {partition: await world.stored(partition) for partition in PARTITIONS}
    for partition in PARTITIONS:
        texts = [value_of(data) for _, data in stored[partition]]
        offsets = [offset for offset, _ in stored[partition]]
        assert offsets == list(range(len(offsets)))
        assert await world.high_watermark(partition) == len(offsets)
        for client in clients:
            if client.partition == partition:
                own = [
                    (text, offset)
                    for text, offset in zip(texts, offsets, strict=True)
                    if text.startswith(b"%d/" % client.producer)
                ]
                assert [text for text, _ in own] == [b"%d/%d" % (client.producer, i) for i in range(BATCHES_EACH)]
                assert dict(enumerate(offset for _, offset in own)) == client.acknowledged
    seen = Counter((partition, value_of(data)) for partition in PARTITIONS for _, data in stored[partition])
    assert max(seen.values()) == 1
    for number, (partition, offset) in loose.acknowledged.items():
        assert value_of(stored[partition][offset][1]) == b"loose/%d" % number
    assert set(loose.answers.values()) <= {1}
    told = {(block.partition, block.base_offset): block for block in world.readers.blocks}
    for (partition, _), block in told.items():
        offset = block.base_offset
        for data in block.batches:
            assert read_header(data).base_offset == offset
            assert value_of(bytes(data)) == value_of(stored[partition][offset][1])
            offset += 1
        assert offset == block.last_offset + 1


def value_of(data: bytes) -> bytes:
    (record,) = read_records(data)
    assert record.value is not None
    return bytes(record.value).rstrip()
