"""The parts of the diskless tier of one broker, once it is open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from strandline.controlplane import DisklessLog
from strandline.hybrid.diskless.status import DisklessTierStatus
from strandline.model import Offset, TopicIdPartition, TopicPartition

if TYPE_CHECKING:  # a broker without diskless topics does not load them
    from strandline.controlplane.ports import ProducerStates, RecordDeletion
    from strandline.diskless.reader import DisklessReader, OffsetLookups, RecycledMemory
    from strandline.diskless.upkeep import FileCleaner, LeftoverFinder, OrphanFinder, RetentionEnforcer
    from strandline.diskless.writer import WalWriter
    from strandline.objects.retrying import RetryingStore


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DisklessTier:
    """What diskless partitions use, and what works for them in the background. A `DisklessEngine`."""

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

    is_open: ClassVar[bool] = True

    @property
    def url(self) -> str:
        """See `DisklessEngine`."""
        return self.objects.url

    @property
    def is_writing(self) -> bool:
        """See `DisklessEngine`."""
        return self.writer.status().pending_bytes > 0

    def hurry(self) -> None:
        """See `DisklessEngine`."""
        self.writer.hurry()

    def learn(self, log: DisklessLog) -> None:
        """See `DisklessEngine`."""
        self.reader.learn(log)

    def forget(self, partition: TopicIdPartition) -> None:
        """See `DisklessEngine`."""
        self.reader.forget(partition)

    def log_start_moved(self, partition: TopicIdPartition, offset: Offset) -> None:
        """See `DisklessEngine`."""
        self.reader.log_start_moved(partition, offset)

    def status(self) -> DisklessTierStatus:
        """See `DisklessEngine`."""
        return DisklessTierStatus(
            objects=self.objects.status(),
            writer=self.writer.status(),
            reader=self.reader.status(),
            retention=self.retention.status(),
            cleaner=self.cleaner.status(),
            orphans=self.orphans.status(),
            leftovers=self.leftovers.status(),
        )

    def why_unserved(self, partition: TopicPartition, *, is_led: bool) -> None:
        """See `DisklessEngine`."""

    def why_closed(self) -> None:
        """See `DisklessEngine`."""

    def why_not_writable(self) -> str:
        """See `DisklessEngine`."""
        return ""
