"""Listeners and the set of open connections."""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from strandline.clock import Clock
from strandline.config import NetworkSettings
from strandline.errors import StrandlineError
from strandline.server.buffers import BufferPool
from strandline.server.connection import Connection
from strandline.server.exchange import Exchange
from strandline.server.leaving import has_event
from strandline.server.memory import ClientMemory
from strandline.server.page_cache import PageCache

logger = logging.getLogger(__name__)

_SHARED_BUFFER_BYTES: Final = 256 * 1024
_PEEK_BYTES: Final = 4 * 1024
_ACCEPTS_PER_TURN: Final = 64
_ACCEPT_PAUSE_SECONDS: Final = 0.5
_MAX_SWEEP_SECONDS: Final = 5.0
STUCK_SECONDS: Final = (
    10.0  # a client that reads nothing for so long is closed, if others need the memory of its answers
)
_KAFKA_BUFFER_DEFAULT: Final = 102_400
_DRAIN_ANSWERS_SECONDS: Final = 1.0
_DRAIN_UPLOADS_SECONDS: Final = 4.0
_DRAIN_LINGER_SECONDS: Final = 0.25

Peer: TypeAlias = tuple[str, int]
"""The address and the port of a client."""


class CannotListen(StrandlineError):
    """A listener's address cannot be bound."""


class Dispatcher(Protocol):
    """Serves requests."""

    def dispatch(self, exchange: Exchange, frame: memoryview) -> None:
        """Start serving. The frame is valid until this returns, unless the exchange holds it.

        Raises MalformedRequest, upon which the connection is closed.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundListener:
    """A listener that accepts connections. `port` is the real one, also when port 0 was asked for."""

    name: str
    host: str
    port: int


class NetworkServer:
    """Accepts connections, lends them buffers, and closes them when they idle for too long."""

    def __init__(self, settings: NetworkSettings, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._dispatcher: Dispatcher | None = None
        self.pool = BufferPool()
        self.pages = PageCache(loop)
        self.max_request_bytes = settings.socket_request_max_bytes
        self.shared_buffer = memoryview(bytearray(_SHARED_BUFFER_BYTES))
        self.peek_buffer = self.shared_buffer[:_PEEK_BYTES]
        self.bytes_in = 0
        self.bytes_out = 0
        self.connections: set[Connection] = set()
        self.on_closed: list[Callable[[int], None]] = []
        """Each is called with the number of a connection when that is closed."""
        self.accepted: Counter[str] = Counter()
        """Connections that were accepted, by listener."""
        self.closed: Counter[str] = Counter()
        self._settings = settings
        self.memory = ClientMemory(settings, has_room=self._wake_connections)
        self.is_draining = False
        """True while no request is read, because the broker stops."""
        self.suspended = asyncio.Event()
        """Set while no request is read, because this process did not run for a while: see `suspension`."""
        self.is_holding = False
        """True while no request is read for one of the two reasons."""
        self.awake_until = math.inf
        self._per_host: Counter[str] = Counter()
        self._per_host_limits = settings.connections_per_ip_overrides
        self._numbers = itertools.count(1)
        self._sockets: list[tuple[socket.socket, str]] = []
        self._sweep_handle: asyncio.TimerHandle | None = None
        self._bytes_at_last_sweep = 0
        self._swept_at = self._looked_until = loop.time()

    # Listening

    def bind(self, name: str, host: str, port: int) -> BoundListener:
        """Bind an address. Clients can connect, and are served after `start`. Raises CannotListen."""
        try:
            family, _, _, _, address = socket.getaddrinfo(
                host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            sock = socket.socket(family, socket.SOCK_STREAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
            sock.listen(max(self._settings.socket_listen_backlog_size, 1024))
        except OSError as error:
            where = f"{host or '*'}:{port}"
            raise CannotListen(
                f"Listener {name} cannot use {where}: {error}. Choose another address in `listeners` (or --listen)."
            ) from error
        sock.setblocking(False)
        self._sockets.append((sock, name))
        return BoundListener(name=name, host=host, port=sock.getsockname()[1])

    def start(self, dispatcher: Dispatcher) -> None:
        """Serve the clients of every bound listener."""
        self._dispatcher = dispatcher
        for sock, name in self._sockets:
            self._listen(sock, name)
        self._schedule_sweep()

    def _listen(self, sock: socket.socket, name: str) -> None:
        if sock.fileno() >= 0:
            self.loop.add_reader(sock.fileno(), self._on_acceptable, sock, name)

    @property
    def dispatcher(self) -> Dispatcher:
        """Serves the requests. Set as soon as connections are accepted."""
        if self._dispatcher is None:
            raise RuntimeError("The server has not been started.")
        return self._dispatcher

    def _on_acceptable(self, listening: socket.socket, name: str) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            try:
                sock, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # Usually no file descriptors are left. Without a pause the event loop would do nothing but try again.
                logger.error("listener %s cannot accept a connection, trying again soon: %s", name, error)
                self.loop.remove_reader(listening.fileno())
                self.loop.call_later(_ACCEPT_PAUSE_SECONDS, self._listen, listening, name)
                return
            self._open(sock, name, (str(address[0]), int(address[1])))

    def _open(self, sock: socket.socket, listener: str, peer: Peer) -> None:
        host, _ = peer
        limit = self._per_host_limits.get(host, self._settings.max_connections_per_ip)
        if self._per_host[host] >= limit:
            logger.warning("refusing a connection from %s: max.connections.per.ip is %d", host, limit)
            sock.close()
            return
        if len(self.connections) >= self._settings.max_connections:
            self._close_longest_idle()
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._size_buffers(sock)
        self._per_host[host] += 1
        self.accepted[listener] += 1
        self.connections.add(Connection(self, sock, listener=listener, peer=peer, number=next(self._numbers)))

    def _size_buffers(self, sock: socket.socket) -> None:
        """The kernel sizes them, unless a size is set: Kafka's default of 100 KB costs a fifth of the throughput."""
        if self._settings.socket_send_buffer_bytes not in (-1, _KAFKA_BUFFER_DEFAULT):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._settings.socket_send_buffer_bytes)
        if self._settings.socket_receive_buffer_bytes not in (-1, _KAFKA_BUFFER_DEFAULT):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._settings.socket_receive_buffer_bytes)

    def _close_longest_idle(self) -> None:
        """Make room for a connection beyond max.connections, as Kafka does."""
        candidates = [connection for connection in self.connections if not connection.is_busy] or self.connections
        if candidates:
            limit = self._settings.max_connections
            min(candidates, key=lambda c: c.last_active).close(f"max.connections is {limit}, and it idled for longest")

    def reconfigure(self, settings: NetworkSettings) -> None:
        """Dynamic settings changed."""
        self._settings = settings
        self._per_host_limits = settings.connections_per_ip_overrides

    # Connections

    @property
    def listener_names(self) -> list[str]:
        """The listeners that accept connections."""
        return [name for _, name in self._sockets]

    def forget(self, connection: Connection) -> None:
        """The connection is closed."""
        self.connections.discard(connection)
        for listener in self.on_closed:
            listener(connection.connection_id)
        self.closed[connection.listener] += 1
        self._per_host[connection.client_host] -= 1
        if self._per_host[connection.client_host] <= 0:
            del self._per_host[connection.client_host]

    def hold_requests(self) -> None:
        """Read no further request until `serve_again`: this process did not run for a while."""
        self.is_holding, self.awake_until = True, math.inf
        self.suspended.set()

    def serve_again(self) -> None:
        """Read what was held back by `hold_requests`."""
        self.is_holding = self.is_draining
        self._wake_connections()

    def _wake_connections(self) -> None:
        for connection in tuple(self.connections):
            connection.wake()

    def _schedule_sweep(self) -> None:
        idle_seconds = self._settings.connections_max_idle_ms / 1000
        period = min(max(idle_seconds / 2, 0.05), _MAX_SWEEP_SECONDS) if idle_seconds > 0 else _MAX_SWEEP_SECONDS
        self._sweep_handle = self.loop.call_later(period, self._sweep)

    def _sweep(self) -> None:
        """Close idle connections; give memory back when nothing has been received for a while."""
        idle_ms = self._settings.connections_max_idle_ms
        if idle_ms >= 0:
            oldest = self.loop.time() - idle_ms / 1000
            for connection in [c for c in self.connections if c.last_active < oldest]:
                if connection.is_stuck:
                    connection.close(f"it has not read any of its answers for {idle_ms} ms (connections.max.idle.ms)")
                elif not connection.is_busy:
                    connection.close(None)
        if self.memory.answers.is_full:
            self._close_stuck()
        self._look_for_resets()
        if self.bytes_in == self._bytes_at_last_sweep:
            self.pool.trim()
        self._bytes_at_last_sweep = self.bytes_in
        self._schedule_sweep()

    def _look_for_resets(self) -> None:
        """Look once at each connection after its last activity: with that, a reset may have been missed."""
        since, until = self._looked_until, self._swept_at
        for connection in [c for c in self.connections if since <= c.last_active < until]:
            if has_event(connection.sock):
                connection.on_readable()
        self._looked_until, self._swept_at = until, self.loop.time()

    def _close_stuck(self) -> None:
        """Close clients that do not read, the longest silent first, until there is room for the answers of others."""
        latest = self.loop.time() - STUCK_SECONDS
        stuck = [c for c in self.connections if c.is_stuck and c.holds_answers and c.last_active < latest]
        for connection in sorted(stuck, key=lambda c: c.last_active):
            if not self.memory.answers.is_full:
                break
            connection.close(
                f"it has not read any of its answers for {STUCK_SECONDS:.0f} s, "
                "and strandline.queued.max.answer.bytes are held by such answers"
            )

    def stop_listening(self) -> None:
        """Accept no further connection."""
        for sock, _ in self._sockets:
            self.loop.remove_reader(sock.fileno())
            sock.close()
        self._sockets.clear()

    async def drain(self, clock: Clock, *, is_uploading: Callable[[], bool]) -> None:
        """The broker stops: read no further request, send the answers to records that were appended, then ask every
        client to close its connection.

        A producer without its answers would send several batches again after the restart, of which a restarted log
        recognises only the newest. Answers that wait for an upload to object storage get more time.
        """
        self.is_draining = self.is_holding = True
        await _wait_while(lambda: self._owes_answers, _DRAIN_ANSWERS_SECONDS, clock)
        await _wait_while(lambda: self._owes_answers and is_uploading(), _DRAIN_UPLOADS_SECONDS, clock)
        for connection in tuple(self.connections):
            connection.end()
        await _wait_while(lambda: bool(self.connections), _DRAIN_LINGER_SECONDS, clock)

    @property
    def _owes_answers(self) -> bool:
        return any(connection.owes_answer for connection in self.connections)

    def close(self) -> None:
        """Close every socket."""
        self.stop_listening()
        if self._sweep_handle is not None:
            self._sweep_handle.cancel()
        for connection in tuple(self.connections):
            connection.close(None)
        self.pages.close()


async def _wait_while(holds: Callable[[], bool], seconds: float, clock: Clock) -> None:
    deadline = clock.monotonic() + seconds
    while holds() and clock.monotonic() < deadline:
        await clock.sleep(0.01)


def bound_addresses(listeners: Sequence[BoundListener]) -> str:
    """For log lines: NAME://host:port of each listener."""
    return ", ".join(f"{listener.name}://{listener.host or '*'}:{listener.port}" for listener in listeners)
