"""Serves diskless and tiered topics, from the start of a broker to its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from strandline.controlplane import MIGRATION_CHANNEL
from strandline.hybrid.conversion.keeper import ConvertedKeeper
from strandline.hybrid.diskless.prefix_watch import PrefixWatch
from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.hybrid.store_identity import StoreIdentity
from strandline.hybrid.store_watch import StoreWatch
from strandline.hybrid.switching.prefixes import PrefixKeeper
from strandline.hybrid.switching.switches import TopicSwitches
from strandline.hybrid.tiers import RemoteStorageUse, TierFailed
from strandline.sql import SqlStore
from strandline.tasks import TaskSet, in_background

# A store that answers does so by then, and diskless topics are there when clients come. No store is waited for longer.
_OPENED_WITHIN_S: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TierServing:
    """What works for the tiers in the background."""

    sql: SqlStore
    objects_watch: StoreWatch
    objects_identity: StoreIdentity
    diskless: DisklessTopics
    remote: RemoteStorageUse
    switches: TopicSwitches
    prefixes: PrefixKeeper
    prefix_watch: PrefixWatch
    converted: ConvertedKeeper

    @asynccontextmanager
    async def running(self, *, on_failure: Callable[[str], None]) -> AsyncIterator[None]:
        """Serve diskless and tiered topics while the block lasts. Raises TierFailed, and InvalidConfig.

        Does not wait for an object store: classic topics need none, diskless ones are served as soon as it answers. A
        store that answers and is not that of this cluster is refused.
        """
        async with AsyncExitStack() as stack:
            watching = TaskSet()
            watching.start(self.objects_watch.run(), name="object-store-watch")
            stack.push_async_callback(watching.close)
            await stack.enter_async_context(self.diskless.running(on_failure=on_failure))
            await self.diskless.wait_opened(within=_OPENED_WITHIN_S)
            if (wrong := self.objects_identity.why_wrong()) is not None:
                raise TierFailed(str(wrong))
            await stack.enter_async_context(self.remote.running())
            stack.callback(self.sql.listen(MIGRATION_CHANNEL, self._boundary_set))
            switching = {
                "topic-switches": self.switches.run(),
                "prefixes": self.prefixes.run(),
                "prefixes-elsewhere": self.prefix_watch.run(),
            }
            await stack.enter_async_context(in_background({**switching, "converted": self.converted.run()}))
            await self.switches.first_look(within=_OPENED_WITHIN_S)
            yield

    def _boundary_set(self) -> None:
        """Another broker may have set a boundary."""
        self.diskless.look_for_boundaries()
        self.switches.wake()
