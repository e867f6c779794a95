"""The snapshot files, and `_rlmm_committed_offsets`: from which offset each metadata partition is read after a start.

The snapshot is written first, then the offset; both replace the old file atomically. A snapshot that is damaged, of
another topic or older than its committed offset is not used: then the topic is read from its beginning, which is always
correct. So removing `_rlmm_committed_offsets` makes a broker read everything again. The files are in the log directory
itself: Kafka does not start if it finds a directory there that is not a partition.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Final

from strandline.crash import crash_point
from strandline.errors import CorruptMessage
from strandline.log.files import read_whole, write_atomically
from strandline.model import Offset
from strandline.remote.topic_based.cache import StoreImage
from strandline.remote.topic_based.snapshots.format import decode, encode
from strandline.remote.topic_based.topic import TopicDescription

logger = logging.getLogger(__name__)

COMMITTED_OFFSETS: Final = "_rlmm_committed_offsets"
SNAPSHOT: Final = "_rlmm_snapshot"


class SnapshotFiles:
    """Snapshots under one log directory. Everything here blocks; calls may come from several threads."""

    def __init__(self, log_dir: Path) -> None:
        self._offsets_file = log_dir / COMMITTED_OFFSETS
        self._log_dir = log_dir
        self._lock = threading.Lock()
        self._committed: dict[int, Offset] | None = None

    def load(self, partition: int, topic: TopicDescription) -> StoreImage | None:
        """The snapshot of a metadata partition; None if there is none, or, with a warning, if it cannot be used."""
        committed = self._offsets().get(partition)
        if committed is None:
            return None
        path = self._path(partition)
        try:
            image = decode(read_whole(str(path)))
            _check(image, topic, committed)
        except (OSError, CorruptMessage) as error:
            _warn(path, error)
            return None
        return image

    def save(self, partition: int, image: StoreImage) -> None:
        """Write a snapshot, then commit its offset. Raises OSError."""
        data = encode(image)
        self._log_dir.mkdir(parents=True, exist_ok=True)
        write_atomically(str(self._path(partition)), data, sync=True)
        crash_point("remote.metadata.after_snapshot")
        with self._lock:
            committed = {**self._read_offsets(), partition: image.next_offset}
            text = "".join(f"{number} {offset}\n" for number, offset in sorted(committed.items()))
            write_atomically(str(self._offsets_file), text.encode("ascii"), sync=True)
            self._committed = committed

    def _path(self, partition: int) -> Path:
        return self._log_dir / f"{SNAPSHOT}.{partition}"

    def _offsets(self) -> dict[int, Offset]:
        with self._lock:
            return self._read_offsets()

    def _read_offsets(self) -> dict[int, Offset]:
        if self._committed is None:
            self._committed = _parse_offsets(self._offsets_file)
        return self._committed


def _parse_offsets(path: Path) -> dict[int, Offset]:
    try:
        lines = read_whole(str(path)).decode("ascii").splitlines()
        pairs = [line.split() for line in lines]
        return {int(number): int(offset) for number, offset in pairs}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        _warn(path, error)
        return {}


def _check(image: StoreImage, topic: TopicDescription, committed: Offset) -> None:
    if (image.topic_id, image.topic_partitions) != topic:
        raise CorruptMessage("The snapshot is of another metadata topic.")
    if image.next_offset < committed:
        raise CorruptMessage(f"The snapshot ends at offset {image.next_offset}, but {committed} was committed.")


def _warn(path: Path, error: Exception) -> None:
    logger.warning("%s is not used, and __remote_log_metadata is read from its beginning: %s", path, error)
