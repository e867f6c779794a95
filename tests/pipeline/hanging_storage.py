"""A storage for segments, chosen by class name, that never ends a deletion that a test wants to hang."""

from __future__ import annotations

import asyncio
from pathlib import Path

from strandline.remote.storage.objects import ObjectRemoteStorage
from strandline.remote.values import RemoteLogSegmentMetadata

CLASS_NAME = f"{__name__}.HangingStorage"


def hang(data_dir: Path, topic: str) -> None:
    """From now on, no deletion of a segment of this topic ends."""
    (data_dir / f"hang-{topic}").touch()


def hung(data_dir: Path) -> list[str]:
    """The topics of the deletions that hang or have hung, in the order in which they began."""
    path = data_dir / "hung"
    return path.read_text().split() if path.exists() else []


class HangingStorage(ObjectRemoteStorage):
    """In a directory below the data directory of the broker."""

    async def delete_log_segment_data(self, metadata: RemoteLogSegmentMetadata) -> None:
        assert self._directory is not None
        topic = metadata.partition.topic
        if (self._directory.parent / f"hang-{topic}").exists():
            with (self._directory.parent / "hung").open("a") as file:
                file.write(f"{topic}\n")
            await asyncio.Event().wait()
        await super().delete_log_segment_data(metadata)
