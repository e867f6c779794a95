"""A raw client: one socket, frames as the test makes them."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from strandline.records.builder import build_batch
from strandline.records.record import Record
from strandline.wire.api import ApiKey
from strandline.wire.messages.api_versions import ApiVersionsRequest
from strandline.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.registry import decode_response, encode_request
from tests.moments import T0
from tests.waiting import wait_until

SECONDS = 20.0
LENGTH = struct.Struct(">i")

API_VERSIONS_VERSION, PRODUCE_VERSION, FETCH_VERSION, LIST_OFFSETS_VERSION, CREATE_TOPICS_VERSION = 3, 9, 12, 7, 7


class Closed(Exception):
    """The broker closed the connection."""


class RawConnection:
    """One connection to the broker. Counts its correlation ids; everything else is up to the test."""

    def __init__(self, bootstrap: str, *, receive_buffer: int | None = None) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(SECONDS)
        self.socket.connect((host, int(port)))
        self._last_id = 0

    def close(self) -> None:
        self.socket.close()

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_frame(self, frame: bytes) -> None:
        self.send_bytes(LENGTH.pack(len(frame)) + frame)

    def send(self, api_key: ApiKey, version: int, request: Any) -> int:
        """Send a request without waiting; its correlation id."""
        self._last_id += 1
        self.send_frame(encode_request(api_key, version, self._last_id, "raw", request))
        return self._last_id

    def receive_frame(self) -> bytes:
        """The next response frame without its length. Raises Closed, TimeoutError."""
        (length,) = LENGTH.unpack(self._receive_exactly(4))
        return self._receive_exactly(length)

    def receive(self, api_key: ApiKey, version: int) -> tuple[int, Any]:
        """Correlation id and message of the next response."""
        return decode_response(api_key, version, memoryview(self.receive_frame()))

    def call(self, api_key: ApiKey, version: int, request: Any) -> Any:
        """Send a request and return the message of its response."""
        sent = self.send(api_key, version, request)
        received, response = self.receive(api_key, version)
        assert received == sent
        return response

    def _receive_exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            try:
                part = self.socket.recv(size - len(parts))
            except ConnectionError as error:
                raise Closed from error
            if not part:
                raise Closed
            parts += part
        return bytes(parts)

    def wait_closed(self) -> None:
        """Return when the broker has closed the connection. Fails if it answers, or does nothing for long."""
        try:
            answer = self.socket.recv(65536)
        except ConnectionError:
            return
        assert answer == b"", f"the broker answered: {answer[:100]!r}"

    def is_answered(self) -> bool:
        """Whether a plain request gets its answer."""
        return bool(self.call(ApiKey.API_VERSIONS, API_VERSIONS_VERSION, api_versions_request()).api_keys)


@contextmanager
def connected(bootstrap: str, *, receive_buffer: int | None = None) -> Iterator[RawConnection]:
    connection = RawConnection(bootstrap, receive_buffer=receive_buffer)
    try:
        yield connection
    finally:
        connection.close()


def api_versions_request() -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name="raw", client_software_version="1.0")


def create_topic(connection: RawConnection, name: str, *, partitions: int = 1, **configs: str) -> None:
    """Create a topic and wait until its partitions have a leader that answers."""
    entries = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=entries)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=20_000)
    response = connection.call(ApiKey.CREATE_TOPICS, CREATE_TOPICS_VERSION, request)
    assert [(one.name, one.error_code) for one in response.topics] == [(name, 0)]
    wait_until(
        lambda: all(end_offset(connection, name, partition)[0] == 0 for partition in range(partitions)),
        what=f"leaders of {name}",
    )


def end_offset(connection: RawConnection, topic: str, partition: int = 0) -> tuple[int, int]:
    """Error code and log end offset of a partition."""
    asked = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=partition, timestamp=-1)])
    request = ListOffsetsRequest(replica_id=-1, topics=[asked])
    [answer] = connection.call(ApiKey.LIST_OFFSETS, LIST_OFFSETS_VERSION, request).topics[0].partitions
    return answer.error_code, answer.offset


def batch(*values: bytes, first_timestamp: int = T0, **how: Any) -> bytes:
    """One record batch with these values."""
    records = [Record(offset, first_timestamp + offset, b"key", value) for offset, value in enumerate(values)]
    return bytes(build_batch(records, **how))


def produce_request(topic: str, records: bytes | None, *, partition: int = 0, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=records)
    return ProduceRequest(
        acks=acks, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )


def produce(connection: RawConnection, topic: str, records: bytes | None, **how: Any) -> tuple[int, int, str | None]:
    """Error code, base offset and error message of one Produce."""
    request = produce_request(topic, records, **how)
    response = connection.call(ApiKey.PRODUCE, PRODUCE_VERSION, request)
    [answer] = response.responses[0].partition_responses
    return answer.error_code, answer.base_offset, answer.error_message


def fetch_request(
    topic: str, offset: int = 0, *, max_wait_ms: int = 0, max_bytes: int = 50_000_000, min_bytes: int = 1
) -> FetchRequest:
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=[FetchTopic(topic=topic, partitions=[asked])],
    )
