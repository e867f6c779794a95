"""A broker that answers as a test says, over a real connection: for APIs and answers that ours does not have."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from struct import Struct
from typing import Any, Final

from strandline.wire.api import KNOWN_APIS, ApiKey
from strandline.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from strandline.wire.messages.find_coordinator import FindCoordinatorResponse
from strandline.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from strandline.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from strandline.wire.registry import decode_request, encode_response

Answer = Callable[[Any], Any]
NODE_ID: Final = 7
_LENGTH: Final = Struct(">i")
_UNKNOWN_TOPIC: Final = 3
_LATEST: Final = -1


class ScriptedWire:
    """Answers the APIs of `answers`, and announces no others. `asked` has every request but ApiVersions.

    It calls itself broker 7, coordinates everything, and leads the partitions of `topics` (name: how many), whose logs
    go from 0 to 100. `newest` limits the version of an API.
    """

    def __init__(
        self, answers: Mapping[ApiKey, Answer], topics: Mapping[str, int], newest: Mapping[ApiKey, int]
    ) -> None:
        self.asked: list[Any] = []
        self.port = 0
        self._topics = topics
        self._newest = newest
        self._answers: dict[ApiKey, Answer] = {
            ApiKey.API_VERSIONS: self._versions,
            ApiKey.METADATA: self._metadata,
            ApiKey.FIND_COORDINATOR: lambda _: FindCoordinatorResponse(
                node_id=NODE_ID, host="127.0.0.1", port=self.port
            ),
            ApiKey.LIST_OFFSETS: self._offsets,
            **answers,
        }

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def requests(self, kind: type[Any]) -> list[Any]:
        """The requests of one class that came so far."""
        return [request for request in self.asked if isinstance(request, kind)]

    def answer(self, frame: bytes) -> bytes:
        """The frame that answers a frame."""
        header, request = decode_request(memoryview(frame))
        api_key = ApiKey(header.api_key)
        if api_key is not ApiKey.API_VERSIONS:
            self.asked.append(request)
        return encode_response(api_key, header.api_version, header.correlation_id, self._answers[api_key](request))

    def _versions(self, _: Any) -> ApiVersionsResponse:
        return ApiVersionsResponse(
            api_keys=[
                ApiVersion(
                    api_key=key, min_version=KNOWN_APIS[key].min, max_version=self._newest.get(key, KNOWN_APIS[key].max)
                )
                for key in sorted(self._answers)
            ]
        )

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        names = self._topics if request.topics is None else [row.name for row in request.topics]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=NODE_ID, host="127.0.0.1", port=self.port)],
            controller_id=NODE_ID,
            topics=[
                MetadataResponseTopic(
                    name=name,
                    error_code=0 if name in self._topics else _UNKNOWN_TOPIC,
                    partitions=[
                        MetadataResponsePartition(partition_index=number, leader_id=NODE_ID, replica_nodes=[NODE_ID])
                        for number in range(self._topics.get(str(name), 0))
                    ],
                )
                for name in names
            ],
        )

    def _offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=row.partition_index, offset=100 if row.timestamp == _LATEST else 0
                        )
                        for row in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )


class _WireServer(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, script: ScriptedWire) -> None:
        super().__init__(("127.0.0.1", 0), _WireConnection)
        self.script = script


class _WireConnection(socketserver.StreamRequestHandler):
    server: _WireServer

    def handle(self) -> None:
        while size := self.rfile.read(_LENGTH.size):
            answer = self.server.script.answer(self.rfile.read(_LENGTH.unpack(size)[0]))
            self.wfile.write(_LENGTH.pack(len(answer)) + answer)


@contextmanager
def scripted_broker(
    answers: Mapping[ApiKey, Answer],
    *,
    topics: Mapping[str, int] | None = None,
    newest: Mapping[ApiKey, int] | None = None,
) -> Iterator[ScriptedWire]:
    """A broker that listens until the end of the block."""
    script = ScriptedWire(answers, topics or {}, newest or {})
    with _WireServer(script) as server:
        script.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield script
        finally:
            server.shutdown()
            thread.join()
