"""The listing of remote storage, grouped by segment."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from strandline.model import Offset, TimestampMs, uuid_from_text
from strandline.objects import ObjectInfo, ObjectStore
from strandline.objects.comparing import Progress
from strandline.objects.marker import REMOTE_STORE_ID_KEY
from strandline.remote.storage.names import LOG
from strandline.remote.values import IndexType

_KINDS: Final = "|".join((LOG, *(kind.value for kind in IndexType)))
_NAME: Final = re.compile(
    rf"(?P<name>(?P<directory>[^/]+-\d+-[A-Za-z0-9_-]{{22}})/(?P<offset>\d{{20}})-(?P<id>[A-Za-z0-9_-]{{21}}[AQgw]))"
    rf"\.(?P<kind>{_KINDS})"
)
_PROGRESS_EVERY: Final = 1000


@dataclass(slots=True)
class SegmentObjects:
    """The objects of one segment."""

    name: str
    """Their key up to the dot, without the prefix of the storage."""
    directory: str
    start_offset: Offset
    segment_id: UUID
    sizes: dict[str, int] = field(default_factory=dict)
    """By kind: `log`, or the value of an IndexType."""
    modified_ms: TimestampMs = 0
    """Of the newest object."""

    @property
    def size(self) -> int:
        return sum(self.sizes.values())

    def add(self, kind: str, info: ObjectInfo) -> None:
        """Add an object."""
        self.sizes[kind] = info.size
        self.modified_ms = max(self.modified_ms, info.modified_ms)


class Listing:
    """One pass over the objects with a prefix. Holds one segment at a time, and counts objects."""

    def __init__(self, store: ObjectStore, prefix: str, progress: Progress) -> None:
        self._store, self._prefix, self._progress = store, prefix, progress
        self.objects = 0
        self.bytes = 0
        self.foreign = 0

    async def segments(self) -> AsyncGenerator[SegmentObjects, None]:
        """All segments. Those of a directory follow each other, since objects are listed in order of keys."""
        current: SegmentObjects | None = None
        async with aclosing(self._store.list(self._prefix)) as infos:
            async for info in infos:
                match = _NAME.fullmatch(info.key, len(self._prefix))
                if match is None:
                    self.foreign += info.key != self._prefix + REMOTE_STORE_ID_KEY
                    continue
                self._count(info)
                if current is None or current.name != match["name"]:
                    if current is not None:
                        yield current
                    current = SegmentObjects(
                        match["name"], match["directory"], int(match["offset"]), uuid_from_text(match["id"])
                    )
                current.add(match["kind"], info)
        if current is not None:
            yield current

    def _count(self, info: ObjectInfo) -> None:
        self.objects += 1
        self.bytes += info.size
        if self.objects % _PROGRESS_EVERY == 0:
            self._progress("objects compared", self.objects)
