"""Requests to other brokers by their node id, over kept connections."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import Final

from strandline.errors import LeaderNotAvailable
from strandline.metadata import Images
from strandline.model import BrokerId
from strandline.wire.api import ApiKey
from strandline.wire.kept_connection import BrokerAddress, BrokerUnreachable, KeptConnection
from strandline.wire.registry import Message

MOST_AT_ONCE: Final = 64
_KEPT_IDLE: Final = 8


class BrokerPeers:
    """The other brokers of the cluster, for one purpose, over a connection to each.

    A broker answers the requests of a connection one after the other: those of this purpose wait for each other.
    Requests to a broker that is fenced are given up: one that stands still, or is cut off, would not answer for long,
    and others have taken over what it led.
    """

    def __init__(self, images: Images, *, node_id: BrokerId, listener: str, purpose: str) -> None:
        self._images, self._node_id, self._listener, self._purpose = images, node_id, listener, purpose
        self._connections: dict[BrokerId, KeptConnection] = {}
        self._limits: dict[BrokerId, set[asyncio.Timeout]] = {}
        """Of the requests that are under way."""

    async def ask(self, broker: BrokerId, api_key: ApiKey, message: Message, *, within: float) -> Message:
        """The broker's answer. Raises LeaderNotAvailable: then the request may have been carried out or not."""
        target = self._target(broker)
        limits = self._limits.setdefault(broker, set())
        limit = asyncio.timeout(None)
        try:
            async with limit:
                limits.add(limit)
                return await self._carry(target, api_key, message, within=within)
        except TimeoutError as error:
            raise LeaderNotAvailable(f"{target} was fenced before it answered {api_key.name}.") from error
        finally:
            limits.discard(limit)

    def give_up(self, broker: BrokerId) -> None:
        """The broker is fenced: requests to it that are under way end with LeaderNotAvailable."""
        now = asyncio.get_running_loop().time()
        for limit in self._limits.pop(broker, ()):
            if not limit.expired():  # else its request ends in this turn of the loop
                limit.reschedule(now)
        connection = self._connections.pop(broker, None)
        if connection is not None:
            connection.close()

    async def _carry(self, target: BrokerAddress, api_key: ApiKey, message: Message, *, within: float) -> Message:
        connection = self._connections.get(target.node_id)
        if connection is None:
            connection = self._connections[target.node_id] = self._new_connection()
        return await _ask(connection, target, api_key, message, within=within)

    def _new_connection(self) -> KeptConnection:
        client_id = f"broker-{self._node_id}-{self._purpose}"
        return KeptConnection(client_id, lambda: self._images.image.cluster_id)

    def _target(self, broker: BrokerId) -> BrokerAddress:
        known = self._images.image.brokers.get(broker)
        listener = None if known is None else known.listener(self._listener)
        if listener is None:
            raise LeaderNotAvailable(
                f"Broker {broker} is not registered with a listener {self._listener} (inter.broker.listener.name)."
            )
        return BrokerAddress(broker, listener.host, listener.port)

    def close(self) -> None:
        """Close the connections. The next request opens another."""
        for connection in self._connections.values():
            connection.close()


class PeerLanes:
    """The other brokers, over a connection for each lane: only requests of the same lane wait for each other."""

    def __init__(self, new_peers: Callable[[], BrokerPeers]) -> None:
        self._new_peers = new_peers
        self._lanes: dict[int, BrokerPeers] = {}

    def lane(self, number: int) -> BrokerPeers:
        if number not in self._lanes:
            self._lanes[number] = self._new_peers()
        return self._lanes[number]

    def give_up(self, broker: BrokerId) -> None:
        """See `BrokerPeers.give_up`."""
        for peers in self._lanes.values():
            peers.give_up(broker)

    def close(self) -> None:
        """Close the connections. The next request opens another."""
        for peers in self._lanes.values():
            peers.close()


class ParallelPeers(BrokerPeers):
    """The other brokers, over a connection for each request that is under way.

    For requests that wait on the other broker: none waits behind another one. Only what is asked of one broker while
    64 requests to it are under way has to wait for the first of them to end.
    """

    def __init__(self, images: Images, *, node_id: BrokerId, listener: str, purpose: str) -> None:
        super().__init__(images, node_id=node_id, listener=listener, purpose=purpose)
        self._idle = defaultdict[BrokerId, list[KeptConnection]](list)
        self._room = defaultdict[BrokerId, asyncio.Semaphore](lambda: asyncio.Semaphore(MOST_AT_ONCE))

    async def _carry(self, target: BrokerAddress, api_key: ApiKey, message: Message, *, within: float) -> Message:
        idle, room = self._idle[target.node_id], self._room[target.node_id]
        try:
            async with asyncio.timeout(within):
                await room.acquire()
        except TimeoutError as error:
            raise LeaderNotAvailable(f"{target} has not answered earlier requests for {within:g} s.") from error
        connection = idle.pop() if idle else self._new_connection()
        try:
            return await _ask(connection, target, api_key, message, within=within)
        except asyncio.CancelledError:
            connection.close()  # its answer would keep the next request waiting
            raise
        finally:
            room.release()
            if len(idle) < _KEPT_IDLE:
                idle.append(connection)
            else:
                connection.close()

    def close(self) -> None:
        for connections in self._idle.values():
            for connection in connections:
                connection.close()


async def _ask(
    connection: KeptConnection, target: BrokerAddress, api_key: ApiKey, message: Message, *, within: float
) -> Message:
    try:
        return await connection.ask(target, api_key, message, within=within)
    except BrokerUnreachable as error:
        raise LeaderNotAvailable(str(error)) from error
