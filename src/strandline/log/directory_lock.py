"""Claiming a log directory: it is created, locked, and marked with the ids of broker and cluster."""

from __future__ import annotations

import fcntl
import os
from typing import Final
from uuid import UUID

from strandline.clock import Ids
from strandline.errors import InconsistentClusterId, InvalidConfig, KafkaStorageError
from strandline.log.checkpoints import META_PROPERTIES, read_properties, write_properties
from strandline.model import uuid_from_text, uuid_to_text

LOCK_FILE: Final = ".lock"


class DirectoryLock:
    """Holds `.lock` so that no second broker, of ours or Kafka's, uses the directory."""

    __slots__ = ("_fd",)

    def __init__(self, directory: str) -> None:
        """Raises KafkaStorageError if another process holds it, OSError if the file cannot be created."""
        path = os.path.join(directory, LOCK_FILE)
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # Kafka takes a POSIX record lock; those do not keep a process from itself, so take the other kind too.
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._fd)
            raise KafkaStorageError(
                f"Another broker uses the log directory {directory} (it holds {path}). Stop it, or use another one."
            ) from error

    def release(self) -> None:
        """Let others have the directory."""
        os.close(self._fd)


def claim_directory(directory: str, *, node_id: int, cluster_id: str | None, ids: Ids) -> UUID:
    """Check `meta.properties`, or write it. Returns the id of the directory.

    Raises InvalidConfig if the directory belongs to another broker, InconsistentClusterId if to another cluster.
    """
    path = os.path.join(directory, META_PROPERTIES)
    found = read_properties(path)
    owner = found.get("node.id", found.get("broker.id"))
    if owner is not None and owner != str(node_id):
        raise InvalidConfig(f"{path} says that the directory belongs to node.id {owner}, but this broker is {node_id}.")
    cluster = found.get("cluster.id")
    if cluster_id is not None and cluster is not None and cluster != cluster_id:
        raise InconsistentClusterId(f"{path} says that the directory belongs to cluster {cluster}, not {cluster_id}.")
    cluster = cluster_id or cluster
    known = found.get("directory.id")
    directory_id = uuid_from_text(known) if known else ids.uuid()
    if cluster is None:
        return directory_id
    wanted = {
        "node.id": str(node_id),
        "directory.id": uuid_to_text(directory_id),
        "version": "1",
        "cluster.id": cluster,
    }
    if found != wanted:
        write_properties(path, wanted)
    return directory_id
