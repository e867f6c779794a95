"""Code that a broker loads when it needs it, and in a thread: brokers that do not need it start faster, and clients do
not wait for it."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from strandline.assembly.base import Base
from strandline.assembly.metadata import MetadataLayer
from strandline.controlplane import SqlControlPlane, StoreRecords
from strandline.health import Health
from strandline.hybrid.diskless.tier import DisklessTier
from strandline.hybrid.store_identity import StoreIdentity
from strandline.log import LogManager
from strandline.metadata import ActiveController, TopicImage
from strandline.model import TopicIdPartition
from strandline.replication import Partition, ReplicaManager

if TYPE_CHECKING:
    from strandline.hybrid.remote.tier import RemoteTier


class RemoteNeeds(NamedTuple):
    """What remote storage is opened over, beside the metadata."""

    controller: ActiveController
    replicas: ReplicaManager
    records: StoreRecords
    logs: LogManager
    suffix_bytes: Callable[[TopicIdPartition], int]
    """The size of the diskless part of a partition, which counts for retention.bytes."""
    tell_log_start: Callable[[Partition], Awaitable[None]]
    """Tells others that serve a partition where it starts, before segments are deleted."""


@asynccontextmanager
async def load_diskless_tier(
    base: Base,
    metadata: MetadataLayer,
    plane: SqlControlPlane,
    *,
    topics: Callable[[], Iterable[TopicImage]],
    health: Health,
    identity: StoreIdentity,
) -> AsyncIterator[DisklessTier]:
    """See `open_diskless_tier`. With the settings as they are when it is opened."""
    assembly = await asyncio.to_thread(importlib.import_module, "strandline.assembly.diskless_tier")
    opened = assembly.open_diskless_tier(
        base,
        metadata.sql,
        plane,
        metadata.loader,
        metadata.settings.now,
        topics=topics,
        topic_config=metadata.settings.topic_config,
        health=health,
        identity=identity,
    )
    async with opened as tier:
        yield tier


@asynccontextmanager
async def load_remote_tier(base: Base, metadata: MetadataLayer, needs: RemoteNeeds) -> AsyncIterator[RemoteTier]:
    """See `open_remote_tier`."""
    assembly = await asyncio.to_thread(importlib.import_module, "strandline.assembly.remote_storage")
    async with assembly.open_remote_tier(base, metadata, needs) as tier:
        yield tier
