"""Requests of one connection that look like those before, behind others that wait for replicas, or to wait themselves.

Each has its place among the answers of the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.server.exchange import MAX_IN_FLIGHT
from strandline.server.straight_replicated import SingleReplicated
from strandline.server.straight_route import FIRST_BYTE, LEAST_RECORDS, REQUEST, ProduceRoute
from strandline.server.straight_several import PartitionRoutes
from strandline.server.straight_several_replicated import SeveralReplicated

if TYPE_CHECKING:
    from strandline.server.connection import Connection
    from strandline.server.deadlines import Deadlines
    from strandline.server.straight import AlikeRequests
    from strandline.server.times import ApiTimes


class RequestsInOrder:
    """See the module."""

    __slots__ = ("_alike", "_connection", "_largest", "_routes", "_several", "_single")

    def __init__(
        self,
        connection: Connection,
        alike: AlikeRequests,
        routes: dict[bytes, ProduceRoute],
        several: PartitionRoutes,
        times: ApiTimes,
        deadlines: Deadlines,
    ) -> None:
        self._connection, self._alike, self._routes = connection, alike, routes
        self._largest = connection.server.max_request_bytes
        self._single = SingleReplicated(connection, times, deadlines)
        self._several = SeveralReplicated(connection, several, times, deadlines)

    def serve(self, view: memoryview) -> int:
        """Serve the requests at the beginning; returns where the first one is that has to go the general way.

        Or that has to wait, since the connection has as many in flight as it may have.
        """
        position, end, prefix_end = 0, len(view), self._alike.prefix_end
        exchanges = self._connection.exchanges
        while len(exchanges) < MAX_IN_FLIGHT and end - position > prefix_end and not self._connection.is_closed:
            size, api_key, version, correlation_id = REQUEST.unpack_from(view, position)
            frame_end = position + 4 + size
            if api_key or frame_end > end or not prefix_end + LEAST_RECORDS <= size <= self._largest:
                break
            if not self.serve_frame(view[position + 4 : frame_end], version, correlation_id):
                break
            position = frame_end
        return position

    def serve_frame(self, frame: memoryview, version: int, correlation_id: int) -> bool:
        """Begin one request. False: not this way, nothing has happened."""
        alike = self._alike
        prefix_end = alike.prefix_end - 4
        route = self._routes.get(bytes(frame[FIRST_BYTE - 4 : prefix_end]))
        if route is not None and route.version == version:
            return self._single.serve(route, frame, prefix_end, len(frame), correlation_id)
        head = alike.head
        topics_at = FIRST_BYTE - 4 + len(head)
        if version != alike.head_version or frame[FIRST_BYTE - 4 : topics_at] != head:
            return False
        return self._several.serve(head, frame, topics_at, version, correlation_id)
