"""A writer that hides nothing of the cluster: bare connections, one for each partition, which follow leaders at once.

A client library has timeouts, and backoff that doubles: with it a pause is partly its own. Here each partition has one
request under way, acks=all, one record. It is repeated every 20 ms where it is refused. Where it is not answered for a
tenth of a second, brokers are asked for the leader until one of them names another one, and the record goes there.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping
from contextlib import closing, suppress
from typing import Any, Final

from bench.asking import produce_request
from bench.cluster.recording import Writer
from bench.cluster.view import NO_LEADER
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.registry import decode_response, encode_request

_LENGTH: Final = struct.Struct(">i")
_PRODUCE_VERSION: Final = 10
_METADATA_VERSION: Final = 12
_AGAIN_SECONDS: Final = 0.02
_SLOW_SECONDS: Final = 0.1
_LOOK_SECONDS: Final = 1.0
_UNKNOWN: Final = "no leader is known"
_LOST: Final = "connection lost"
_MOVED: Final = "not answered by a leader that was replaced"


class BareWriter(Writer):
    """Writes to brokers at these ports of this machine, by node id."""

    def __init__(self, ports: Mapping[int, int], topic: str, partitions: int, interval: float) -> None:
        super().__init__(partitions)
        self._ports, self._topic, self._partitions, self._interval = ports, topic, partitions, interval
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()

    def _work(self) -> None:
        asyncio.run(self._run())

    def _ask_to_stop(self) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # it has failed, and its loop is closed: the result says why
                self._loop.call_soon_threadsafe(self._stop.set)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        leaders = _Leaders(self._ports, self._topic)
        async with asyncio.TaskGroup() as tasks:
            works = [tasks.create_task(leaders.watch(node_id)) for node_id in self._ports]
            works += [tasks.create_task(self._write(number, leaders)) for number in range(self._partitions)]
            await self._stop.wait()
            for work in works:
                work.cancel()

    async def _write(self, partition: int, leaders: _Leaders) -> None:
        frame = encode_request(ApiKey.PRODUCE, _PRODUCE_VERSION, 1, "pauses", produce_request(self._topic, partition))
        leaders.seek(partition)
        with closing(_Connection(self._ports)) as connection:
            while True:
                error = await self._ask(connection, frame, partition, leaders)
                await asyncio.sleep(self._note(partition, error, leaders))

    def _note(self, partition: int, error: str | None, leaders: _Leaders) -> float:
        """What has become of a record: seconds until the next one."""
        if error is None:
            self.recording.acknowledge(partition)
            leaders.found(partition)
            return self._interval
        leaders.seek(partition)
        if error != _UNKNOWN:
            self.recording.fail(error)
        return 0.0 if error == _MOVED else _AGAIN_SECONDS

    async def _ask(self, connection: _Connection, frame: bytes, partition: int, leaders: _Leaders) -> str | None:
        """One record to the leader: the error, or none. Gives up when another leader is named."""
        epoch, node_id = leaders.of(partition)
        if node_id == NO_LEADER:
            return _UNKNOWN
        answer = asyncio.ensure_future(connection.exchange(node_id, frame))
        try:
            await asyncio.wait({answer}, timeout=_SLOW_SECONDS)
            if not answer.done():
                leaders.seek(partition)
            while not answer.done():
                if leaders.of(partition)[0] > epoch:
                    connection.close()
                    return _MOVED
                await asyncio.wait({answer}, timeout=_AGAIN_SECONDS)
            return _produce_error(answer.result())
        except (OSError, EOFError):
            connection.close()
            return _LOST
        finally:
            answer.cancel()


class _Leaders:
    """The newest leader that any broker names for each partition. Brokers are asked while a partition seeks its own."""

    def __init__(self, ports: Mapping[int, int], topic: str) -> None:
        self._ports = ports
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        self._request = encode_request(ApiKey.METADATA, _METADATA_VERSION, 1, "pauses", asked)
        self._known: dict[int, tuple[int, int]] = {}
        self._seeking: set[int] = set()
        self._is_asked = asyncio.Event()

    def of(self, partition: int) -> tuple[int, int]:
        """Its epoch, and the node id; NO_LEADER where none is known."""
        return self._known.get(partition, (-1, NO_LEADER))

    def seek(self, partition: int) -> None:
        self._seeking.add(partition)
        self._is_asked.set()

    def found(self, partition: int) -> None:
        self._seeking.discard(partition)
        if not self._seeking:
            self._is_asked.clear()

    async def watch(self, node_id: int) -> None:
        """Ask one broker, as long as there is something to ask."""
        with closing(_Connection(self._ports)) as connection:
            while True:
                await self._is_asked.wait()
                try:
                    async with asyncio.timeout(_LOOK_SECONDS):
                        self._learn(await connection.exchange(node_id, self._request))
                except (OSError, EOFError):  # timeouts too: dead, or suspended
                    connection.close()
                await asyncio.sleep(_AGAIN_SECONDS)

    def _learn(self, answer: bytes) -> None:
        (topic,) = _decoded(ApiKey.METADATA, _METADATA_VERSION, answer).topics
        for one in topic.partitions:
            if one.leader_epoch >= self.of(one.partition_index)[0] and one.leader_id != NO_LEADER:
                self._known[one.partition_index] = (one.leader_epoch, one.leader_id)


class _Connection:
    """To one broker at a time, opened when it is needed, with one request under way.

    Raises OSError, and EOFError where the broker closes it. It has to be closed then.
    """

    def __init__(self, ports: Mapping[int, int]) -> None:
        self._ports = ports
        self._node_id = NO_LEADER
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def exchange(self, node_id: int, frame: bytes) -> bytes:
        if node_id != self._node_id:
            self.close()
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._ports[node_id])
            self._node_id = node_id
        reader, writer = self._streams
        writer.write(_LENGTH.pack(len(frame)) + frame)
        (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        return await reader.readexactly(size)

    def close(self) -> None:
        streams, self._streams = self._streams, None
        if streams is not None:
            streams[1].close()


def _produce_error(answer: bytes) -> str | None:
    (topic,) = _decoded(ApiKey.PRODUCE, _PRODUCE_VERSION, answer).responses
    (found,) = topic.partition_responses
    return ErrorCode(found.error_code).name if found.error_code else None


def _decoded(key: ApiKey, version: int, answer: bytes) -> Any:
    return decode_response(key, version, memoryview(answer))[1]
