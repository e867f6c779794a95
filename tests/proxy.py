"""A TCP proxy that understands just enough of Kafka's framing to break connections and answers at bad moments."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto

_LENGTH = struct.Struct(">i")
_REQUEST = struct.Struct(">hhi")


class Fate(Enum):
    """What happens to one request and its response."""

    PASS = auto()
    LOSE_REQUEST = auto()  # the broker never sees it; both sides are cut
    LOSE_RESPONSE = auto()  # the broker does the work, the client gets no answer; both sides are cut
    CUT_RESPONSE = auto()  # the client gets half of the response, then the end
    CHANGE_RESPONSE = auto()  # one bit of the last byte of the response is another one; nothing is cut


# Decides by API key and by the number of requests of that API so far, over all connections, starting at 1.
Policy = Callable[[int, int], Fate]


class Proxy:
    """Listens on a port of its own and forwards to the broker. Every connection has two threads. A block."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._target: tuple[str, int] | None = None
        self._counts: dict[int, int] = {}
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self.broken = 0

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def forward_to(self, port: int) -> None:
        """Where connections go from now on; until then they are accepted and closed."""
        self._target = ("127.0.0.1", port)

    def __enter__(self) -> Proxy:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            sockets = list(self._sockets)
        for one in sockets:
            _hang_up(one)
        for thread in self._threads:
            thread.join(10)

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                broker = socket.create_connection(self._target) if self._target else None
            except OSError:
                return
            if broker is None:
                client.close()
                continue
            with self._lock:
                self._sockets |= {client, broker}
            exchange = _Exchange(client, broker)
            self._start(self._requests, exchange)
            self._start(self._responses, exchange)

    def _requests(self, exchange: _Exchange) -> None:
        try:
            while (frame := _read_frame(exchange.client)) is not None:
                api_key, _, correlation_id = _REQUEST.unpack_from(frame, 4)
                fate = self._decide(api_key)
                if fate is Fate.LOSE_REQUEST:
                    break
                exchange.fates[correlation_id] = fate
                exchange.broker.sendall(frame)
        except OSError:
            pass  # one side went away; the other one is told below
        finally:
            self._close(exchange)

    def _responses(self, exchange: _Exchange) -> None:
        try:
            while (frame := _read_frame(exchange.broker)) is not None:
                (correlation_id,) = _LENGTH.unpack_from(frame, 4)
                fate = exchange.fates.pop(correlation_id, Fate.PASS)
                if fate is Fate.CHANGE_RESPONSE:
                    exchange.client.sendall(frame[:-1] + bytes([frame[-1] ^ 1]))
                    continue
                if fate is Fate.CUT_RESPONSE:
                    exchange.client.sendall(frame[: len(frame) // 2])
                if fate is not Fate.PASS:
                    break
                exchange.client.sendall(frame)
        except OSError:
            pass  # one side went away; the other one is told below
        finally:
            self._close(exchange)

    def _decide(self, api_key: int) -> Fate:
        with self._lock:
            count = self._counts.get(api_key, 0) + 1
            self._counts[api_key] = count
            fate = self._policy(api_key, count)
            self.broken += fate is not Fate.PASS
            return fate

    def _close(self, exchange: _Exchange) -> None:
        _hang_up(exchange.client)
        _hang_up(exchange.broker)
        with self._lock:
            self._sockets -= {exchange.client, exchange.broker}


class _Exchange:
    """One client connection, the broker connection behind it, and what shall happen to responses still to come."""

    def __init__(self, client: socket.socket, broker: socket.socket) -> None:
        self.client, self.broker = client, broker
        self.fates: dict[int, Fate] = {}


def _read_frame(source: socket.socket) -> bytes | None:
    """One frame with its length, or None at the end of the stream."""
    head = _read_exactly(source, 4)
    if head is None:
        return None
    body = _read_exactly(source, _LENGTH.unpack(head)[0])
    return None if body is None else head + body


def _read_exactly(source: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        part = source.recv(min(65536, size - len(data)))
        if not part:
            return None
        data += part
    return bytes(data)


def _hang_up(one: socket.socket) -> None:
    with suppress(OSError):  # it already went away
        one.shutdown(socket.SHUT_RDWR)
    one.close()
