"""Which broker to ask as the controller: the one that the metadata names, or one that other brokers name.

The metadata come from the database. A broker that is cut off from it does not see that another broker has become the
controller, and would be fenced after a session, although it lives, leads and reaches all others. So when a request has
not reached the controller, the other brokers are asked who it is. What they say counts for requests to it, and only
until the metadata here know of a later controller: nothing that this broker is, leads or follows is taken from them.

Such a broker goes on with what it knew. What it leads nobody else leads before it was fenced, or gave it up itself:

- if it was fenced, or another leader was elected on demand, the followers of a partition have left it. Its high
  watermark stands still, so it acknowledges nothing for which it needs them;
- the in-sync sets that it asks for do not count here before the metadata are read (`ActiveController.alter_partition`);
- until then records wait for a follower that the controller has taken out of the set, as for any that has gone silent.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Final, NamedTuple

from strandline.clock import Clock
from strandline.errors import NotController
from strandline.metadata.image import Images
from strandline.wire.api import ApiKey
from strandline.wire.kept_connection import BrokerAddress, BrokerUnreachable, KeptConnection
from strandline.wire.messages.describe_cluster import DescribeClusterRequest

logger = logging.getLogger(__name__)

ANSWER_SECONDS: Final = 1.0
EVERY_SECONDS: Final = 1.0  # requests fail together, and each would ask all brokers


class _Named(NamedTuple):
    """A controller that others have named, and the latest one that the metadata knew then."""

    node_id: int
    known_epoch: int


class ControllerSearch:
    """Of one broker, for all its connections to the controller."""

    def __init__(self, node_id: int, images: Images, clock: Clock, *, listener: str) -> None:
        self._node_id, self._images, self._clock, self._listener = node_id, images, clock, listener
        self._found: _Named | None = None
        self._searching = asyncio.Lock()
        self._not_before = 0.0

    def target(self) -> BrokerAddress:
        """The controller, as far as is known. Raises NotController if that is no other broker."""
        image = self._images.image
        found = self._found
        if found is not None and found.known_epoch == image.controller_epoch:
            address = self._address(found.node_id)
            if address is not None:
                return address
        if image.controller_id == self._node_id:
            raise NotController(f"Broker {self._node_id} was the last active controller, and is no longer.")
        address = self._address(image.controller_id)
        if address is None:
            raise NotController(
                f"The active controller, broker {image.controller_id}, has no listener {self._listener} "
                "(inter.broker.listener.name)."
            )
        return address

    async def look(self, *, failed: int | None) -> None:
        """Ask the others, after a request to the broker `failed` has not reached the controller. None: to no broker.

        Takes ANSWER_SECONDS at most. Without effect if another broker is known by then, and soon after the last time.
        """
        async with self._searching:
            if self._known() != failed or self._clock.monotonic() < self._not_before:
                return
            self._not_before = self._clock.monotonic() + EVERY_SECONDS
            epoch = self._images.image.controller_epoch
            self._found = None
            named = await self._ask_all(failed)
            if named is None:
                return
            self._found = _Named(named, epoch)
            logger.info(
                "broker %d is asked as the controller: other brokers name it, the metadata here does not", named
            )

    def _known(self) -> int | None:
        try:
            return self.target().node_id
        except NotController:
            return None

    def _address(self, node_id: int) -> BrokerAddress | None:
        broker = self._images.image.brokers.get(node_id)
        listener = None if broker is None else broker.listener(self._listener)
        return None if listener is None else BrokerAddress(node_id, listener.host, listener.port)

    async def _ask_all(self, failed: int | None) -> int | None:
        """A broker that names itself, which is the newest there is to know; else the one that most others name.

        Not the one that has failed: it may take itself for the controller because it is cut off as well.
        """
        addresses = [self._address(node_id) for node_id in self._images.image.brokers if node_id != self._node_id]
        asked = [asyncio.ensure_future(self._ask(address)) for address in addresses if address is not None]
        said: Counter[int] = Counter()
        try:
            for answer in asyncio.as_completed(asked):
                broker, named = await answer
                if named is None or named in (failed, self._node_id):
                    continue
                if named == broker:
                    return named
                said[named] += 1
        finally:
            for one in asked:
                one.cancel()
        return said.most_common(1)[0][0] if said else None

    async def _ask(self, address: BrokerAddress) -> tuple[int, int | None]:
        """The broker, and whom it takes for the controller; None if it does not say."""
        connection = KeptConnection(f"broker-{self._node_id}-search", lambda: self._images.image.cluster_id)
        try:
            answer = await connection.ask(
                address, ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest(), within=ANSWER_SECONDS
            )
        except BrokerUnreachable:
            return address.node_id, None
        finally:
            connection.close()
        return address.node_id, answer.controller_id if answer.controller_id >= 0 else None
