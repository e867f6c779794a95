"""The parts of the diskless tier of one broker, once it is open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from strandline.errors import StrandlineError
from strandline.reads import ReadResult

if TYPE_CHECKING:  # a broker without diskless topics does not load them
    from strandline.controlplane.plane import SqlControlPlane
    from strandline.diskless.reader import DisklessReader, OffsetLookups, RecycledMemory
    from strandline.diskless.upkeep import FileCleaner, OrphanFinder, RetentionEnforcer
    from strandline.diskless.values import DisklessRead
    from strandline.diskless.writer import WalWriter
    from strandline.objects.retrying import RetryingStore


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DisklessTier:
    """What diskless partitions use, and what works for them in the background. A `TierReader`."""

    plane: SqlControlPlane
    objects: RetryingStore
    writer: WalWriter
    reader: DisklessReader
    memory: RecycledMemory
    lookups: OffsetLookups
    retention: RetentionEnforcer
    cleaner: FileCleaner
    orphans: OrphanFinder

    always_gives_a_batch: ClassVar[bool] = True

    async def read(
        self,
        requests: Sequence[DisklessRead],
        *,
        max_bytes: int,
        min_one_message: bool,
        is_wanted: Callable[[], bool],
    ) -> Sequence[ReadResult | StrandlineError]:
        """See `TierReader`. What is read goes to the cache, whether it is still wanted or not."""
        return await self.reader.read(requests, max_bytes=max(max_bytes, 1))
