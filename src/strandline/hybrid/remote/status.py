"""What is shown of tiered storage: a value that imports nothing of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a broker without tiered storage does not load it
    from strandline.remote.indexes import IndexCacheStatus
    from strandline.remote.manager import ManagerStatus
    from strandline.remote.reader import RemoteReaderStatus
    from strandline.remote.storage import RemoteStorageStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class TieredStatus:
    """The components of tiered storage at one instant."""

    manager: ManagerStatus
    reader: RemoteReaderStatus
    storage: RemoteStorageStatus
    indexes: IndexCacheStatus

    @property
    def topics(self) -> Sequence[str]:
        """The topics that were copied, deleted or read since the start, or are led here."""
        return sorted(self.manager.topics.keys() | self.reader.topics.keys())

    @property
    def manager_idle_percent(self) -> float:
        """The part of the copier and expiration pools that has nothing to do."""
        return (self.manager.copier_idle_percent + self.manager.expiration_idle_percent) / 2
