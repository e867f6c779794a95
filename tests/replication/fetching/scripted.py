"""A leader over a real socket that answers Fetch as a test tells it to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from struct import Struct

from strandline.wire.api import SERVED_APIS, ApiKey
from strandline.wire.fetch_codec import FetchAnswer, FetchRequest, read_fetch_request, write_fetch_response
from strandline.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from strandline.wire.messages.describe_cluster import DescribeClusterResponse
from strandline.wire.registry import encode_response, read_request_header
from tests.wire.listening import listening_with

CLUSTER_ID = "cluster-of-the-test"
_LENGTH = Struct(">i")


@dataclass(slots=True)
class InMemory:
    """Records of an answer."""

    data: bytes

    @property
    def length(self) -> int:
        return len(self.data)

    def read(self) -> bytes:
        return self.data


class FetchCall:
    """A Fetch request that waits for its answer."""

    def __init__(self, writer: asyncio.StreamWriter, number: int, version: int, request: FetchRequest) -> None:
        self._writer, self._number, self._version = writer, number, version
        self.request = request

    @property
    def offsets(self) -> list[int]:
        return [entry.fetch_offset for entry in self.request.entries]

    def frame(self, answers: Sequence[FetchAnswer] = (), *, session_id: int = 9, error_code: int = 0) -> bytes:
        parts = write_fetch_response(self._number, self._version, answers, error_code=error_code, session_id=session_id)
        return b"".join(part.data if isinstance(part, InMemory) else bytes(part) for part in parts)  # type: ignore[arg-type]

    def answer(self, *answers: FetchAnswer, session_id: int = 9, error_code: int = 0) -> None:
        self.send(self.frame(answers, session_id=session_id, error_code=error_code))

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    def hang_up(self) -> None:
        self._writer.transport.abort()


class ScriptedLeader:
    """`calls` has the Fetch requests, in the order in which they came; everything else is answered."""

    def __init__(self) -> None:
        self.calls: asyncio.Queue[FetchCall] = asyncio.Queue()
        self.connections = 0
        self.cluster_id = CLUSTER_ID
        self.newest_fetch = 18
        self.port = 0

    async def next_call(self) -> FetchCall:
        return await asyncio.wait_for(self.calls.get(), 20)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while True:
            (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
            frame = memoryview(await reader.readexactly(length))
            header, position = read_request_header(frame)
            if header.api_key == ApiKey.FETCH:
                request = read_fetch_request(frame, position, header.api_version)
                self.calls.put_nowait(FetchCall(writer, header.correlation_id, header.api_version, request))
                continue
            answer = encode_response(
                ApiKey(header.api_key), header.api_version, header.correlation_id, self._message(header.api_key)
            )
            writer.write(_LENGTH.pack(len(answer)) + answer)

    def _message(self, api_key: int) -> ApiVersionsResponse | DescribeClusterResponse:
        if api_key == ApiKey.DESCRIBE_CLUSTER:
            return DescribeClusterResponse(cluster_id=self.cluster_id)
        rows = [
            ApiVersion(
                api_key=key,
                min_version=versions.min,
                max_version=self.newest_fetch if key is ApiKey.FETCH else versions.max,
            )
            for key, versions in SERVED_APIS.items()
        ]
        return ApiVersionsResponse(api_keys=rows)


@asynccontextmanager
async def scripted_leader() -> AsyncIterator[ScriptedLeader]:
    leader = ScriptedLeader()
    async with listening_with(leader.serve) as port:
        leader.port = port
        yield leader
