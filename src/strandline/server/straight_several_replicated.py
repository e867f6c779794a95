"""The straight path of requests with several partitions, where other replicas have to have the records, too.

Each batch is appended as in `straight_several`, and the request has a place among the answers of its connection as in
`straight_replicated`. It is answered when every partition is: replicated, or refused because its leader's time is over.
What is not ordinary goes the general way from the first such batch on, which waits for those before it as well.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from strandline.clock import ticks_ns
from strandline.errors import RequestTimedOut, StrandlineError
from strandline.hybrid.traffic import TopicTraffic
from strandline.model import NO_OFFSET, NO_TIMESTAMP
from strandline.replication import ACKS_ALL, LeaderRole
from strandline.server.produce_failures import count_failure, failure_of
from strandline.server.straight_replicated import ReplicatedExchange
from strandline.server.straight_several import PartitionRoutes
from strandline.wire.produce_codec import ProduceAnswer, ProduceEntry, write_produce_response
from strandline.wire.produce_places import TopicPlaces, read_topic, write_successes

if TYPE_CHECKING:
    from strandline.server.connection import Connection
    from strandline.server.deadlines import Deadlines
    from strandline.server.times import ApiTimes

_ACKS_TIMEOUT: Final = Struct(">hi")


class SeveralExchange(ReplicatedExchange):
    """A request whose records are in the logs of this broker."""

    __slots__ = ("_failures", "_offsets", "_topics", "_traffic", "_waiting")

    def __init__(self, connection: Connection, version: int, correlation_id: int, topics: list[TopicPlaces]) -> None:
        super().__init__(connection, version, correlation_id)
        self._topics = topics
        self._offsets: list[tuple[int, int]] = []
        self._traffic: list[TopicTraffic] = []
        self._waiting: set[int] = set()
        self._failures: dict[int, StrandlineError] = {}

    def appended(self, first_offset: int, log_start: int, traffic: TopicTraffic) -> None:
        """The next partition is written."""
        self._offsets.append((first_offset, log_start))
        self._traffic.append(traffic)

    def answers_so_far(self) -> list[ProduceAnswer]:
        """Of the partitions that are written, for when they are replicated."""
        return [ProduceAnswer(0, first, NO_TIMESTAMP, log_start) for first, log_start in self._offsets]

    def wait_for(self, roles: list[LeaderRole], deadlines: Deadlines, timeout_ms: int) -> None:
        """Answer when the partitions, whose leaders these are, are replicated, or after the timeout."""
        for index, role in enumerate(roles):
            if not role.wait_replicated(self._done_with(index)):
                self._waiting.add(index)
        if self._waiting:
            self.expire_within(timeout_ms, deadlines)
        else:
            self.answer()

    def _done_with(self, index: int) -> _Done:
        return _Done(self, index)

    def done_one(self, index: int, error: StrandlineError | None) -> None:
        """The replicas have the records of a partition, or they are not known to have them."""
        if self.is_answered:
            return  # it has timed out
        self._waiting.discard(index)
        if error is not None:
            self._failures[index] = error
        if not self._waiting:
            self.answer()

    def expired(self, error: RequestTimedOut) -> None:
        for index in self._waiting:
            self._failures[index] = error
        self.answer()

    def answer(self) -> None:
        """Say what has become of each partition."""
        self.no_deadline()
        topics, version = self._topics, self.api_version
        if not self._failures:
            self.respond([write_successes(self.correlation_id, version, topics, self._offsets)])
            return
        entries = [
            ProduceEntry(read_topic(raw, version) or raw, at, None) for raw, places in topics for at, _, _ in places
        ]
        answers = self.answers_so_far()
        for index, error in self._failures.items():
            answers[index] = failed = failure_of(error)
            count_failure(failed, self._traffic[index])
            self.count_error(failed.error_code)
        self.respond([write_produce_response(self.correlation_id, version, entries, answers)])


class _Done:
    """A `Done` of one partition."""

    __slots__ = ("_exchange", "_index")

    def __init__(self, exchange: SeveralExchange, index: int) -> None:
        self._exchange, self._index = exchange, index

    def __call__(self, error: StrandlineError | None) -> None:
        self._exchange.done_one(self._index, error)


class SeveralReplicated:
    """Serves such requests of one connection."""

    __slots__ = ("_connection", "_deadlines", "_routes", "_times")

    def __init__(self, connection: Connection, routes: PartitionRoutes, times: ApiTimes, deadlines: Deadlines) -> None:
        self._connection, self._routes, self._times, self._deadlines = connection, routes, times, deadlines

    def serve(self, head: bytes, frame: memoryview, topics_at: int, version: int, correlation_id: int) -> bool:
        """Append the records of a request that begins as `head` says, and whose topics begin at `topics_at`.

        False: not this way, nothing has happened.
        """
        connection = self._connection
        topics, places = self._routes.find(frame, topics_at, len(frame), version)
        if not places:
            return False
        exchange = SeveralExchange(connection, version, correlation_id, topics)
        roles: list[LeaderRole] = []
        for traffic, replica, start, stop in places:
            role = replica.role
            first_offset = role.append_now(frame[start:stop])
            if first_offset == NO_OFFSET or not isinstance(role, LeaderRole):
                if not roles:
                    return False
                connection.dispatch(frame, None, exchange.answers_so_far())
                return True
            of_log = role.offsets
            exchange.appended(first_offset, of_log.start, traffic)
            roles.append(role)
            traffic.produce_requests += 1
            traffic.messages_in += of_log.end - first_offset
            traffic.bytes_in += stop - start
        acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(head, len(head) - _ACKS_TIMEOUT.size)
        exchange.times = self._times
        self._times.versions[version] += 1
        exchange.starts(connection.last_active)
        connection.exchanges.append(exchange)
        if acks == ACKS_ALL:
            exchange.wait_for(roles, self._deadlines, timeout_ms)
        else:
            exchange.answer()
        exchange.local_end_ns = ticks_ns()
        return True
