"""The parts of the diskless tier of one broker, once it is open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a broker without diskless topics does not load them
    from strandline.controlplane.ports import ProducerStates, RecordDeletion
    from strandline.diskless.reader import DisklessReader, OffsetLookups, RecycledMemory
    from strandline.diskless.upkeep import FileCleaner, LeftoverFinder, OrphanFinder, RetentionEnforcer
    from strandline.diskless.writer import WalWriter
    from strandline.objects.retrying import RetryingStore


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DisklessTier:
    """What diskless partitions use, and what works for them in the background."""

    producers: ProducerStates
    trimming: RecordDeletion
    objects: RetryingStore
    writer: WalWriter
    reader: DisklessReader
    memory: RecycledMemory
    lookups: OffsetLookups
    retention: RetentionEnforcer
    cleaner: FileCleaner
    orphans: OrphanFinder
    leftovers: LeftoverFinder
