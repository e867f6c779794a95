"""The files of the index cache. Everything here blocks; `RemoteIndexCache` calls it from one thread, in order.

`<start offset>_<segment id>.{index,timeindex,txnindex}` are copies of the remote indexes, named as Kafka names them. A
file `.sums` beside them holds their lengths and checksums: an index file has no checksum of its own, and a wrong
position would send a reader into the middle of a batch. Nothing is flushed: an index that a crash damages is fetched
again.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from strandline.clock import Clock, Ids
from strandline.model import uuid_from_text, uuid_to_text
from strandline.remote.indexes.segment import RemoteIndexDamaged, check_index
from strandline.remote.values import IndexType, RemoteLogSegmentMetadata

CACHED: Final = (IndexType.OFFSET, IndexType.TIMESTAMP, IndexType.TRANSACTION)
_SUMS: Final = "sums"
_NAME: Final = re.compile(r"(\d+_([A-Za-z0-9_-]{22}))\.(index|timeindex|txnindex|sums)")
_LEFTOVERS: Final = (".tmp", ".deleted")


@dataclass(frozen=True, slots=True)
class CachedSegment:
    """The files of one segment."""

    segment_id: UUID
    name: str
    size: int


def cache_name(metadata: RemoteLogSegmentMetadata) -> str:
    """The file name of a segment up to the dot."""
    return f"{metadata.start_offset}_{uuid_to_text(metadata.segment_id.id)}"


class IndexFiles:
    """A directory of cached indexes."""

    def __init__(self, directory: Path, *, clock: Clock, ids: Ids) -> None:
        self._directory, self._clock, self._ids = directory, clock, ids

    def open(self) -> list[CachedSegment]:
        """Create the directory if it is missing, remove half-written files, and list the segments.

        The most recently used come last.
        """
        self._directory.mkdir(parents=True, exist_ok=True)
        sizes: dict[tuple[str, str], int] = {}
        used: dict[tuple[str, str], int] = {}
        with os.scandir(self._directory) as entries:
            for entry in entries:
                if entry.name.endswith(_LEFTOVERS):
                    os.unlink(entry.path)
                elif match := _NAME.fullmatch(entry.name):
                    key, stat = (match[1], match[2]), entry.stat()
                    sizes[key] = sizes.get(key, 0) + stat.st_size
                    if match[3] != _SUMS:
                        used[key] = max(used.get(key, 0), stat.st_mtime_ns)
        return [
            CachedSegment(uuid_from_text(key[1]), key[0], sizes[key])
            for key in sorted(sizes, key=lambda key: used.get(key, 0))
        ]

    def load(
        self, metadata: RemoteLogSegmentMetadata, kinds: Collection[IndexType]
    ) -> Mapping[IndexType, bytes] | None:
        """These indexes of a segment; None if one is missing. Raises RemoteIndexDamaged."""
        name = cache_name(metadata)
        sums = self._sums(name)
        found = {}
        for kind in kinds:
            try:
                data = self._path(name, kind.value).read_bytes()
            except FileNotFoundError:
                return None
            expected = sums.get(kind.value)
            if expected is None:
                check_index(metadata, kind, data)  # Kafka's own cache has no sums
            elif expected != _sum(data):
                raise RemoteIndexDamaged(f"{self._path(name, kind.value)} does not match its checksum.")
            found[kind] = data
        self._note_use(name, found)
        return found

    def store(self, metadata: RemoteLogSegmentMetadata, found: Mapping[IndexType, bytes]) -> int:
        """Write indexes of a segment beside those that are there. Returns the bytes of all its files."""
        name = cache_name(metadata)
        sums = {**self._sums(name), **{kind.value: _sum(data) for kind, data in found.items()}}
        for kind, data in found.items():
            self._write(self._path(name, kind.value), data)
        self._write(self._path(name, _SUMS), json.dumps(sums).encode())
        self._note_use(name, found)
        return self._size(name)

    def remove(self, name: str) -> None:
        """Delete all files of a segment."""
        for suffix in (_SUMS, *(kind.value for kind in CACHED)):
            self._path(name, suffix).unlink(missing_ok=True)

    def _note_use(self, name: str, kinds: Collection[IndexType]) -> None:
        now = self._clock.now_ms() * 1_000_000
        for kind in kinds:
            os.utime(self._path(name, kind.value), ns=(now, now))

    def _path(self, name: str, suffix: str) -> Path:
        return self._directory / f"{name}.{suffix}"

    def _size(self, name: str) -> int:
        total = 0
        for suffix in (_SUMS, *(kind.value for kind in CACHED)):
            try:
                total += self._path(name, suffix).stat().st_size
            except FileNotFoundError:
                continue
        return total

    def _write(self, path: Path, data: bytes) -> None:
        fresh = self._directory / f"{self._ids.uuid().hex}.tmp"
        try:
            fresh.write_bytes(data)
            os.replace(fresh, path)
        finally:
            fresh.unlink(missing_ok=True)

    def _sums(self, name: str) -> dict[str, Any]:
        """Raises RemoteIndexDamaged."""
        path = self._path(name, _SUMS)
        try:
            sums = json.loads(path.read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise RemoteIndexDamaged(f"{path} is not valid JSON.") from error
        if not isinstance(sums, dict):
            raise RemoteIndexDamaged(f"{path} does not hold a JSON object.")
        return sums


def _sum(data: bytes) -> list[int]:
    return [len(data), zlib.crc32(data)]
