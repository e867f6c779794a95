"""Share groups on one broker: its share coordinator, and the delivery of records of the partitions that it leads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from strandline.clock import Clock
from strandline.coordinators.share_states import PrunedLog, ShareCoordinator, ShareGroupStates, has_share_groups
from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.hybrid.partitions import Partitions
from strandline.metadata import Images, MetadataDelta, MetadataImage, TopicImage
from strandline.model import BrokerId
from strandline.server.handlers.common import CurrentSettings
from strandline.server.handlers.topics.auto_creation import TopicAutoCreator
from strandline.server.peers import PeerLanes
from strandline.server.share_states.states import ShareStatesOfCluster
from strandline.share_delivery.partitions import SharePartitions
from strandline.tasks import in_background


class ShareGroups:
    """`async with groups.running()` serves share groups inside the block."""

    def __init__(
        self,
        diskless: DisklessTopics,
        partitions: Partitions,
        log: PrunedLog,
        peers: PeerLanes,
        images: Images,
        creator: TopicAutoCreator,
        *,
        node_id: BrokerId,
        settings: CurrentSettings,
        clock: Clock,
    ) -> None:
        self._diskless, self._images, self._peers, self._node_id = diskless, images, peers, node_id
        self.coordinator = ShareCoordinator(log, images, clock=clock, settings=settings().sharing)
        self.states: ShareGroupStates = ShareStatesOfCluster(
            self.coordinator, peers, images, creator, node_id=node_id, clock=clock
        )
        """The state of share partitions, wherever their coordinator is: for leaders and for coordinators of groups."""
        self.partitions = SharePartitions(
            partitions, self.states, images, serves=self._serves, settings=settings, clock=clock
        )

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Topics were deleted, brokers fenced, or share groups are switched off."""
        self.coordinator.apply(delta, image)
        for node_id in delta.fenced_brokers():
            self._peers.give_up(node_id)
        if has_share_groups(delta.old) and not has_share_groups(image):
            self.partitions.end_all()

    def _serves(self, topic: TopicImage, number: int) -> bool:
        """Whether clients are sent to this broker. A diskless partition is on every broker: only one may share it."""
        partition = topic.partition(number)
        if partition is None or partition.leader == self._node_id:
            return partition is not None
        alive = {broker.node_id for broker in self._images.image.alive_brokers()}
        shown = self._diskless.as_served(topic, alive).partition(number)
        return shown is not None and shown.leader == self._node_id

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self.coordinator.running(), in_background({"share locks": self.partitions.run()}):
            try:
                yield
            finally:
                self._peers.close()
