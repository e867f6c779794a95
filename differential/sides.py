"""One of the two brokers under comparison: its process, its connections, and the ids that only it knows."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from bench.systems import Strandline, StrandlineBroker

from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.registry import encode_request

PATIENCE_SECONDS: Final = 40.0
"""How long an answer may take, on a machine that has other things to do."""
CLIENT_ID: Final = "differential"
_LENGTH: Final = struct.Struct(">i")

Through = Callable[[str, int], int]
"""The port to connect to instead of that of a broker, by the name of its side: tests put a proxy in between."""


def directly(side: str, port: int) -> int:
    """No proxy."""
    return port


class Closed(Exception):
    """The broker has closed the connection."""


class Wire:
    """One connection. A request is sent and its answer received apart, so that both brokers work at a time."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.last_id = 0

    def close(self) -> None:
        self._socket.close()

    def encode(self, api: ApiKey, version: int, message: Any) -> bytes:
        """A frame with the next correlation id: equal on both sides, for connections that were used alike."""
        self.last_id += 1
        return encode_request(api, version, self.last_id, CLIENT_ID, message)

    def send(self, frame: bytes) -> None:
        """Raises Closed."""
        try:
            self._socket.sendall(_LENGTH.pack(len(frame)) + frame)
        except ConnectionError as error:
            raise Closed from error

    def receive(self) -> bytes:
        """The next frame without its length. Raises Closed, TimeoutError."""
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        return self._exactly(length)

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                part = self._socket.recv(size - len(data))
            except ConnectionError as error:
                raise Closed from error
            if not part:
                raise Closed
            data += part
        return bytes(data)


@dataclass(slots=True)
class Side:
    """A broker, and what the comparison has opened there."""

    name: str
    broker: StrandlineBroker
    through: Through = directly
    topic_ids: dict[str, UUID] = field(default_factory=dict)
    wires: dict[str, Wire] = field(default_factory=dict)
    sessions: dict[int, int] = field(default_factory=dict)
    """The broker's ids of Fetch sessions, by our numbers."""

    @property
    def port(self) -> int:
        return int(self.broker.bootstrap.rpartition(":")[2])

    def start(self) -> None:
        self.broker.start()

    def kill(self) -> None:
        """SIGKILL, and every connection is gone."""
        self.hang_up()
        self.broker.process.kill()

    def close(self) -> None:
        self.hang_up()
        if self.broker.has_process:
            self.broker.process.kill()

    def hang_up(self) -> None:
        for wire in self.wires.values():
            wire.close()
        self.wires.clear()
        self.sessions.clear()

    def wire(self, name: str) -> Wire:
        """The connection of this name, opened when it is first used."""
        if name not in self.wires:
            self.wires[name] = Wire(self.through(self.name, self.port))
        return self.wires[name]

    def drop(self, name: str) -> None:
        """Close a connection, if it is there; the next use opens another one."""
        if name in self.wires:
            self.wires.pop(name).close()

    def client(self) -> Client:
        """A connection for preparations, which are not compared."""
        return Client.connect("127.0.0.1", self.port, timeout_s=PATIENCE_SECONDS)

    def topic_of(self, topic_id: UUID) -> str | None:
        """The name of a topic under comparison."""
        return next((name for name, known in self.topic_ids.items() if known == topic_id), None)


def new_side(name: str, system: Strandline, directory: Path, settings: Mapping[str, str], through: Through) -> Side:
    """A broker on a data directory of its own, not started yet."""
    return Side(name, system.new_broker(directory / name, settings), through)
