"""The straight path where other replicas have to have the records, too: append now, answer when they have them.

Such a request has a place among the answers of its connection, as on the general path, and so have those behind it,
also if they could be answered at once. The high watermark answers it, or the end of its leader's time, or its timeout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.clock import ticks_ns
from strandline.errors import RequestTimedOut, StrandlineError
from strandline.replication import LeaderRole
from strandline.server.exchange import Exchange
from strandline.server.produce_failures import not_replicated_within
from strandline.server.straight_route import ProduceRoute

if TYPE_CHECKING:
    from strandline.server.connection import Connection
    from strandline.server.deadlines import Deadline, Deadlines
    from strandline.server.times import ApiTimes

PRODUCE: Final = 0


class ReplicatedExchange(Exchange):
    """A Produce request whose records are written on this broker."""

    __slots__ = ("_deadline", "_timeout_ms")

    def __init__(self, connection: Connection, version: int, correlation_id: int) -> None:
        super().__init__(connection, PRODUCE, version, correlation_id)
        self._timeout_ms = 0
        self._deadline: Deadline | None = None

    def expire_within(self, timeout_ms: int, deadlines: Deadlines) -> None:
        """The answer comes later. If it does not come in time, the request has failed."""
        self._timeout_ms = timeout_ms
        self.on_closed = self.no_deadline
        self._deadline = deadlines.call_within(timeout_ms / 1000, self._expired)

    def _expired(self) -> None:
        self.expired(RequestTimedOut(not_replicated_within(self._timeout_ms)))

    def expired(self, error: RequestTimedOut) -> None:
        """The request was not answered in time."""
        raise NotImplementedError

    def no_deadline(self) -> None:
        """It is answered, or has no client any more."""
        self.on_closed = None
        if self._deadline is not None:
            self._deadline.cancel()


class SingleExchange(ReplicatedExchange):
    """One with records for one partition."""

    __slots__ = ("_answer", "_route")

    def __init__(self, connection: Connection, route: ProduceRoute, correlation_id: int, answer: bytes) -> None:
        super().__init__(connection, route.version, correlation_id)
        self._route, self._answer = route, answer

    def done(self, error: StrandlineError | None) -> None:
        """The replicas have the records, or they are not known to have them."""
        if self.is_answered:
            return  # it has timed out
        self.no_deadline()
        if error is None:
            self.respond([self._answer])
            return
        code, answer = self._route.failed(self.correlation_id, error)
        self.count_error(code)
        self.respond([answer])

    def expired(self, error: RequestTimedOut) -> None:
        self.done(error)


class SingleReplicated:
    """Serves such requests of one connection, each in its place."""

    __slots__ = ("_connection", "_deadlines", "_times")

    def __init__(self, connection: Connection, times: ApiTimes, deadlines: Deadlines) -> None:
        self._connection, self._times, self._deadlines = connection, times, deadlines

    def serve(self, route: ProduceRoute, view: memoryview, start: int, end: int, correlation_id: int) -> bool:
        """Append the records of one request, which begin at `start`. False: not this way, nothing has happened."""
        connection, role = self._connection, route.replica.role
        if not isinstance(role, LeaderRole):
            return False
        answer = route.serve(role, view, start, end, correlation_id)
        if answer is None:
            return False
        exchange = SingleExchange(connection, route, correlation_id, answer)
        exchange.times = self._times
        self._times.versions[route.version] += 1
        exchange.starts(connection.last_active)
        connection.exchanges.append(exchange)
        if not route.needs_replicas or role.wait_replicated(exchange.done):
            exchange.done(None)
        else:
            exchange.expire_within(route.timeout_ms, self._deadlines)
        exchange.local_end_ns = ticks_ns()
        return True
