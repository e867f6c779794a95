"""What a broker hears of the metadata, and how it reaches the controller: late, and not always."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from simulation.controller import SimulatedController
from simulation.network import Network
from strandline.errors import StrandlineError
from strandline.metadata import (
    EMPTY_IMAGE,
    BrokerHeartbeat,
    BrokerRegistration,
    HeartbeatReply,
    IsrChange,
    MetadataDelta,
    MetadataImage,
    PartitionImage,
)
from strandline.metadata.comparison import delta_between

_PATIENCE: Final = 1.0
_CONTROLLER: Final = "controller"


class LateImages:
    """The metadata that a broker knows: every record in order, some time after it was written."""

    def __init__(self, node: str, controller: SimulatedController, network: Network) -> None:
        self.image: MetadataImage = controller.image
        self._controller, self._network, self._node = controller, network, node
        self._listeners: list[Callable[[MetadataDelta, MetadataImage], None]] = []
        self._due: list[MetadataDelta] = []
        self._arrives = 0.0
        controller.followers.append(self._written)

    def _written(self, delta: MetadataDelta) -> None:
        self._due.append(delta)
        loop = self._network.loop
        self._arrives = max(self._arrives, loop.time() + self._network.delay("metadata", self._node))
        loop.call_at(self._arrives, self._arrive)

    def _arrive(self) -> None:
        """The oldest that is due. While the database cannot be reached, it is tried again."""
        if self._due and self._network.is_cut("metadata", self._node):
            self._network.loop.call_later(0.2, self._arrive)
        elif self._due:
            self._apply_next()

    def _apply_next(self) -> None:
        delta = self._due.pop(0)
        self.image = delta.new
        for listener in tuple(self._listeners):
            listener(delta, delta.new)

    def subscribe(self, listener: Callable[[MetadataDelta, MetadataImage], None]) -> Callable[[], None]:
        """See `MetadataLoader`."""
        self._listeners.append(listener)
        listener(delta_between(EMPTY_IMAGE, self.image), self.image)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    async def catch_up(self) -> None:
        """See `MetadataLoader`."""
        await asyncio.sleep(self._network.delay(self._node, "metadata"))
        while self._due:
            self._apply_next()

    def stop(self) -> None:
        """The process is gone."""
        self._listeners.clear()
        self._due.clear()
        if self._written in self._controller.followers:
            self._controller.followers.remove(self._written)


class Channel:
    """The way to the controller: a `ControllerChannel` and an `AltersPartitions`."""

    def __init__(
        self, node: str, controller: SimulatedController, network: Network, may_replace: Callable[[], bool]
    ) -> None:
        """`may_replace`: whether the controller has seen that the process of this broker is a new one."""
        self._node, self._controller, self._network = node, controller, network
        self._may_replace = may_replace

    async def _ask(self, decide: Callable[[], Any], *, may_repeat: bool = False) -> Any:
        def work(reply: Callable[[Any], None]) -> None:
            try:
                reply(decide())
            except StrandlineError as error:
                reply(error)

        node = self._node
        if may_repeat and self._network.chance(node, _CONTROLLER).random() < 0.05:
            self._network.send(node, _CONTROLLER, lambda: work(lambda _: None))
        answer = await self._network.ask(node, _CONTROLLER, work, _PATIENCE)
        if isinstance(answer, StrandlineError):
            raise answer
        return answer

    async def register_broker(self, broker: BrokerRegistration) -> int:
        """See `ControllerChannel`."""
        return cast(
            int,
            await self._ask(lambda: self._controller.register_broker(broker, may_replace=self._may_replace())),
        )

    async def broker_heartbeat(self, heartbeat: BrokerHeartbeat) -> HeartbeatReply:
        """See `ControllerChannel`."""
        return cast(HeartbeatReply, await self._ask(lambda: self._controller.broker_heartbeat(heartbeat)))

    async def alter_partition(
        self, node_id: int, broker_epoch: int, changes: Sequence[IsrChange]
    ) -> list[PartitionImage | StrandlineError]:
        """See `AltersPartitions`. Now and then a request is carried out a second time, later."""
        return cast(
            "list[PartitionImage | StrandlineError]",
            await self._ask(lambda: self._controller.alter_partition(node_id, broker_epoch, changes), may_repeat=True),
        )
