"""The straight path: Produce requests that look like one before, and can be answered at once.

A producer that writes to one partition after the other sends requests that begin alike: client id, acks, timeout and
topic are the same bytes each time. Such a beginning, up to the number of the partition, is parsed once, by the general
path, and remembered as a route. The next request with the same beginning goes from the receive buffer straight to the
log, and its answer is one packed struct: no object lives longer than the call. Requests of one receive are answered
with one send.

Requests with several partitions have a beginning that ends before their topics, and go on in `straight_several`. Where
other replicas have to have the records before the answer, they are appended as straight and the answer waits
(`straight_in_order`).

Whatever is not ordinary goes the general way: another API, acks=0, a batch that breaks a rule or begins something, a
partition that moved, memory that is short. The straight path decides that before it changes anything, so there is
nothing to undo.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Final

from strandline.clock import ticks_ns
from strandline.hybrid.partitions import Partitions
from strandline.replication import Partition
from strandline.server.deadlines import Deadlines
from strandline.server.straight_in_order import RequestsInOrder
from strandline.server.straight_route import END_TAGS, FIRST_BYTE, LEAST_RECORDS, REQUEST, ProduceRoute
from strandline.server.straight_several import NOT_THIS_WAY, PartitionRoutes, Served
from strandline.server.times import ApiTimes
from strandline.wire.produce_codec import FIRST_FLEXIBLE, FIRST_SINGLE, ProduceAnswer, ProduceRequest
from strandline.wire.produce_places import find_topics

if TYPE_CHECKING:
    from strandline.server.connection import Connection
    from strandline.server.exchange import Exchange

MAX_ROUTES: Final = 10_000
MOST_IN_A_TURN: Final = 256  # of one connection: as long as the requests that the general path serves in a turn
MAX_PREFIX: Final = 512
_REQUEST_HEAD: Final = Struct(">hhi")
_LENGTH_BYTES: Final = 4
_NO_VERSION: Final = 1 << 15  # more than fits into a request


class ProduceRoutes:
    """The routes of this broker: to one partition by the beginning of requests, to several by partition."""

    def __init__(self, partitions: Partitions, deadlines: Deadlines) -> None:
        self._partitions, self.deadlines = partitions, deadlines
        self.single: dict[bytes, ProduceRoute] = {}
        self.several = PartitionRoutes(partitions)
        partitions.when_changed(self.single.clear)

    def learn(self, exchange: Exchange, frame: memoryview, request: ProduceRequest, replica: Partition) -> None:
        """Remember where a request for one partition went that was written at once."""
        (entry,) = request.entries
        version, times = exchange.api_version, exchange.times
        if version < FIRST_SINGLE or times is None or entry.records is None or not request.acks:
            return
        length = len(entry.records)
        behind = length + _LENGTH_BYTES
        if version >= FIRST_FLEXIBLE:
            if any(frame[-END_TAGS:]):
                return
            behind = _uvarint_size(length + 1) + length + END_TAGS
        prefix_end = 4 + len(frame) - behind
        if prefix_end > MAX_PREFIX:
            return
        self._alike(exchange.connection, times).prefix_end = prefix_end
        beginning = bytes(frame[FIRST_BYTE - 4 : prefix_end - 4])
        known = self.single.get(beginning)
        if known is not None and known.version == version and known.replica is replica:
            return  # it took the general path for another reason
        if len(self.single) >= MAX_ROUTES:
            self.single.clear()
        traffic = self._partitions.traffic[entry.topic]
        self.single[beginning] = ProduceRoute(request, version=version, replica=replica, traffic=traffic)

    def learn_head(self, exchange: Exchange, frame: memoryview, position: int, request: ProduceRequest) -> None:
        """Remember how a request for several partitions began, all of which were written at once."""
        version, times, alike = exchange.api_version, exchange.times, exchange.connection.alike
        if version < FIRST_SINGLE or times is None or not request.acks:
            return
        if alike is not None and alike.head_version == version:
            return  # it took the general path for another reason
        topics_at = find_topics(frame, position, version)
        if topics_at <= MAX_PREFIX:
            alike = self._alike(exchange.connection, times)
            alike.head, alike.head_version = bytes(frame[FIRST_BYTE - 4 : topics_at]), version

    def _alike(self, connection: Connection, times: ApiTimes) -> AlikeRequests:
        if connection.alike is None:
            connection.alike = AlikeRequests(connection, self, times)
        return connection.alike


class AlikeRequests:
    """Produce requests of one connection that look like those before."""

    __slots__ = (
        "_connection",
        "_in_order",
        "_largest",
        "_loop",
        "_room",
        "_several",
        "_single",
        "_times",
        "head",
        "head_version",
        "prefix_end",
    )

    def __init__(self, connection: Connection, routes: ProduceRoutes, times: ApiTimes) -> None:
        self._connection, self._times = connection, times
        self._loop, self._largest = connection.server.loop, connection.server.max_request_bytes
        self._room = connection.server.shared_buffer
        self._single, self._several = routes.single, routes.several
        self._in_order = RequestsInOrder(connection, self, routes.single, routes.several, times, routes.deadlines)
        self.prefix_end = FIRST_BYTE
        """How far requests for one partition looked alike."""
        self.head, self.head_version = b"", _NO_VERSION
        """How requests for several partitions began, behind the correlation id and up to their topics."""

    def receive(self) -> None:
        """Receive requests that probably look like those before."""
        if count := self._connection.receive_into(self._room):
            self.serve_received(self._room, count)

    def serve_received(self, view: memoryview, end: int) -> None:
        """Serve what was received while nothing was going on: straight as far as it goes, then the general way."""
        connection = self._connection
        position = self._serve(view, end)
        if position < end and not connection.is_closed:
            connection.serve_turn(lambda: connection.consume(view, end, position), self._loop.time())

    def receive_in_order(self) -> None:
        """Receive requests behind others that wait for replicas."""
        if count := self._connection.receive_into(self._room):
            self.consume_in_order(self._room[:count])

    def consume_in_order(self, view: memoryview) -> None:
        """Serve requests that have to be answered in their place, since answers may wait for other replicas."""
        position = self._in_order.serve(view)
        self._connection.consume(view, len(view), position)

    def _serve(self, view: memoryview, end: int) -> int:
        """Answer the requests at the beginning of `view` that have a route; returns where the first other one is.

        The end, if something else was begun with the rest: there are more of them than one connection may have in a
        turn, or one whose answer may have to wait.
        """
        started, connection = ticks_ns(), self._connection
        prefix_end, single, largest = self.prefix_end, self._single, self._largest
        position = frame_end = served_version = 0
        left = MOST_IN_A_TURN
        go_on: Callable[[memoryview], None] | None = None
        answers: list[bytes] = []
        begun: list[ProduceAnswer] = []
        while left > 0:
            if end - position <= prefix_end:
                break
            size, api_key, version, correlation_id = REQUEST.unpack_from(view, position)
            frame_end = position + 4 + size
            if (
                api_key
                or frame_end > end
                or not prefix_end + LEAST_RECORDS <= size <= largest
                or (answers and version != served_version)  # they are counted together, under one version
            ):
                break
            route = single.get(bytes(view[position + FIRST_BYTE : position + prefix_end]))
            if route is not None and route.version == version:
                role = route.replica.role
                if not role.answers_at_once:
                    go_on = self._go_on_in_order
                    break
                answer = route.serve(role, view, position + prefix_end, frame_end, correlation_id)
                left -= 1
            else:
                answer, begun, batches = self._serve_several(view, position + 4, frame_end, version, correlation_id)
                left -= batches
                go_on = self._go_on_in_order if batches < 0 else None
            if answer is None:
                break
            answers.append(answer)
            position, served_version = frame_end, version
        else:
            go_on = connection.keep
        if answers:
            served = ticks_ns()
            connection.sender.send_now(answers[0] if len(answers) == 1 else b"".join(answers))
            self._times.record_alike(served_version, len(answers), connection.last_active, started, served, ticks_ns())
        if begun and not connection.is_closed:
            frame = view[position + 4 : frame_end]
            connection.serve_turn(lambda: connection.dispatch(frame, None, begun), self._loop.time())
            return frame_end
        if go_on is not None:
            go_on(view[position:end])
            return end
        return position

    def _go_on_in_order(self, rest: memoryview) -> None:
        if not self._connection.is_closed:
            self._connection.serve_turn(lambda: self.consume_in_order(rest), self._loop.time())

    def serve_frame(self, frame: memoryview) -> list[ProduceAnswer] | None:
        """Answer one request that lies in a buffer of its own; None. Else it has to go the general way.

        Then the answers of the first partitions, which are done.
        """
        prefix_end, end = self.prefix_end - 4, len(frame)
        if end < prefix_end + LEAST_RECORDS:
            return []
        started, connection = ticks_ns(), self._connection
        api_key, version, correlation_id = _REQUEST_HEAD.unpack_from(frame)
        if api_key:
            return []
        begun: list[ProduceAnswer] = []
        route = self._single.get(bytes(frame[FIRST_BYTE - 4 : prefix_end]))
        if route is not None and route.version == version:
            role = route.replica.role
            if not role.answers_at_once or connection.is_busy:
                return None if self._in_order.serve_frame(frame, version, correlation_id) else []
            answer = route.serve(role, frame, prefix_end, end, correlation_id)
        elif connection.is_busy:
            return None if self._in_order.serve_frame(frame, version, correlation_id) else []
        else:
            answer, begun, batches = self._serve_several(frame, 0, end, version, correlation_id)
            if batches < 0:
                return None if self._in_order.serve_frame(frame, version, correlation_id) else []
        if answer is None:
            return begun
        served = ticks_ns()
        connection.sender.send_now(answer)
        self._times.record_alike(version, 1, connection.last_active, started, served, ticks_ns())
        return None

    def _serve_several(self, view: memoryview, start: int, end: int, version: int, correlation_id: int) -> Served:
        """The answer, if the request begins as those with several partitions do; else see `PartitionRoutes.serve`."""
        head_at = start + FIRST_BYTE - 4
        topics_at = head_at + len(self.head)
        if version != self.head_version or view[head_at:topics_at] != self.head:
            self.head_version = _NO_VERSION  # the general path learns how they begin now
            return NOT_THIS_WAY
        return self._several.serve(view, topics_at, end, version, correlation_id)


def _uvarint_size(number: int) -> int:
    return max((number.bit_length() + 6) // 7, 1)
