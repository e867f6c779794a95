"""Names of files and directories in a log directory, and the few ways we touch them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from strandline.model import TopicPartition

LOG: Final = ".log"
OFFSET_INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TXN_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
SEGMENT_SUFFIXES: Final = (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX)

DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
TEMPORARY: Final = ".tmp"

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"

DELETE_DIRECTORY: Final = "-delete"
STRAY_DIRECTORY: Final = "-stray"
FUTURE_DIRECTORY: Final = "-future"

# Kafka keeps its KRaft metadata log among the partitions; it is not one of ours.
FOREIGN_TOPICS: Final = frozenset({"__cluster_metadata"})

_PARTITION: Final = re.compile(r"(?P<topic>\S+)-(?P<partition>\d+)")
_RENAMED: Final = re.compile(r"(?P<topic>\S+)-(?P<partition>\d+)\.(?P<id>[0-9a-f]{32})-(?P<state>delete|stray|future)")
_NUMBERED: Final = re.compile(r"(?P<offset>\d{20})(?P<suffix>\.[a-z]+)(?P<state>\.deleted|\.cleaned|\.swap|)")
_LONGEST_NAME: Final = 255


def offset_name(offset: int, suffix: str) -> str:
    """The file name of a segment or snapshot file: 20 digits and a suffix."""
    return f"{offset:020d}{suffix}"


def parse_numbered(name: str) -> tuple[int, str, str] | None:
    """(offset, suffix, state suffix or "") of a file named by an offset; None for other files."""
    match = _NUMBERED.fullmatch(name)
    return (int(match["offset"]), match["suffix"], match["state"]) if match else None


def parse_partition_directory(name: str) -> TopicPartition | None:
    """The partition a directory belongs to, or None if the name is not that of a live partition."""
    if name.endswith((DELETE_DIRECTORY, STRAY_DIRECTORY, FUTURE_DIRECTORY)) and _RENAMED.fullmatch(name):
        return None
    match = _PARTITION.fullmatch(name)
    return TopicPartition(match["topic"], int(match["partition"])) if match else None


def is_delete_directory(name: str) -> bool:
    """True if the directory waits to be removed."""
    return name.endswith(DELETE_DIRECTORY) and _RENAMED.fullmatch(name) is not None


def renamed_directory(partition: TopicPartition, unique: UUID, state: str) -> str:
    """The name of a partition directory that is out of use, at most 255 characters long."""
    ending = f"-{partition.partition}.{unique.hex}{state}"
    return partition.topic[: _LONGEST_NAME - len(ending)] + ending


def write_atomically(path: str, data: bytes, *, sync: bool) -> None:
    """Replace a file: readers see the old content or the new one. With `sync` it also survives a power loss."""
    temporary = path + TEMPORARY
    write_pieces(temporary, (data,), sync=sync)
    os.replace(temporary, path)
    if sync:
        sync_directory(os.path.dirname(path))


def write_pieces(path: str, pieces: Iterable[bytes], *, sync: bool = False) -> None:
    """Write a file that no one looks at before it is complete, piece after piece."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        for piece in pieces:
            view = memoryview(piece)
            while view:
                view = view[os.write(fd, view) :]
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def read_whole(path: str) -> bytes:
    """The content of a small file. Raises FileNotFoundError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        chunks = []
        while chunk := os.read(fd, 1 << 20):
            chunks.append(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
    finally:
        os.close(fd)


def sync_file(path: str) -> None:
    """Force a file to disk. A file that is gone needs no forcing."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_directory(path: str) -> None:
    """Force a directory's entries to disk."""
    fd = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def remove_if_there(path: str) -> None:
    """Unlink a file that may be gone already."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def rename_if_there(source: str, target: str) -> bool:
    """Rename a file that may be gone already. True if it was there."""
    try:
        os.replace(source, target)
    except FileNotFoundError:
        return False
    return True
