"""The network between brokers: delays, links that are cut in one direction or both, connections that break.

Each pair of nodes has a random source of its own for each direction, so that what happens between two of them does not
depend on the order in which a third one is served.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar

from strandline.errors import RequestTimedOut

T = TypeVar("T")

_SHORTEST: Final = 0.0002


class Network:
    """Nodes have names. Messages are calls, and connections are streams of bytes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seed: str) -> None:
        self.loop, self._seed = loop, seed
        self._chances: dict[tuple[str, str], random.Random] = {}
        self._cut: set[tuple[str, str]] = set()
        self._accepting: dict[str, Callable[[], Any]] = {}
        self._streams: dict[Stream, None] = {}
        self.messages = 0

    # Links

    def chance(self, source: str, target: str) -> random.Random:
        """The random source of this direction."""
        found = self._chances.get((source, target))
        if found is None:
            found = self._chances[source, target] = random.Random(f"{self._seed}/{source}>{target}")
        return found

    def delay(self, source: str, target: str) -> float:
        """How long a message takes: mostly a moment, now and then much longer."""
        chance = self.chance(source, target)
        kind = chance.random()
        most = 0.002 if kind < 0.8 else 0.03 if kind < 0.97 else 0.4
        return _SHORTEST + most * chance.random()

    def cut(self, source: str, target: str) -> None:
        """Nothing comes through in this direction."""
        self._cut.add((source, target))

    def heal(self) -> None:
        """Every link is there. What connections have held back comes through."""
        self._cut.clear()
        for stream in tuple(self._streams):
            stream.flush()

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cut

    # Messages

    def send(self, source: str, target: str, deliver: Callable[[], None]) -> None:
        """Call `deliver` at the target, later; never if the link is cut then or the message is lost."""
        self.messages += 1

        def arrive() -> None:
            if not self.is_cut(source, target):
                deliver()

        self.loop.call_later(self.delay(source, target), arrive)

    async def ask(self, source: str, target: str, work: Callable[[Callable[[T], None]], None], seconds: float) -> T:
        """Let `work` be done at the target; it gets a function for its answer. Raises RequestTimedOut."""
        answer: asyncio.Future[T] = self.loop.create_future()

        def take(result: T) -> None:
            if not answer.done():
                answer.set_result(result)

        def reply(result: T) -> None:
            self.send(target, source, lambda: take(result))

        self.send(source, target, lambda: work(reply))
        try:
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError as error:
            raise RequestTimedOut(f"{target} has not answered {source} in {seconds:g} s.") from error

    # Connections

    def listen(self, node: str, accept: Callable[[], Any]) -> None:
        """Connections to this node get the protocol that `accept` returns."""
        self._accepting[node] = accept

    async def connect(self, protocol_factory: Callable[[], Any], host: str, port: int) -> tuple[Any, Any]:
        """What `create_connection` of a loop does. The client says in its client id who it is."""
        protocol = protocol_factory()
        source = "-".join(protocol.client_id.split("-")[:2])
        await _sleep(self.loop, self.delay(source, host) + self.delay(host, source))
        if self.is_cut(source, host) or self.is_cut(host, source):
            await _sleep(self.loop, 1000.0)
        accept = self._accepting.get(host)
        if accept is None:
            raise ConnectionRefusedError(f"{host} refuses connections.")
        there, back = Stream(self, source, host), Stream(self, host, source)
        near, far = Endpoint(there, protocol), Endpoint(back, accept())
        there.receiver, back.receiver = far, near
        self._streams[there] = self._streams[back] = None
        far.protocol.connection_made(far)
        protocol.connection_made(near)
        return near, protocol

    def leave(self, node: str, *, is_silent: bool) -> None:
        """The node is gone. Its peers are told, unless it is silent: then they notice that nothing comes."""
        self._accepting.pop(node, None)
        for stream in tuple(self._streams):
            if stream.source == node:
                if not is_silent:
                    stream.close()
                stream.receiver_gone = stream.receiver_gone or is_silent
            elif stream.target == node:
                stream.receiver_gone = True

    def break_connections(self, source: str, target: str) -> None:
        """All connections from one node to another break; both sides notice."""
        for stream in tuple(self._streams):
            if {stream.source, stream.target} == {source, target}:
                stream.close()

    def forget(self, stream: Stream) -> None:
        self._streams.pop(stream, None)


class Stream:
    """One direction of a connection. Bytes come in the order in which they were sent."""

    def __init__(self, network: Network, source: str, target: str) -> None:
        self._network, self.source, self.target = network, source, target
        self.receiver: Endpoint | None = None
        self.receiver_gone = False
        self._held: deque[bytes | None] = deque()
        self._last = 0.0
        self._is_closed = False

    def write(self, data: bytes | None) -> None:
        """Send these bytes; None: the end."""
        if self._is_closed:
            return
        network = self._network
        network.messages += 1
        chance = network.chance(self.source, self.target)
        if data is not None and len(data) > 8 and chance.random() < 0.1:
            middle = chance.randrange(1, len(data))
            self._send(data[:middle])
            data = data[middle:]
        self._send(data)

    def _send(self, data: bytes | None) -> None:
        loop = self._network.loop
        self._last = when = max(self._last + 1e-6, loop.time() + self._network.delay(self.source, self.target))
        loop.call_at(when, self._arrive, data)

    def _arrive(self, data: bytes | None) -> None:
        self._held.append(data)
        self.flush()

    def flush(self) -> None:
        """Deliver what has arrived, unless the link is cut."""
        while self._held and not self._network.is_cut(self.source, self.target):
            data = self._held.popleft()
            if self.receiver is None or self.receiver_gone:
                continue
            if data is None:
                self._network.forget(self)
                self.receiver.lost()
            else:
                self.receiver.receive(data)

    def close(self) -> None:
        """The other side is told that this one is over."""
        self.write(None)
        self._is_closed = True


class Endpoint(asyncio.Transport):
    """The transport of one side."""

    def __init__(self, out: Stream, protocol: Any) -> None:
        super().__init__()
        self._out, self.protocol = out, protocol
        self._is_over = False

    def write(self, data: Any) -> None:
        if not self._is_over:
            self._out.write(bytes(data))

    def receive(self, data: bytes) -> None:
        """Bytes have come."""
        if self._is_over:
            return
        protocol: Any = self.protocol
        if not isinstance(protocol, asyncio.BufferedProtocol):
            protocol.data_received(data)
            return
        while data and not self._is_over:
            room = memoryview(protocol.get_buffer(-1))
            size = min(len(room), len(data))
            room[:size] = data[:size]
            protocol.buffer_updated(size)
            data = data[size:]

    def lost(self) -> None:
        """The other side has ended it."""
        if not self._is_over:
            self._is_over = True
            self._out.close()
            self.protocol.connection_lost(None)

    def abort(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._out.close()
            self._out._network.loop.call_soon(self.protocol.connection_lost, None)

    def close(self) -> None:
        self.abort()

    def is_closing(self) -> bool:
        return self._is_over


def _sleep(loop: asyncio.AbstractEventLoop, seconds: float) -> asyncio.Future[None]:
    done: asyncio.Future[None] = loop.create_future()
    loop.call_later(seconds, _wake, done)
    return done


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)
