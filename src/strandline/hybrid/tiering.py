"""Whether this broker has tiered storage, for everybody who has to know. Loads nothing of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from strandline.hybrid.remote_tier import RemoteTier


class TieredTopics:
    """Holds the open tier. There is none on a broker with `remote.log.storage.system.enable=false`."""

    def __init__(self) -> None:
        self.tier: RemoteTier | None = None
        """What tiered partitions use; None before it is open, and on brokers that do not have it."""

    @asynccontextmanager
    async def serving(self, opening: AbstractAsyncContextManager[RemoteTier]) -> AsyncIterator[RemoteTier]:
        """Open the tier, and have it while the block lasts."""
        async with opening as tier:
            self.tier = tier
            try:
                yield tier
            finally:
                self.tier = None
