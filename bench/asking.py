"""A bare connection that asks a broker one thing at a time, and the requests that counting and growth need.

Answers are checked: a refused request costs less than a served one.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self
from uuid import UUID

from strandline.records.builder import build_batch
from strandline.records.record import Record
from strandline.server.times.errors import error_codes
from strandline.wire.api import ApiKey
from strandline.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from strandline.wire.registry import decode_response, encode_request

PATIENCE_SECONDS: Final = 300.0
PRODUCE_VERSION: Final = 10
FETCH_VERSION: Final = 16
_LENGTH: Final = struct.Struct(">i")
_PAUSE_SECONDS: Final = 0.05
_VERSIONS: Final[Mapping[ApiKey, int]] = {
    ApiKey.PRODUCE: PRODUCE_VERSION,
    ApiKey.FETCH: FETCH_VERSION,
    ApiKey.LIST_OFFSETS: 7,
    ApiKey.METADATA: 12,
    ApiKey.CREATE_TOPICS: 7,
    ApiKey.DELETE_TOPICS: 6,
    ApiKey.FIND_COORDINATOR: 4,
    ApiKey.JOIN_GROUP: 9,
    ApiKey.SYNC_GROUP: 5,
    ApiKey.HEARTBEAT: 4,
    ApiKey.LEAVE_GROUP: 5,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 1,
    ApiKey.SHARE_GROUP_HEARTBEAT: 1,
    ApiKey.LIST_GROUPS: 5,
    ApiKey.DESCRIBE_GROUPS: 5,
    ApiKey.CONSUMER_GROUP_DESCRIBE: 1,
    ApiKey.SHARE_GROUP_DESCRIBE: 1,
}
_NOT_YET: Final = frozenset({3, 5, 6, 14, 15, 16, 41})  # errors of a topic or coordinator that is not ready


class Refused(RuntimeError):
    """The broker has refused a request that it has to serve."""


class Asker:
    """One connection, used by one thread."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def ask(self, key: ApiKey, request: Any) -> Any:
        """One request and its answer."""
        answer = self.exchange(framed(key, request))
        return decode_response(key, _VERSIONS[key], memoryview(answer))[1]

    def ask_when_ready(self, key: ApiKey, request: Any) -> Any:
        """The answer, which has no error anywhere: asks again while a topic or a coordinator is not ready."""
        given: list[Any] = []

        def ask() -> int:
            given.append(self.ask(key, request))
            return max(error_codes(given[-1]), default=0)

        self._until_ready(ask, key.name)
        return given[-1]

    def send(self, frame: bytes) -> None:
        self._socket.sendall(frame)

    def receive(self) -> bytes:
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        return self._exactly(length)

    def receive_answer(self, key: ApiKey) -> Any:
        return decode_response(key, _VERSIONS[key], memoryview(self.receive()))[1]

    def exchange(self, frame: bytes) -> bytes:
        """The same in bytes; the answer comes without its length."""
        self.send(frame)
        return self.receive()

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionError("The broker closed the connection.")
            data += part
        return bytes(data)

    def repeat(self, key: ApiKey, request: Any, check: Callable[[Any], object]) -> Callable[[], object]:
        """A function that sends the same request again and again. The first answer is checked, the others compared."""
        frame = framed(key, request)
        check(self.ask(key, request))
        size = len(self.exchange(frame))

        def once() -> None:
            if len(self.exchange(frame)) != size:
                raise Refused(f"{key.name} was not answered as the first time.")

        return once

    # Topics

    def create(self, name: str, partitions: int, **configs: str) -> UUID:
        """Create a topic; returns its id when every partition is served."""
        entries = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=entries)
        answer = self.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=[topic], timeout_ms=60_000))
        served(answer.topics[0].error_code, f"creating {name}")
        self.wait_served(name, partitions)
        return self.topic_id(name)

    def wait_served(self, name: str, partitions: int) -> None:
        """Returns when the leader of each partition serves it."""
        numbers = [ListOffsetsPartition(partition_index=number, timestamp=-1) for number in range(partitions)]
        ends = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=numbers)])
        self._until_ready(
            lambda: max(one.error_code for one in self.ask(ApiKey.LIST_OFFSETS, ends).topics[0].partitions), name
        )

    def topic_id(self, name: str) -> UUID:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
        found: UUID = self.ask(ApiKey.METADATA, asked).topics[0].topic_id
        return found

    def _until_ready(self, error_code: Callable[[], int], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (code := error_code()) in _NOT_YET:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what} is not ready after {PATIENCE_SECONDS:g} s: error {code}.")
            time.sleep(_PAUSE_SECONDS)
        served(code, what)

    # Groups

    def find_coordinator(self, group: str) -> None:
        """Returns when the group has a coordinator: the first question makes the broker create a topic."""
        request = FindCoordinatorRequest(coordinator_keys=[group])
        self._until_ready(
            lambda: int(self.ask(ApiKey.FIND_COORDINATOR, request).coordinators[0].error_code), f"group {group}"
        )

    def join_request(self, group: str, member_id: str) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=group,
            member_id=member_id,
            session_timeout_ms=300_000,
            rebalance_timeout_ms=300_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=bytes(10))],
        )

    def new_member_id(self, group: str) -> str:
        """Of a classic group, which then waits for the member to join."""
        given: list[str] = []

        def ask() -> int:
            answer = self.ask(ApiKey.JOIN_GROUP, self.join_request(group, ""))
            given.append(answer.member_id)
            return 0 if answer.error_code == _MEMBER_ID_REQUIRED else int(answer.error_code)

        self._until_ready(ask, f"group {group}")
        return given[-1]

    def send_sync(self, group: str, member_id: str, generation: int, members: Sequence[str]) -> None:
        """Of a member; the leader says what each has."""
        shares = [SyncGroupRequestAssignment(member_id=member, assignment=b"all") for member in members]
        request = SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=shares,
        )
        self.send(framed(ApiKey.SYNC_GROUP, request))


_MEMBER_ID_REQUIRED: Final = 79


def framed(key: ApiKey, request: Any, version: int | None = None) -> bytes:
    """A request as it goes over the wire."""
    frame = encode_request(key, _VERSIONS[key] if version is None else version, 1, "counted", request)
    return _LENGTH.pack(len(frame)) + frame


def served(error_code: int, what: str) -> None:
    if error_code:
        raise Refused(f"{what}: error {error_code}.")


def produce_request(topic: str, partition: int = 0) -> ProduceRequest:
    """One record of 100 bytes."""
    data = PartitionProduceData(index=partition, records=bytes(build_batch([Record(0, 1, None, bytes(100))])))
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])])


def fetch_request(
    topic_id: UUID, partitions: int, *, session: tuple[int, int] = (0, -1), offset: int = 0, max_wait_ms: int = 0
) -> FetchRequest:
    """Of so many partitions; with none of them, what a session asks for again."""
    asked = [FetchPartition(partition=n, fetch_offset=offset, partition_max_bytes=1 << 20) for n in range(partitions)]
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=50 << 20,
        session_id=session[0],
        session_epoch=session[1],
        topics=[FetchTopic(topic_id=topic_id, partitions=asked)] if asked else [],
    )


class FetchSession:
    """A session over partitions that are read to their end. `again` asks for what is new."""

    def __init__(self, asker: Asker, whole: FetchRequest) -> None:
        self._asker, self._epoch = asker, 0
        whole.session_id, whole.session_epoch = 0, 0
        answer = asker.ask(ApiKey.FETCH, whole)
        served(answer.error_code or not answer.session_id, "a Fetch session")
        self._id = answer.session_id
        self._offsets: dict[tuple[UUID, int], int] = {}

    def again(self) -> None:
        """Nothing is new."""
        answer = self._ask([])
        served(bool(answer.responses), "an incremental Fetch with nothing new")

    def next_record(self, topic_id: UUID, partition: int) -> None:
        """The next record of one partition, which is there already."""
        offset = self._offsets.get((topic_id, partition), 0)
        asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        answer = self._ask([FetchTopic(topic_id=topic_id, partitions=[asked])])
        served([len(topic.partitions) for topic in answer.responses] != [1], "an incremental Fetch with one record")
        self._offsets[topic_id, partition] = offset + 1

    def _ask(self, topics: list[FetchTopic]) -> Any:
        self._epoch += 1
        request = fetch_request(UUID(int=0), 0, session=(self._id, self._epoch))
        request.topics = topics
        answer = self._asker.ask(ApiKey.FETCH, request)
        served(answer.error_code, "an incremental Fetch")
        return answer
