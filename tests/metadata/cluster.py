"""Small clusters for tests: a controller on an in-memory store, and brokers that exist only as registrations."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from strandline.clock import Clock, SystemChance, SystemIds
from strandline.config import Settings
from strandline.metadata import (
    BrokerHeartbeat,
    BrokerRegistration,
    Controller,
    HeartbeatReply,
    LeaseTiming,
    Listener,
    MetadataImage,
    MetadataLoader,
    MetadataStore,
    NewTopic,
    PartitionImage,
    TopicImage,
)
from strandline.metadata.controller.death_watch import Inquiry
from strandline.sql import SqlStore, open_store
from strandline.testing.clock import VirtualClock

MEMORY = "sqlite:///:memory:"


def registration(
    node_id: int, incarnation: int = 1, *, rack: str | None = None, cluster_id: str = ""
) -> BrokerRegistration:
    """What broker `node_id` says when it starts for the `incarnation`-th time."""
    return BrokerRegistration(
        node_id=node_id,
        incarnation_id=uuid.UUID(int=(node_id << 32) + incarnation),
        listeners=(Listener("PLAINTEXT", f"host-{node_id}", 9092),),
        rack=rack,
        cluster_id=cluster_id,
    )


@dataclass(slots=True, kw_only=True)
class Cluster:
    """A controller with everything below it."""

    sql: SqlStore
    store: MetadataStore
    loader: MetadataLoader
    controller: Controller
    clock: Clock

    @property
    def image(self) -> MetadataImage:
        return self.loader.image

    async def start_broker(self, node_id: int, incarnation: int = 1, *, rack: str | None = None) -> int:
        """Register and unfence a broker; its epoch."""
        epoch = await self.controller.register_broker(registration(node_id, incarnation, rack=rack))
        reply = await self.beat(node_id)
        assert not reply.is_fenced
        return epoch

    async def beat(self, node_id: int, *, want_fence: bool = False, want_shut_down: bool = False) -> HeartbeatReply:
        """A heartbeat of a broker that has seen everything."""
        return await self.controller.broker_heartbeat(
            BrokerHeartbeat(
                node_id=node_id,
                broker_epoch=self.image.brokers[node_id].epoch,
                current_metadata_offset=self.image.offset,
                want_fence=want_fence,
                want_shut_down=want_shut_down,
            )
        )

    async def create(
        self, name: str, assignments: Sequence[Sequence[int]] = ((1,),), configs: Mapping[str, str] | None = None
    ) -> TopicImage:
        """A topic whose partitions are on these brokers."""
        wish = NewTopic(name=name, assignments=dict(enumerate(assignments)), configs=dict(configs or {}))
        (topic,) = await self.controller.create_topics([wish])
        assert isinstance(topic, TopicImage), topic
        return topic

    def partition(self, name: str, number: int = 0) -> PartitionImage:
        """A partition that exists."""
        found = self.image.partition(name, number)
        assert found is not None
        return found


def member(
    sql: SqlStore,
    clock: Clock,
    *,
    node_id: int = 1,
    properties: Mapping[str, str] | None = None,
    timing: LeaseTiming | None = None,
    inquiry: Inquiry | None = None,
) -> Cluster:
    """The parts of one broker's metadata, not yet running."""
    store = MetadataStore(sql)
    loader = MetadataLoader(store, clock)
    settings = Settings.from_properties({"node.id": str(node_id), **(properties or {})})
    controller = Controller(
        store,
        loader,
        settings,
        clock=clock,
        ids=SystemIds(),
        chance=SystemChance(seed=node_id),
        timing=timing,
        inquiry=inquiry,
    )
    return Cluster(sql=sql, store=store, loader=loader, controller=controller, clock=clock)


@asynccontextmanager
async def open_cluster(
    url: str = MEMORY,
    *,
    brokers: Sequence[int] = (1,),
    properties: Mapping[str, str] | None = None,
) -> AsyncIterator[Cluster]:
    """An active controller (node 1) on virtual time, and these brokers, unfenced. No background tasks run."""
    async with open_store(url) as sql:
        cluster = member(sql, VirtualClock(), properties=properties)
        await cluster.loader.load()
        assert await cluster.controller.activate()
        for node_id in brokers:
            await cluster.start_broker(node_id)
        yield cluster
