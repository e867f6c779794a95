"""The small text files of a log directory: read and written exactly as Kafka does."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from strandline.errors import KafkaStorageError
from strandline.log.files import PARTITION_METADATA, read_whole, remove_if_there, write_atomically
from strandline.model import ZERO_UUID, TopicPartition, uuid_from_text, uuid_to_text

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
META_PROPERTIES: Final = "meta.properties"

_VERSION: Final = "0"


def _read_lines(path: str) -> list[str]:
    """The entries of a versioned text file. A file that is missing or empty has none."""
    try:
        return _parse(read_whole(path), path)
    except FileNotFoundError:
        return []


def _parse(data: bytes, path: str) -> list[str]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise KafkaStorageError(f"{path} is not a text file: {error}.") from error
    if not text:
        return []
    lines = text.splitlines()
    if lines[0].strip() != _VERSION:
        raise KafkaStorageError(f"{path} has version {lines[0]!r}; this broker reads version {_VERSION}.")
    if len(lines) < 2 or not lines[1].isdigit() or int(lines[1]) != len(lines) - 2:
        raise KafkaStorageError(f"{path} announces another number of entries than it holds.")
    return lines[2:]


def _format(lines: list[str]) -> bytes:
    return "\n".join([_VERSION, str(len(lines)), *lines, ""]).encode("utf-8")


def read_offsets(path: str) -> dict[TopicPartition, int]:
    """The offsets of a checkpoint file. Raises KafkaStorageError if the file is damaged."""
    offsets = {}
    for line in _read_lines(path):
        try:
            topic, partition, offset = line.split()
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError as error:
            raise KafkaStorageError(f"{path} has a malformed line: {line!r}.") from error
    return offsets


def write_offsets(path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace a checkpoint file. Blocking: it is forced to disk."""
    write_atomically(
        path, _format([f"{tp.topic} {tp.partition} {offset}" for tp, offset in offsets.items()]), sync=True
    )


def read_epochs(path: str) -> list[tuple[int, int]]:
    """(epoch, start offset) pairs of a leader-epoch-checkpoint, ascending."""
    return _epochs(_read_lines(path), path)


def parse_epochs(data: bytes, source: str) -> list[tuple[int, int]]:
    """The same of the content of such a file, which came from `source`. Raises KafkaStorageError if it is damaged."""
    return _epochs(_parse(data, source), source)


def _epochs(lines: list[str], path: str) -> list[tuple[int, int]]:
    entries = []
    for line in lines:
        try:
            epoch, start = line.split()
            entries.append((int(epoch), int(start)))
        except ValueError as error:
            raise KafkaStorageError(f"{path} has a malformed line: {line!r}.") from error
    return entries


def format_epochs(entries: Iterable[tuple[int, int]]) -> bytes:
    """The content of a leader-epoch-checkpoint."""
    return _format([f"{epoch} {start}" for epoch, start in entries])


def read_topic_id(directory: str) -> UUID | None:
    """The topic id in a partition's `partition.metadata`, None if there is no such file."""
    path = os.path.join(directory, PARTITION_METADATA)
    try:
        text = read_whole(path).decode("utf-8")
    except FileNotFoundError:
        return None
    try:
        fields = dict(line.split(": ", 1) for line in text.splitlines())
        if fields["version"] != _VERSION:
            raise KafkaStorageError(f"{path} has version {fields['version']}; this broker reads version {_VERSION}.")
        topic_id = uuid_from_text(fields["topic_id"])
    except (ValueError, KeyError) as error:
        raise KafkaStorageError(f"{path} is malformed: {error}.") from error
    if topic_id == ZERO_UUID:
        raise KafkaStorageError(f"{path} holds the zero topic id.")
    return topic_id


def write_topic_id(directory: str, topic_id: UUID) -> None:
    """Write `partition.metadata`. Not forced to disk: the log's next flush does that."""
    content = f"version: {_VERSION}\ntopic_id: {uuid_to_text(topic_id)}"
    write_atomically(os.path.join(directory, PARTITION_METADATA), content.encode("ascii"), sync=False)


def read_clean_shutdown(directory: str) -> int | None:
    """The broker epoch of the last clean shutdown (-1 if the file does not say), None after an unclean one."""
    try:
        content = read_whole(os.path.join(directory, CLEAN_SHUTDOWN))
    except FileNotFoundError:
        return None
    try:
        return int(json.loads(content)["brokerEpoch"])
    except (ValueError, KeyError, TypeError):
        return -1


def write_clean_shutdown(directory: str, broker_epoch: int) -> None:
    """Mark the shutdown as clean: every log of the directory was closed properly."""
    content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    write_atomically(os.path.join(directory, CLEAN_SHUTDOWN), content.encode("ascii"), sync=True)


def remove_clean_shutdown(directory: str) -> None:
    """Remove the mark of the last clean shutdown: from now on a crash must be noticed."""
    remove_if_there(os.path.join(directory, CLEAN_SHUTDOWN))


def read_properties(path: str) -> dict[str, str]:
    """A Java properties file as `meta.properties` is one: no continued lines, no escapes."""
    try:
        text = read_whole(path).decode("latin-1")
    except FileNotFoundError:
        return {}
    properties = {}
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith(("#", "!")):
            name, _, value = line.partition("=")
            properties[name.strip()] = value.strip()
    return properties


def write_properties(path: str, properties: Mapping[str, str]) -> None:
    """Replace a properties file. Blocking: it is forced to disk."""
    content = "".join(f"{name}={value}\n" for name, value in properties.items())
    write_atomically(path, content.encode("latin-1"), sync=True)
