"""Answers that have been sent, or never will be: their times are recorded, their memory is given back."""

from __future__ import annotations

from strandline.clock import ticks_ns
from strandline.server.exchange import Exchange
from strandline.server.memory import AnswerMemory


def answers_sent(sending: list[Exchange], memory: AnswerMemory) -> None:
    """The kernel has these answers, which left together; empties the list."""
    if not sending:
        return
    now = ticks_ns()
    # The one that was answered last let the others leave, and itself did not wait.
    last = sending[-1]
    leaving = last.answered_ns or last.local_end_ns
    if len(sending) > 1:
        leaving = max(exchange.answered_ns or exchange.local_end_ns for exchange in sending)
    for exchange in sending:
        if exchange.times is not None:
            exchange.times.record(exchange, leaving, now)
        if exchange.memory:
            memory.give_back(exchange.memory)
    sending.clear()


def answers_dropped(exchanges: list[Exchange], memory: AnswerMemory) -> None:
    """The connection is closed before these answers were sent."""
    memory.give_back(sum(exchange.memory for exchange in exchanges))
    for exchange in exchanges:
        if exchange.on_closed is not None:
            exchange.on_closed()
