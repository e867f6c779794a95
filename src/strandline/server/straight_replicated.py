"""The straight path where other replicas have to have the records, too: append now, answer when they have them.

Such a request has a place among the answers of its connection, as on the general path, and so have those behind it,
also if they could be answered at once. The high watermark answers it, or the end of its leader's time, or its timeout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.clock import ticks_ns
from strandline.errors import RequestTimedOut, StrandlineError
from strandline.replication import LeaderRole
from strandline.server.exchange import MAX_IN_FLIGHT, Exchange
from strandline.server.produce_failures import not_replicated_within
from strandline.server.straight_route import FIRST_BYTE, LEAST_RECORDS, REQUEST, ProduceRoute

if TYPE_CHECKING:
    from strandline.server.connection import Connection
    from strandline.server.deadlines import Deadline, Deadlines
    from strandline.server.times import ApiTimes

PRODUCE: Final = 0


class ReplicatedExchange(Exchange):
    """A request whose records are in the log of this broker."""

    __slots__ = ("_answer", "_deadline", "_route")

    def __init__(self, connection: Connection, route: ProduceRoute, correlation_id: int, answer: bytes) -> None:
        super().__init__(connection, PRODUCE, route.version, correlation_id)
        self._route, self._answer = route, answer
        self._deadline: Deadline | None = None

    def done(self, error: StrandlineError | None) -> None:
        """The replicas have the records, or they are not known to have them."""
        if self.is_answered:
            return  # it has timed out
        self._no_deadline()
        if error is None:
            self.respond([self._answer])
            return
        code, answer = self._route.failed(self.correlation_id, error)
        self.count_error(code)
        self.respond([answer])

    def wait(self, deadlines: Deadlines) -> None:
        """`done` comes later. If it does not come in time, the request has failed."""
        self.on_closed = self._no_deadline
        self._deadline = deadlines.call_within(self._route.timeout_ms / 1000, self._expired)

    def _expired(self) -> None:
        self.done(RequestTimedOut(not_replicated_within(self._route.timeout_ms)))

    def _no_deadline(self) -> None:
        self.on_closed = None
        if self._deadline is not None:
            self._deadline.cancel()


class ReplicatedRequests:
    """Serves the requests of one connection that have a route, each in its place."""

    __slots__ = ("_connection", "_deadlines", "_single", "_times")

    def __init__(
        self, connection: Connection, single: dict[bytes, ProduceRoute], times: ApiTimes, deadlines: Deadlines
    ) -> None:
        self._connection = connection
        self._single, self._times, self._deadlines = single, times, deadlines

    def serve(self, view: memoryview, prefix_end: int) -> int:
        """Serve the requests at the beginning; returns where the first one is that has to go the general way.

        Or that has to wait, since the connection has as many in flight as it may have.
        """
        position, end, largest = 0, len(view), self._connection.server.max_request_bytes
        exchanges = self._connection.exchanges
        while len(exchanges) < MAX_IN_FLIGHT and end - position > prefix_end:
            size, api_key, version, correlation_id = REQUEST.unpack_from(view, position)
            frame_end = position + 4 + size
            if api_key or frame_end > end or not prefix_end + LEAST_RECORDS <= size <= largest:
                break
            route = self._single.get(bytes(view[position + FIRST_BYTE : position + prefix_end]))
            if route is None or route.version != version:
                break
            if not self.serve_one(route, view, position + prefix_end, frame_end, correlation_id):
                break
            position = frame_end
        return position

    def serve_one(self, route: ProduceRoute, view: memoryview, start: int, end: int, correlation_id: int) -> bool:
        """Append the records of one request, which begin at `start`. False: not this way, nothing has happened."""
        connection, role = self._connection, route.replica.role
        if not isinstance(role, LeaderRole):
            return False
        answer = route.serve(role, view, start, end, correlation_id)
        if answer is None:
            return False
        exchange = ReplicatedExchange(connection, route, correlation_id, answer)
        exchange.times = self._times
        self._times.versions[route.version] += 1
        exchange.starts(connection.last_active)
        connection.exchanges.append(exchange)
        if not route.needs_replicas or role.wait_replicated(exchange.done):
            exchange.done(None)
        else:
            exchange.wait(self._deadlines)
        exchange.local_end_ns = ticks_ns()
        return True
