"""The broker as it reads from an object store: `python -m bench.remote_through_memory broker ...`.

Remote segments in a directory are files of this machine, which the broker sends from file to socket. Here it treats
them as objects: they go through its memory, as those of S3 do, and as those of Kafka's LocalTieredStorage do in Kafka.
"""

from __future__ import annotations

from pathlib import Path

from strandline.__main__ import main
from strandline.remote.storage.objects import ObjectRemoteStorage
from strandline.remote.values import RemoteLogSegmentMetadata


def _no_path(self: ObjectRemoteStorage, metadata: RemoteLogSegmentMetadata) -> Path | None:
    return None


if __name__ == "__main__":
    ObjectRemoteStorage.log_segment_path = _no_path  # type: ignore[method-assign]
    main()
