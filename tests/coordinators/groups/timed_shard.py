"""A shard, its log and its clock: writes wait until a test says how they end, and time passes when it says so."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from strandline.coordinators.groups.shard import GroupShard
from strandline.coordinators.runtime import (
    KeyValue,
    ReadBatch,
    ReadRecord,
    Timers,
    TransactionEnd,
    WriteDone,
    WriteResult,
    write_size,
)
from strandline.errors import MessageTooLarge, NotEnoughReplicas
from strandline.model import INT32_MAX, ProducerAndEpoch
from strandline.testing.clock import VirtualClock


class Log:
    """A sink whose writes wait until the machine says how they end."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[Sequence[KeyValue], WriteDone]] = deque()
        self.records: list[KeyValue] = []
        self.has_failed = False
        self.limit = INT32_MAX

    def max_write_bytes(self) -> int:
        return self.limit

    def write(self, records: Sequence[KeyValue], done: WriteDone) -> None:
        self.waiting.append((records, done))

    def write_now(self, records: Sequence[KeyValue]) -> WriteResult | None:
        return None

    def write_transactional(self, records: Sequence[KeyValue], producer: ProducerAndEpoch, done: WriteDone) -> None:
        raise AssertionError("no transaction is part of this model")

    def write_marker(self, end: TransactionEnd, done: WriteDone) -> None:
        raise AssertionError("no transaction is part of this model")

    def has_transaction(self, producer: ProducerAndEpoch) -> bool:
        raise AssertionError("no transaction is part of this model")

    def finish_one(self, *, accept: bool) -> None:
        records, done = self.waiting.popleft()
        if write_size(records) > self.limit:
            done(WriteResult(MessageTooLarge(f"{write_size(records)} bytes do not fit into {self.limit}.")))
        elif accept or not records:
            base = len(self.records)
            self.records += records
            done(WriteResult(None, base))
        else:
            self.has_failed = True
            done(WriteResult(NotEnoughReplicas("told to fail")))


@dataclass(eq=False)
class Call:
    """A request that has to be answered exactly once."""

    answers: list[Any] = field(default_factory=list)

    def __call__(self, response: Any) -> None:
        self.answers.append(response)
        assert len(self.answers) == 1, "a request was answered twice"


class TimedShard(ABC):
    """A world around one shard. `settle` is what happens to writes between two timers."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.timers = Timers(self.clock)
        self.log = Log()

    @abstractmethod
    def new_shard(self) -> GroupShard: ...

    @abstractmethod
    def settle(self) -> None: ...

    def replayed(self) -> GroupShard:
        """What a broker would make of the log."""
        shard = self.new_shard()
        shard.replay(ReadBatch(records=tuple(ReadRecord(at, k, v) for at, (k, v) in enumerate(self.log.records))))
        return shard

    def let_time_pass(self, seconds: float) -> None:
        end = self.clock.monotonic() + seconds
        while (deadline := self.timers.next_deadline()) is not None and deadline <= end:
            self.clock.move(max(deadline - self.clock.monotonic(), 0.0))
            self.timers.run_due()
            self.settle()
        self.clock.move(max(end - self.clock.monotonic(), 0.0))
        self.timers.run_due()
        self.settle()
