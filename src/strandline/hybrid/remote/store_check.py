"""Whether the storage of tiered topics is the one that holds their segments."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import replace
from itertools import islice
from typing import Final

from strandline.clock import Clock, Ids
from strandline.config import Settings, TopicConfig
from strandline.controlplane import StoreRecords
from strandline.controlplane.store_records import REMOTE_STORE
from strandline.health import WRITES
from strandline.hybrid.remote.traces import may_have_segments, with_remote_part
from strandline.hybrid.store_identity import StoreIdentity, StoreUse
from strandline.hybrid.store_watch import Check
from strandline.log import LogManager
from strandline.metadata import MetadataImage, MetadataLoader
from strandline.model import TopicIdPartition, TopicPartition
from strandline.objects import ObjectOptions, ObjectStore, ObjectStoreError
from strandline.objects.address import ObjectAddress, parse_address
from strandline.objects.checking import advised
from strandline.objects.marker import REMOTE_STORE_ID_KEY
from strandline.objects.opening import open_bare
from strandline.objects.store import WrongStore
from strandline.remote.ports import RemoteStorageError
from strandline.remote.storage import (
    DeadlineStorage,
    ObjectSettings,
    partition_directory,
    rsm_place,
)
from strandline.remote.storage.objects import ObjectRemoteStorage
from strandline.sql import SqlError

logger = logging.getLogger(__name__)

# Of very many partitions, some that were copied are among these.
_MOST_PARTITIONS: Final = 1000
_MOST_CERTAIN: Final = 10


class RemoteIdentity:
    """Compares the storage that is open with the recorded one; nothing is copied, read or deleted before.

    Only of the storage that comes with the broker: a plugin has no objects that we know of.
    """

    def __init__(
        self, storage: DeadlineStorage, settings: ObjectSettings, identity: StoreIdentity, *, clock: Clock, ids: Ids
    ) -> None:
        self._storage, self._identity = storage, identity
        self._settings, self._clock, self._ids = settings, clock, ids
        self._settled = asyncio.Event()
        storage.why_not = self._why_not

    def _why_not(self) -> RemoteStorageError | None:
        if (wrong := self._identity.why_wrong()) is not None:
            return RemoteStorageError(str(wrong))
        if not self._identity.is_settled:
            return RemoteStorageError(
                f"{self._storage.url} has not answered yet whether it holds this cluster's segments."
            )
        return None

    async def wait_settled(self) -> None:
        """Return when the storage was the recorded one at least once since the start."""
        await self._settled.wait()

    async def begin(self, *, within: float) -> None:
        """Compare at the start, if the storage answers in time. Raises WrongStore."""
        comparing = asyncio.ensure_future(self.compare())
        alarm = asyncio.ensure_future(self._clock.sleep(within))
        try:
            await asyncio.wait((comparing, alarm), return_when=asyncio.FIRST_COMPLETED)
            if comparing.done():
                comparing.result()
        except WrongStore:
            raise
        except ObjectStoreError as error:  # the watch goes on asking, and shows it
            logger.debug("%s cannot be compared yet: %s", self._storage.url, error)
        finally:
            for task in (comparing, alarm):
                task.cancel()
            await asyncio.gather(comparing, alarm, return_exceptions=True)

    async def compare(self) -> None:
        """Compare now. Raises ObjectStoreErrors."""
        # Opened anew: a directory that has taken the place of another is looked at, too.
        address, options = parse_address(self._settings.url), replace(self._settings.options, threads=1)
        place = rsm_place(self._settings.url, self._settings.options.s3.endpoint_url)
        try:
            with advised(place):
                await self._compare_opened(address, options)
        except SqlError as error:  # shown as a database that is away; what was found before holds
            logger.debug("%s cannot be compared with the database: %s", self._storage.url, error)

    async def _compare_opened(self, address: ObjectAddress, options: ObjectOptions) -> None:
        async with open_bare(address, options, clock=self._clock, ids=self._ids) as store:
            if self._identity.is_settled:
                await self._identity.compare(store)
            else:
                await self._identity.settle(store)
                self._settled.set()


def remote_identity(
    storage: DeadlineStorage,
    loader: MetadataLoader,
    records: StoreRecords,
    logs: LogManager,
    settings: Settings,
    *,
    topic_config: Callable[[str], TopicConfig],
    clock: Clock,
    ids: Ids,
) -> RemoteIdentity | None:
    """The identity of an open storage; None for a plugin."""
    objects = storage.inner
    place = objects.settings if isinstance(objects, ObjectRemoteStorage) else None
    if place is None:
        return None
    node_id = settings.cluster.node_id
    use = remote_use(
        place,
        lambda: loader.image,
        topic_config,
        records=records,
        may_have_segments=lambda is_recorded: may_have_segments(
            loader.image,
            logs.all_logs(),
            lambda topic: is_tiered(topic_config(topic)),
            has_built_in_metadata=settings.tiers.has_built_in_metadata,
            is_recorded=is_recorded,
        ),
        with_remote_part=lambda: with_remote_part(loader.image, logs.all_logs()),
        may_move=lambda: not loader.image.brokers.keys() - {node_id},
    )
    return RemoteIdentity(storage, place, StoreIdentity(use, records, ids=ids), clock=clock, ids=ids)


def remote_use(
    settings: ObjectSettings,
    image: Callable[[], MetadataImage],
    topic_config: Callable[[str], TopicConfig],
    *,
    records: StoreRecords,
    may_have_segments: Callable[[bool], bool],
    with_remote_part: Callable[[], Iterable[TopicIdPartition]],
    may_move: Callable[[], bool],
) -> StoreUse:
    """What is known of the storage of segments, by the functions of `traces` and by the control plane.

    `may_have_segments` is asked with whether a storage is recorded.
    """

    async def is_unused() -> bool:
        is_recorded = await records.recorded_store(REMOTE_STORE) is not None
        return not may_have_segments(is_recorded) and not await records.has_remote_segments()

    async def holds(store: ObjectStore, partition: TopicIdPartition) -> bool:
        async with aclosing(store.list(f"{settings.prefix}{partition_directory(partition)}/")) as found:
            return await anext(found, None) is not None

    async def holds_ours(store: ObjectStore) -> bool:
        """Of partitions that certainly have segments, some of each: a storage that was in use by mistake lacks some."""
        certain = tuple(islice(with_remote_part(), _MOST_CERTAIN))
        for partition in certain:
            if not await holds(store, partition):
                return False
        if certain:
            return True
        for partition in islice(_partitions(image(), topic_config), _MOST_PARTITIONS):
            if await holds(store, partition):
                return True
        return False

    return StoreUse(
        purpose=REMOTE_STORE,
        what="the segments of tiered topics",
        setting="rsm.config.url",
        key=settings.prefix + REMOTE_STORE_ID_KEY,
        is_lasting=rsm_place(settings.url, None).is_lasting,
        is_unused=is_unused,
        may_move=may_move,
        holds_ours=holds_ours,
        knows_copies=False,
        moves_with_data=settings.is_in_data_dir,
    )


def is_tiered(config: TopicConfig) -> bool:
    """Whether a topic of this kind has segments that are copies of closed ones, or may still have some."""
    return config.remote_storage_enable or config.remote_log_delete_on_disable


def _partitions(image: MetadataImage, topic_config: Callable[[str], TopicConfig]) -> Iterator[TopicIdPartition]:
    """Those that may have segments."""
    for topic in image.topics.values():
        config = topic_config(topic.name)
        if is_tiered(config) or config.diskless_enable:
            for partition in topic.partitions:
                yield TopicIdPartition(topic.topic_id, TopicPartition(topic.name, partition.partition))


def checking(storage: DeadlineStorage, identity: RemoteIdentity | None) -> Check:
    """The check of a watch over the storage."""

    async def check(kind: str) -> None:
        if identity is not None:
            await identity.compare()
        await storage.check(writes=kind == WRITES)

    return check
