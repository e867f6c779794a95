"""Answers on their way to a client: the memory that they hold, and how long they take."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.clock import ticks_ns
from strandline.server.exchange import Exchange
from strandline.server.memory import AnswerMemory


class Sending:
    """The answers of one connection that the kernel does not have yet."""

    __slots__ = ("_answers", "_exchanges", "memory")

    def __init__(self, answers: AnswerMemory) -> None:
        self._answers = answers
        self._exchanges: list[tuple[Exchange, int]] = []
        self.memory = 0
        """Bytes of records that they keep in memory."""

    def add(self, exchange: Exchange, now_ns: int) -> None:
        """The turn of an answer has come."""
        self.memory += exchange.memory
        self._exchanges.append((exchange, now_ns))

    def sent(self) -> None:
        """The kernel has all of them."""
        now = ticks_ns()
        for exchange, leaving in self._exchanges:
            if exchange.times is not None:
                exchange.times.record(exchange, leaving, now)
        self._exchanges.clear()
        if self.memory:
            self._give_back()

    def dropped(self, unsent: Iterable[Exchange]) -> None:
        """The connection is closed: neither these answers nor the further ones in `unsent` will be sent."""
        self.memory += sum(exchange.memory for exchange in unsent)
        self._exchanges.clear()
        self._give_back()

    def _give_back(self) -> None:
        size, self.memory = self.memory, 0
        self._answers.give_back(size)
