"""A connection between a broker and one of its stores, which breaks when a test wants it to."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

_SIZE = 1 << 16


class Link:
    """Listens on a port of its own and forwards to a server. Every connection has two threads. A block."""

    def __init__(self, target: tuple[str, int] | str, listen_at: str | None = None) -> None:
        """`target` is an address or the path of a Unix socket, and so may be where it listens."""
        self._target = target
        if listen_at is None:
            self._listener = socket.create_server(("127.0.0.1", 0))
        else:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(listen_at)
            self._listener.listen()
        self._pairs: set[_Pair] = set()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._is_down = False
        self._flows = threading.Event()
        self._flows.set()
        self._marker, self._every, self._seen = b"", 0, 0
        self.lost = 0
        """Answers that were kept from the broker."""

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def lose_answers(self, marker: bytes, *, every: int) -> None:
        """From now on, of the requests with `marker` each n-th is carried out, but its connection ends without answer.

        `every=0` ends this.
        """
        self._marker, self._every, self._seen = marker, every, 0

    def go_down(self) -> None:
        """Cut all connections and take no new ones."""
        self._is_down = True
        with self._lock:
            pairs = list(self._pairs)
        for pair in pairs:
            pair.cut()

    def hang(self) -> None:
        """Keep all connections and take new ones, but let nothing through. What was sent arrives when it comes back."""
        self._flows.clear()

    def come_back(self) -> None:
        self._is_down = False
        self._flows.set()

    def __enter__(self) -> Link:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._flows.set()
        self.go_down()
        for thread in self._threads:
            thread.join(10)

    def _start(self, target: object, *arguments: object) -> None:
        assert callable(target)
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            server = None if self._is_down else self._connect()
            if server is None:
                client.close()
                continue
            if client.family != socket.AF_UNIX:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pair = _Pair(client, server)
            with self._lock:
                self._pairs.add(pair)
            self._start(self._requests, pair)
            self._start(self._answers, pair)

    def _connect(self) -> socket.socket | None:
        try:
            if not isinstance(self._target, str):
                return socket.create_connection(self._target)
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            return server
        except OSError:
            return None

    def _requests(self, pair: _Pair) -> None:
        with suppress(OSError):  # one side went away; the other one is told below
            while data := pair.client.recv(_SIZE):
                if self._every and self._marker in data:
                    self._seen += 1
                    pair.is_lost = self._seen % self._every == 0
                self._flows.wait()
                pair.server.sendall(data)
        self._end(pair)

    def _answers(self, pair: _Pair) -> None:
        with suppress(OSError):
            while data := pair.server.recv(_SIZE):
                if pair.is_lost:
                    self.lost += 1
                    break
                self._flows.wait()
                pair.client.sendall(data)
        self._end(pair)

    def _end(self, pair: _Pair) -> None:
        pair.cut()
        with self._lock:
            self._pairs.discard(pair)


class _Pair:
    """The two ends of one connection."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client, self.server = client, server
        self.is_lost = False

    def cut(self) -> None:
        for end in (self.client, self.server):
            with suppress(OSError):  # it already went away
                end.shutdown(socket.SHUT_RDWR)
            end.close()
