"""One client connection: frames in, responses out in the order of the requests.

The socket is ours (no transport in between): bytes are received straight into the buffer a frame is parsed in, and
record sets go from file to socket by sendfile. The rules that keep a broker with many clients fair and small:

- one receive, one flush of at most SEND_BUDGET bytes and a limited number of requests per readable event;
- a request other than Produce is answered before the next one starts, as in Kafka; Produce requests are
  pipelined, since each reserves its place in the log when it arrives (`server.straight` has their short way);
- nothing is read while responses wait for a slow reader, who is cut off after connections.max.idle.ms without progress;
- while memory is short, only connections that would need more of it are not read (`server.memory`).
"""

from __future__ import annotations

import logging
import socket
from collections import deque
from collections.abc import Callable, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Final

from strandline.clock import ticks_ns
from strandline.server.exchange import MAX_IN_FLIGHT, Exchange
from strandline.server.leaving import discard, has_left
from strandline.server.sending import AnswerSender, answers_dropped
from strandline.server.straight_replicated import PRODUCE, ReplicatedExchange
from strandline.wire.primitives import MalformedRequest

if TYPE_CHECKING:
    from strandline.server.buffers import FrameBuffer
    from strandline.server.network import NetworkServer, Peer
    from strandline.server.straight import AlikeRequests
    from strandline.wire.produce_codec import ProduceAnswer

logger = logging.getLogger(__name__)

LARGE_FRAME: Final = 32 * 1024
SMALL_FRAME: Final = 64 * 1024  # read however little memory is left, if the connection has no other request

_I32 = Struct(">i")
_REQUEST_HEAD = Struct(">hhi")


class Connection:
    """State of one connection. Everything runs on the event loop."""

    __slots__ = (
        "_buffer",
        "_carry",
        "_expects_large",
        "_filled",
        "_frame_size",
        "_in_turn",
        "_is_reading",
        "_is_resuming",
        "_loop",
        "_needs_room",
        "_out",
        "_waiting_for",
        "alike",
        "client_host",
        "client_port",
        "connection_id",
        "exchanges",
        "fd",
        "is_closed",
        "last_active",
        "listener",
        "sender",
        "server",
        "sock",
        "uncommitted",
    )

    def __init__(self, server: NetworkServer, sock: socket.socket, *, listener: str, peer: Peer, number: int) -> None:
        self.server, self.sock = server, sock
        self.fd = sock.fileno()
        self.listener = listener
        self.client_host, self.client_port = peer
        self.connection_id = number
        self.is_closed = False
        self._loop = server.loop
        self.last_active = self._loop.time()
        self.exchanges: deque[Exchange] = deque()
        """Requests whose answers have not left yet, in their order."""
        self.sender = AnswerSender(self)
        self._out = self.sender.out
        self._waiting_for: Exchange | None = None
        self._carry: bytearray | None = None
        self._buffer: FrameBuffer | None = None
        self._filled = self._frame_size = 0
        self._expects_large = self._needs_room = False
        """True if the next request is probably large; if it is, and waits until there is memory for it."""
        self.uncommitted = 0
        """Bytes of diskless batches of this connection that wait for their commit."""
        self.alike: AlikeRequests | None = None
        """Knows where the next requests go if they look like those before."""
        self._in_turn = self._is_resuming = False
        self._is_reading = True
        self._loop.add_reader(self.fd, self.on_readable)

    def __repr__(self) -> str:
        return f"connection {self.connection_id} from {self.client_host} ({self.listener})"

    @property
    def is_busy(self) -> bool:
        """True while a request waits for its answer or an answer for its reader."""
        return bool(self.exchanges or self._out.parts)

    @property
    def is_stuck(self) -> bool:
        """True while the client does not read its answers."""
        return bool(self._out.parts) and not self._out.is_loading

    @property
    def is_sending(self) -> bool:
        """True while answers are not sent completely."""
        return bool(self._out.parts)

    @property
    def holds_back(self) -> bool:
        """True while bytes of the client wait to be served, or are not received."""
        return self._carry is not None or not self._is_reading

    @property
    def waiting(self) -> list[int]:
        """The API keys of the requests that wait for their answers."""
        return [exchange.api_key for exchange in self.exchanges if not exchange.is_answered]

    @property
    def holds_answers(self) -> bool:
        """True while answers keep records in memory."""
        return self.sender.holds_records

    @property
    def owes_answer(self) -> bool:
        """True while the client waits for the answer to a Produce request."""
        return bool(self._out.parts) or any(exchange.api_key == PRODUCE for exchange in self.exchanges)

    # Receiving

    def on_readable(self) -> None:
        """There may be bytes to receive."""
        now = self._loop.time()
        if now > self.server.awake_until:
            self.server.hold_requests()
        if self.alike is not None and self._buffer is None and not self._expects_large:
            if self._is_free():
                self.last_active = now
                self._try(self.alike.receive)
                return
            if self._awaits_replicas():
                self.serve_turn(self.alike.receive_in_order, now)
                return
        if self._is_resuming:
            return  # bytes received earlier are served first; they may need more room than a receive leaves
        if self._must_pause():
            if self._waiting_for is not None and self._carry is None and not self._out.parts and has_left(self.sock):
                self.close(None)  # else what it waits for would be kept until then, which may be days
                return
            self._loop.remove_reader(self.fd)
            self._is_reading = False
            return
        self.serve_turn(self._receive, now)

    def serve_turn(self, serve: Callable[[], None], now: float) -> None:
        """Serve requests, then send the finished answers."""
        self._in_turn = True
        self.last_active = now
        self._try(serve)
        self._in_turn = False
        self.send_answers()

    def _try(self, serve: Callable[[], None]) -> None:
        """Serve requests. One that cannot be served ends the connection."""
        try:
            serve()
        except MalformedRequest as error:
            self.close(f"the request cannot be read: {error}")
        except Exception as failure:  # an unforeseen failure of a handler ends this connection only
            logger.exception("a request of %r failed", self)
            self.close(f"a request failed: {failure!r}")

    def _receive(self) -> None:
        buffer = self._buffer
        if buffer is None:
            self._receive_frames()
            return
        self._filled += self.receive_into(buffer.view[self._filled : self._frame_size])
        if self._filled == self._frame_size and not self.is_closed:
            self._buffer = None
            frame = buffer.view[: self._frame_size]
            is_next = self._is_free() or self._awaits_replicas()
            begun = self.alike.serve_frame(frame) if self.alike is not None and is_next else ()
            if begun is None:
                self.server.pool.give_back(buffer)
            else:
                self.dispatch(frame, buffer, begun)

    def _is_free(self) -> bool:
        """True if nothing is going on, so that a request could be answered before anything else happens."""
        server = self.server
        is_busy = self.exchanges or self._out.parts or self._carry is not None or self._is_resuming
        return not (is_busy or server.memory.is_tight or server.is_holding)

    def _awaits_replicas(self) -> bool:
        """True if requests wait for their answers, all of them on the straight path, and there may be more of them."""
        if self._carry is not None or self._is_resuming or self.server.memory.is_tight or self._must_pause():
            return False
        return bool(self.exchanges) and all([isinstance(one, ReplicatedExchange) for one in self.exchanges])

    def keep(self, rest: memoryview) -> None:
        """Serve these bytes in the next turn of the loop, after what others have sent meanwhile."""
        if rest and not self.is_closed:
            self._carry = bytearray(rest)
            self.wake()

    def receive_into(self, room: memoryview) -> int:
        """Receive some bytes; 0 if there are none, or the connection was closed."""
        try:
            count = self.sock.recv_into(room)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self.close(None if isinstance(error, ConnectionError) else f"receiving failed: {error}")
            return 0
        if count == 0:
            self.close(None)
        self.server.bytes_in += count
        return count

    def _receive_frames(self) -> None:
        """Receive into the buffer that all connections share, and serve the frames in it."""
        server = self.server
        # A large frame is usually followed by another: receive only its head; the rest goes where it is parsed.
        room = server.peek_buffer if self._expects_large or server.memory.is_tight else server.shared_buffer
        carry = self._carry or b""
        start = len(carry)
        room[:start] = carry
        count = self.receive_into(room[start:])
        if count:
            self._carry = None
            self.consume(room, start + count)

    def consume(self, view: memoryview, end: int, position: int = 0) -> None:
        """Serve every whole frame in view[position:end]; keep what is left."""
        self._needs_room = False
        served = 0
        while end - position >= 4 and served < MAX_IN_FLIGHT and not self._must_pause():
            (size,) = _I32.unpack_from(view, position)
            if size <= 0 or size > self.server.max_request_bytes:
                limit = self.server.max_request_bytes
                raise MalformedRequest(f"A frame of {size} bytes is announced; socket.request.max.bytes is {limit}.")
            if size > SMALL_FRAME and self.server.memory.frames.is_full:
                self._needs_room = True
                break
            start = position + 4
            if end - start < size:
                self._start_frame(view[start:end], size)
                return
            self._expects_large = size >= LARGE_FRAME
            self.dispatch(view[start : start + size], None)
            position, served = start + size, served + 1
            if self.is_closed:
                return
        if position < end:
            self._carry = bytearray(view[position:end])

    def _start_frame(self, head: memoryview, size: int) -> None:
        buffer = self.server.pool.take(size)
        self._filled = len(head)
        self._frame_size = size
        self._expects_large = size >= LARGE_FRAME
        buffer.view[: self._filled] = head
        self._buffer = buffer

    def dispatch(self, frame: memoryview, buffer: FrameBuffer | None, begun: Sequence[ProduceAnswer] = ()) -> None:
        """Serve one request; its first partitions have these answers already."""
        if len(frame) < _REQUEST_HEAD.size:
            raise MalformedRequest(f"A frame of {len(frame)} bytes is too short for a request header.")
        exchange = Exchange(self, *_REQUEST_HEAD.unpack_from(frame), begun=begun)
        if buffer is not None:
            exchange.hold_frame(buffer)
        self.exchanges.append(exchange)
        exchange.starts(self.last_active)
        try:
            self.server.dispatcher.dispatch(exchange, frame)
        except Exception:
            exchange.forget_frame()
            raise
        exchange.local_end_ns = ticks_ns()
        if exchange.api_key == PRODUCE:
            return
        if exchange.parts is None:
            self._waiting_for = exchange
        else:
            self.send_answers()  # before the next request starts: answers for a slow reader must not pile up

    # Flow control

    def _must_pause(self) -> bool:
        server = self.server
        return (
            self._waiting_for is not None
            or bool(self._out.parts)
            or len(self.exchanges) >= MAX_IN_FLIGHT
            or server.is_holding
            or (server.memory.is_tight and self._needs_memory())
        )

    def _needs_memory(self) -> bool:
        """True if reading on would take memory of which there is too little."""
        memory = self.server.memory
        if memory.commits.is_full and self.uncommitted:
            return True
        if not memory.frames.is_full:
            return False
        is_large = self._needs_room or (self._buffer is not None and self._frame_size > SMALL_FRAME)
        return is_large or bool(self.exchanges)

    def wake(self) -> None:
        """Resume reading unless something still forbids it."""
        if (self._carry is not None or not self._is_reading) and not self._is_resuming and not self.is_closed:
            self._is_resuming = True
            self._loop.call_soon(self._resume)

    def _resume(self) -> None:
        self._is_resuming = False
        now = self._loop.time()
        if now > self.server.awake_until:
            self.server.hold_requests()
        self._needs_room = self._needs_room and self.server.memory.frames.is_full
        if self.is_closed or self._must_pause():
            return
        if self._carry is not None and len(self._carry) >= 4:
            carry, self._carry = self._carry, None
            alike = self.alike
            if alike is not None and self._is_free():
                self.last_active = now
                self._try(lambda: alike.serve_received(memoryview(carry), len(carry)))
            elif alike is not None and self._awaits_replicas():
                self.serve_turn(lambda: alike.consume_in_order(memoryview(carry)), now)
            else:
                self.serve_turn(lambda: self.consume(memoryview(carry), len(carry)), now)
        if not self._is_reading and not self.is_closed and not self._must_pause():
            self._is_reading = True
            self._loop.add_reader(self.fd, self.on_readable)

    # Sending

    def answered(self, exchange: Exchange) -> None:
        """The exchange has its response. It is sent when all earlier ones are."""
        if exchange is self._waiting_for:
            self._waiting_for = None
        if self._in_turn or self.is_closed:
            return
        if len(self.exchanges) > 1 and isinstance(exchange, ReplicatedExchange):
            self.sender.send_soon()
        else:
            self.send_answers()

    def send_answers(self) -> None:
        """Send the answers that no earlier request holds back, then read on if that was why reading has stopped."""
        exchanges, sender = self.exchanges, self.sender
        while exchanges and (parts := exchanges[0].parts) is not None:
            sender.queue(exchanges.popleft(), parts)
        sender.send()
        self.wake()

    def end(self) -> None:
        """Send nothing more, and let the client close: closing first could reset the connection and lose answers."""
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self.close(None)
            return
        self._loop.remove_reader(self.fd)
        self._loop.add_reader(self.fd, self._discard)

    def _discard(self) -> None:
        if discard(self.sock, self.server.shared_buffer):
            self.close(None)

    def close(self, reason: str | None) -> None:
        """Close the socket. A reason is logged for the operator; None means that the client left."""
        if self.is_closed:
            return
        self.is_closed = True
        if reason is not None:
            logger.warning("closing %r: %s", self, reason)
        self._loop.remove_reader(self.fd)
        self.sender.stop()
        self.sock.close()
        if self._buffer is not None:
            self.server.pool.give_back(self._buffer)
            self._buffer = None
        answers_dropped(self.exchanges, self.server.memory.answers)
        self.exchanges.clear()
        self._waiting_for = self._carry = self.alike = None
        self.server.forget(self)
