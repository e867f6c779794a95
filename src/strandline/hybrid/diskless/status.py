"""What is shown of the diskless tier: a value that imports nothing of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a broker without diskless topics does not load it
    from strandline.diskless.reader import DisklessReaderStatus
    from strandline.diskless.upkeep import FileCleanerStatus, LeftoverStatus, OrphanStatus, RetentionStatus
    from strandline.diskless.writer import WriterStatus
    from strandline.objects import ObjectStoreStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class DisklessTierStatus:
    """The components of the open diskless tier."""

    objects: ObjectStoreStatus
    writer: WriterStatus
    reader: DisklessReaderStatus
    retention: RetentionStatus
    cleaner: FileCleanerStatus
    orphans: OrphanStatus
    leftovers: LeftoverStatus
