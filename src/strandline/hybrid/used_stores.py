"""The stores that a broker uses, and how they are."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.health import HealthStatus
from strandline.hybrid.remote.topics import TieredTopics
from strandline.hybrid.store_watch import StoreWatch


class UsedStores:
    """The object store of diskless topics, and remote storage."""

    def __init__(self, objects: StoreWatch, tiered: TieredTopics) -> None:
        self._objects, self._tiered = objects, tiered

    def health(self) -> Sequence[HealthStatus]:
        """Of the stores that are in use, or that the settings name."""
        objects = (self._objects.health.status(),) if self._objects.is_wanted() else ()
        return (*objects, *self._tiered.storage.health())
