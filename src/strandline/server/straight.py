"""The straight path: Produce requests that look like one before, and can be answered at once.

A producer that writes to one partition after the other sends requests that begin alike: client id, acks, timeout and
topic are the same bytes each time. Such a beginning, up to the number of the partition, is parsed once, by the general
path, and remembered as a route. The next request with the same beginning goes from the receive buffer straight to the
log, and its answer is one packed struct: no object lives longer than the call. Requests of one receive are answered
with one send.

Requests with several partitions have a beginning that ends before their topics, and go on in `straight_several`.

Whatever is not ordinary goes the general way: another API, acks=0, a batch that breaks a rule or begins something, a
partition that moved, memory that is short. The straight path decides that before it changes anything, so there is
nothing to undo.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from strandline.clock import ticks_ns
from strandline.hybrid.partitions import Partitions
from strandline.hybrid.traffic import TopicTraffic
from strandline.model import NO_OFFSET, NO_TIMESTAMP
from strandline.replication import Partition
from strandline.server.straight_several import NOT_THIS_WAY, PartitionRoutes, Served
from strandline.server.times import ApiTimes
from strandline.wire.primitives import read_uvarint
from strandline.wire.produce_codec import (
    FIRST_FLEXIBLE,
    FIRST_SINGLE,
    ProduceAnswer,
    ProduceEntry,
    ProduceRequest,
    single_frame,
)
from strandline.wire.produce_places import find_topics

if TYPE_CHECKING:
    from strandline.server.connection import Connection
    from strandline.server.exchange import Exchange

MAX_ROUTES: Final = 10_000
MOST_IN_A_TURN: Final = 256  # of one connection: as long as the requests that the general path serves in a turn
MAX_PREFIX: Final = 512
_REQUEST: Final = Struct(">ihhi")
_REQUEST_HEAD: Final = Struct(">hhi")
_FIRST_BYTE: Final = 12  # of what requests have in common: behind length, API, version and correlation id
_I32: Final = Struct(">i")
_LEAST_RECORDS: Final = 61  # a header; behind the beginning, there is enough for every field that is read
_END_TAGS: Final = 3  # of the partition, the topic and the request, in flexible versions
_NO_ERROR: Final = 0
_NO_VERSION: Final = 1 << 15  # more than fits into a request


class ProduceRoute:
    """Where requests with one beginning go."""

    __slots__ = (
        "_end",
        "_head",
        "_is_flexible",
        "_pack",
        "_partition",
        "_size",
        "_traffic",
        "replica",
        "version",
    )

    def __init__(self, entry: ProduceEntry, *, version: int, replica: Partition, traffic: TopicTraffic) -> None:
        self.version = version
        self._is_flexible = version >= FIRST_FLEXIBLE
        self._partition, self.replica, self._traffic = entry.partition, replica, traffic
        self._head, self._end = single_frame(version, entry.topic)
        answer = Struct(f">ii{len(self._head)}sihqqq{len(self._end)}s")
        self._size = answer.size - 4
        self._pack = answer.pack

    def serve(self, view: memoryview, start: int, end: int, correlation_id: int) -> bytes | None:
        """Append the records between `start` and the end of the request; returns the answer, None: not this way."""
        if self._is_flexible:
            length, start = read_uvarint(view, start)
            length -= 1
            # A length that does not fit, or tags that say something, are for the general path.
            if start + length + _END_TAGS != end or view[end - 3] or view[end - 2] or view[end - 1]:
                return None
        else:
            (length,) = _I32.unpack_from(view, start)
            start += 4
            if start + length != end:
                return None
        replica = self.replica
        role = replica.role
        first_offset = role.append_now(view[start : start + length]) if role.answers_at_once else NO_OFFSET
        if first_offset == NO_OFFSET:
            return None
        offsets, traffic = replica.log.offsets, self._traffic
        traffic.produce_requests += 1
        traffic.messages_in += offsets.end - first_offset
        traffic.bytes_in += length
        return self._pack(
            self._size,
            correlation_id,
            self._head,
            self._partition,
            _NO_ERROR,
            first_offset,
            NO_TIMESTAMP,
            offsets.start,
            self._end,
        )


class ProduceRoutes:
    """The routes of this broker: to one partition by the beginning of requests, to several by partition."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self.single: dict[bytes, ProduceRoute] = {}
        self.several = PartitionRoutes(partitions)
        partitions.when_changed(self.single.clear)

    def learn(self, exchange: Exchange, frame: memoryview, request: ProduceRequest, replica: Partition) -> None:
        """Remember where a request for one partition went that was answered at once."""
        (entry,) = request.entries
        version, times = exchange.api_version, exchange.times
        if version < FIRST_SINGLE or times is None or entry.records is None or not request.acks:
            return
        length = len(entry.records)
        behind = length + _I32.size
        if version >= FIRST_FLEXIBLE:
            if any(frame[-_END_TAGS:]):
                return
            behind = _uvarint_size(length + 1) + length + _END_TAGS
        prefix_end = 4 + len(frame) - behind
        if prefix_end > MAX_PREFIX:
            return
        self._alike(exchange.connection, times).prefix_end = prefix_end
        beginning = bytes(frame[_FIRST_BYTE - 4 : prefix_end - 4])
        known = self.single.get(beginning)
        if known is not None and known.version == version and known.replica is replica:
            return  # it took the general path for another reason
        if len(self.single) >= MAX_ROUTES:
            self.single.clear()
        traffic = self._partitions.traffic[entry.topic]
        self.single[beginning] = ProduceRoute(entry, version=version, replica=replica, traffic=traffic)

    def learn_head(self, exchange: Exchange, frame: memoryview, position: int, request: ProduceRequest) -> None:
        """Remember how a request for several partitions began, all of which were answered at once."""
        version, times, alike = exchange.api_version, exchange.times, exchange.connection.alike
        if version < FIRST_SINGLE or times is None or not request.acks:
            return
        if alike is not None and alike.head_version == version:
            return  # it took the general path for another reason
        topics_at = find_topics(frame, position, version)
        if topics_at <= MAX_PREFIX:
            alike = self._alike(exchange.connection, times)
            alike.head, alike.head_version = bytes(frame[_FIRST_BYTE - 4 : topics_at]), version

    def _alike(self, connection: Connection, times: ApiTimes) -> AlikeRequests:
        if connection.alike is None:
            connection.alike = AlikeRequests(self, times)
        return connection.alike


class AlikeRequests:
    """Produce requests of one connection that look like those before."""

    __slots__ = ("_routes", "_times", "head", "head_version", "prefix_end")

    def __init__(self, routes: ProduceRoutes, times: ApiTimes) -> None:
        self._routes, self._times = routes, times
        self.prefix_end = _FIRST_BYTE
        """How far requests for one partition looked alike."""
        self.head, self.head_version = b"", _NO_VERSION
        """How requests for several partitions began, behind the correlation id and up to their topics."""

    def serve(self, connection: Connection, view: memoryview, end: int) -> int:
        """Answer the requests at the beginning of `view` that have a route; returns where the first other one is.

        The end, if there are more of them than one connection may have in a turn: it keeps the rest for the next one.
        """
        started = ticks_ns()
        prefix_end, single, largest = self.prefix_end, self._routes.single, connection.server.max_request_bytes
        position = frame_end = served_version = 0
        left, is_cut = MOST_IN_A_TURN, False
        answers: list[bytes] = []
        begun: list[ProduceAnswer] = []
        while left > 0:
            if end - position <= prefix_end:
                break
            size, api_key, version, correlation_id = _REQUEST.unpack_from(view, position)
            frame_end = position + 4 + size
            if api_key or frame_end > end or not prefix_end + _LEAST_RECORDS <= size <= largest:
                break
            if answers and version != served_version:
                break  # they are counted together, under one version
            route = single.get(bytes(view[position + _FIRST_BYTE : position + prefix_end]))
            if route is not None and route.version == version:
                answer = route.serve(view, position + prefix_end, frame_end, correlation_id)
                left -= 1
            else:
                answer, begun, batches = self._serve_several(view, position + 4, frame_end, version, correlation_id)
                left -= batches
            if answer is None:
                break
            answers.append(answer)
            position, served_version = frame_end, version
        else:
            is_cut = True
        if answers:
            served = ticks_ns()
            connection.sender.send_now(answers[0] if len(answers) == 1 else b"".join(answers))
            self._times.record_alike(served_version, len(answers), connection.last_active, started, served, ticks_ns())
        if begun and not connection.is_closed:
            connection.go_on(view[position + 4 : frame_end], begun)
            return frame_end
        if is_cut:
            connection.keep(view[position:end])
            return end
        return position

    def serve_frame(self, connection: Connection, frame: memoryview) -> list[ProduceAnswer] | None:
        """Answer one request that lies in a buffer of its own; None. Else it has to go the general way.

        Then the answers of the first partitions, which are done.
        """
        prefix_end, end = self.prefix_end - 4, len(frame)
        if end < prefix_end + _LEAST_RECORDS:
            return []
        started = ticks_ns()
        api_key, version, correlation_id = _REQUEST_HEAD.unpack_from(frame)
        if api_key:
            return []
        begun: list[ProduceAnswer] = []
        route = self._routes.single.get(bytes(frame[_FIRST_BYTE - 4 : prefix_end]))
        if route is not None and route.version == version:
            answer = route.serve(frame, prefix_end, end, correlation_id)
        else:
            answer, begun, _ = self._serve_several(frame, 0, end, version, correlation_id)
        if answer is None:
            return begun
        served = ticks_ns()
        connection.sender.send_now(answer)
        self._times.record_alike(version, 1, connection.last_active, started, served, ticks_ns())
        return None

    def _serve_several(self, view: memoryview, start: int, end: int, version: int, correlation_id: int) -> Served:
        """The answer, if the request begins as those with several partitions do; else see `PartitionRoutes.serve`."""
        head_at = start + _FIRST_BYTE - 4
        topics_at = head_at + len(self.head)
        if version != self.head_version or view[head_at:topics_at] != self.head:
            self.head_version = _NO_VERSION  # the general path learns how they begin now
            return NOT_THIS_WAY
        return self._routes.several.serve(view, topics_at, end, version, correlation_id)


def _uvarint_size(number: int) -> int:
    return max((number.bit_length() + 6) // 7, 1)
