"""A route of the straight path: what is remembered of Produce requests that begin alike, and where their records go."""

from __future__ import annotations

from struct import Struct
from typing import Final

from strandline.errors import StrandlineError
from strandline.hybrid.traffic import TopicTraffic
from strandline.model import NO_OFFSET, NO_TIMESTAMP
from strandline.replication import ACKS_ALL, Partition, Role
from strandline.server.produce_failures import count_failure, failure_of
from strandline.wire.primitives import read_uvarint
from strandline.wire.produce_codec import (
    FIRST_FLEXIBLE,
    ProduceEntry,
    ProduceRequest,
    single_frame,
    write_produce_response,
)

REQUEST: Final = Struct(">ihhi")
"""Length, API, version and correlation id."""
FIRST_BYTE: Final = 12  # of what requests have in common: behind length, API, version and correlation id
LEAST_RECORDS: Final = 61  # a header; behind the beginning, there is enough for every field that is read
END_TAGS: Final = 3  # of the partition, the topic and the request, in flexible versions
_I32: Final = Struct(">i")
_NO_ERROR: Final = 0


class ProduceRoute:
    """Where requests with one beginning go: it says everything but their records."""

    __slots__ = (
        "_end",
        "_entry",
        "_head",
        "_is_flexible",
        "_pack",
        "_partition",
        "_size",
        "_traffic",
        "needs_replicas",
        "replica",
        "timeout_ms",
        "version",
    )

    def __init__(self, request: ProduceRequest, *, version: int, replica: Partition, traffic: TopicTraffic) -> None:
        (entry,) = request.entries
        self.version = version
        self.needs_replicas = request.acks == ACKS_ALL
        """True if records are acknowledged when every in-sync replica has them."""
        self.timeout_ms = request.timeout_ms
        self._is_flexible = version >= FIRST_FLEXIBLE
        self._entry = ProduceEntry(entry.topic, entry.partition, None)
        self._partition, self.replica, self._traffic = entry.partition, replica, traffic
        self._head, self._end = single_frame(version, entry.topic)
        answer = Struct(f">ii{len(self._head)}sihqqq{len(self._end)}s")
        self._size = answer.size - 4
        self._pack = answer.pack

    def serve(self, role: Role, view: memoryview, start: int, end: int, correlation_id: int) -> bytes | None:
        """Append the records between `start` and the end of the request, with the role that the replica has now.

        Returns the answer for when they are as durable as the request asks for; None: not this way.
        """
        if self._is_flexible:
            length, start = read_uvarint(view, start)
            length -= 1
            # A length that does not fit, or tags that say something, are for the general path.
            if start + length + END_TAGS != end or view[end - 3] or view[end - 2] or view[end - 1]:
                return None
        else:
            (length,) = _I32.unpack_from(view, start)
            start += 4
            if start + length != end:
                return None
        first_offset = role.append_now(view[start : start + length])
        if first_offset == NO_OFFSET:
            return None
        offsets, traffic = self.replica.log.offsets, self._traffic
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

    def failed(self, correlation_id: int, error: StrandlineError) -> tuple[int, bytes]:
        """The error code, and the answer to a request whose records are in the log, and are not acknowledged."""
        answer = failure_of(error)
        count_failure(answer, self._traffic)
        return answer.error_code, write_produce_response(correlation_id, self.version, [self._entry], [answer])
