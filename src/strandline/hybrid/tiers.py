"""Opening the tiers of a broker: the diskless one when the first diskless topic appears, remote storage at the start.

What is opened comes from functions that are passed here, and load its code when they are called: brokers without such
topics do without it. Here is what a broker makes of it that a tier cannot be opened.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from strandline.config import TopicConfig
from strandline.errors import StrandlineError
from strandline.health import Health
from strandline.hybrid.diskless.tier import DisklessTier
from strandline.hybrid.diskless.topics import OpenTier
from strandline.hybrid.remote.topics import TieredTopics
from strandline.metadata import MetadataLoader
from strandline.model import BrokerId
from strandline.objects import ObjectStoreError
from strandline.objects.store import WrongStore
from strandline.remote.ports import RemoteStorageError

if TYPE_CHECKING:  # a broker without remote storage does not load it
    from strandline.hybrid.remote.tier import RemoteTier

logger = logging.getLogger(__name__)

_OPENING: Final = "opening"

OpenRemoteTier: TypeAlias = "Callable[[], AbstractAsyncContextManager[RemoteTier]]"


class TierFailed(StrandlineError):
    """The broker has topics in a tier that cannot be opened."""


class DisklessOpening:
    """Opens the engine of diskless topics. The health of its store shows what came of it."""

    def __init__(self, open_tier: OpenTier, health: Health) -> None:
        self._open_tier, self._health = open_tier, health
        self._tell: list[Callable[[], None]] = []

    def when_opened(self, tell: Callable[[], None]) -> None:
        """Call `tell` when the engine has been opened."""
        self._tell.append(tell)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[DisklessTier]:
        """The engine, until the block ends. Raises ObjectStoreErrors."""
        async with self._refusals_shown(), self._open_tier() as tier:
            logger.info("diskless topics are kept in %s", tier.url)
            self._health.answered(_OPENING)
            for tell in self._tell:
                tell()
            yield tier

    @asynccontextmanager
    async def _refusals_shown(self) -> AsyncIterator[None]:
        """A store that is there may still be of no use to this broker, for instance if other brokers have another."""
        try:
            yield
        except ObjectStoreError as error:
            self._health.failed(str(error), _OPENING, is_certain=True, is_wrong=isinstance(error, WrongStore))
            raise


class RemoteStorageUse(Protocol):
    """What `remote.log.storage.system.enable` decides."""

    def check(self) -> None:
        """Raise TierFailed if this broker cannot start with that. Before its logs are loaded."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Use it while the block lasts. Raises TierFailed, and InvalidConfig."""


class WithRemoteStorage:
    """Of a broker that has it switched on: it is opened at the start."""

    def __init__(self, tiered: TieredTopics, open_tier: OpenRemoteTier) -> None:
        self._tiered, self._open_tier = tiered, open_tier

    def check(self) -> None:
        """Topics may be tiered, and need not."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            try:
                tier = await stack.enter_async_context(self._tiered.serving(self._open_tier()))
            except WrongStore as error:
                raise TierFailed(str(error)) from error
            except (RemoteStorageError, OSError) as error:
                raise TierFailed(f"Tiered topics cannot be served: {error}") from error
            logger.info("closed segments of tiered topics are kept in %s", tier.url)
            yield


class WithoutRemoteStorage:
    """Of a broker that has it switched off."""

    def __init__(
        self, node_id: BrokerId, loader: MetadataLoader, *, topic_config: Callable[[str], TopicConfig]
    ) -> None:
        self._node_id, self._loader, self._topic_config = node_id, loader, topic_config

    def check(self) -> None:
        """A tiered log would be opened without its remote part, and lose it."""
        topics = self._loader.image.topics.values()
        here = (topic for topic in topics if any(self._node_id in p.replicas for p in topic.partitions))
        tiered = sorted(topic.name for topic in here if self._topic_config(topic.name).remote_storage_enable)
        if tiered:
            raise TierFailed(
                f"There are tiered topics ({', '.join(tiered[:3])}{', ...' * (len(tiered) > 3)}), so "
                "remote.log.storage.system.enable has to be true on this broker."
            )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        yield
