"""Answers on their way to one client, until the kernel has them, or until the connection is closed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from strandline.clock import ticks_ns
from strandline.server.memory import AnswerMemory
from strandline.server.outbox import Outbox

if TYPE_CHECKING:
    from strandline.server.connection import Connection
    from strandline.server.exchange import Exchange
    from strandline.wire.fetch_codec import Part

SEND_BUDGET: Final = 512 * 1024
"""The most bytes of one connection in one turn of the event loop."""


class AnswerSender:
    """Sends the answers of a connection in their order. What the socket does not take waits until it can."""

    __slots__ = ("_connection", "_exchanges", "_is_due", "_is_writing", "_loop", "_server", "_sock", "out")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._server = connection.server
        self._loop = connection.server.loop
        self._sock = connection.sock
        self._exchanges: list[Exchange] = []
        """Requests whose answers are being sent."""
        self._is_writing = self._is_due = False
        self.out = Outbox(connection.sock, connection.server.pages, self._on_writable)

    @property
    def holds_records(self) -> bool:
        """True while answers keep records in memory."""
        return any(exchange.memory for exchange in self._exchanges)

    def queue(self, exchange: Exchange, parts: Iterable[Part]) -> None:
        """This answer is the next one."""
        self._exchanges.append(exchange)
        self.out.extend(parts)

    def send(self) -> None:
        """Send what is queued, unless the socket or a disk is waited for."""
        out = self.out
        if not out.parts:
            answers_sent(self._exchanges, self._server.memory.answers)  # answers without a byte (acks=0)
        elif not self._is_writing and not out.is_loading:
            self._flush()

    def send_soon(self) -> None:
        """Send what has been answered by the next turn of the loop.

        What replicas have told with one request releases answers of several requests, and of several partitions. They
        leave together, which takes one call of the kernel instead of one for each.
        """
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._send_due)

    def _send_due(self) -> None:
        self._is_due = False
        if not self._connection.is_closed:
            self._connection.send_answers()

    def send_now(self, data: bytes) -> None:
        """Send answers of the straight path, which count in no budget of memory, while nothing is queued."""
        try:
            sent = self._sock.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self._failed(error)
            return
        self._server.bytes_out += sent
        if sent < len(data):
            self.out.extend((data[sent:],))
            self._flush()

    def _flush(self) -> None:
        """Send up to SEND_BUDGET bytes; the rest waits for the next turn."""
        connection, out = self._connection, self.out
        if connection.is_closed:
            return
        try:
            sent = out.send(SEND_BUDGET)
        except OSError as error:
            self._failed(error)
            return
        self._server.bytes_out += sent
        if not out.parts:
            answers_sent(self._exchanges, self._server.memory.answers)
        if sent or not self._is_writing:
            connection.last_active = self._loop.time()
        wants_to_write = bool(out.parts) and not out.is_loading
        if wants_to_write and not self._is_writing:
            self._is_writing = True
            self._loop.add_writer(connection.fd, self._on_writable)
        elif self._is_writing and not wants_to_write:
            self._is_writing = False
            self._loop.remove_writer(connection.fd)

    def _failed(self, error: OSError) -> None:
        self._connection.close(None if isinstance(error, ConnectionError) else f"sending failed: {error}")

    def _on_writable(self) -> None:
        self._flush()
        if not self.out.parts and not self._connection.is_closed:
            self._connection.send_answers()

    def stop(self) -> None:
        """The connection is being closed: nothing more is sent."""
        if self._is_writing:
            self._loop.remove_writer(self._connection.fd)
        self.out.clear()
        answers_dropped(self._exchanges, self._server.memory.answers)
        self._exchanges.clear()


def answers_sent(sending: list[Exchange], memory: AnswerMemory) -> None:
    """The kernel has these answers, which left together; empties the list."""
    if not sending:
        return
    now = ticks_ns()
    # The others could leave when the last of these requests was answered, which itself did not wait.
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


def answers_dropped(exchanges: Collection[Exchange], memory: AnswerMemory) -> None:
    """The connection is closed before these answers were sent."""
    memory.give_back(sum(exchange.memory for exchange in exchanges))
    for exchange in exchanges:
        if exchange.on_closed is not None:
            exchange.on_closed()
