"""The records of `__remote_log_metadata` as rows that can be printed: of files, and of a running cluster."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from strandline.admin.commands.dump.log_files import files_below
from strandline.client import EARLIEST, Cluster, CommandFailed, Json, check, sentences
from strandline.errors import StrandlineError
from strandline.log.files import LOG, parse_numbered, parse_partition_directory
from strandline.model import REMOTE_LOG_METADATA_TOPIC, Offset, uuid_to_text
from strandline.records import BatchHeader, Buffer, Record, crc_matches, iter_headers, read_records
from strandline.remote.topic_based.records import RemoteLogMetadata, deserialize, partition_of
from strandline.remote.values import RemoteLogSegmentMetadata, RemotePartitionDeleteMetadata
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

_FETCH_BYTES: Final = 1 << 20
_NO_REPLICA: Final = -1


# Files


def find_segments(path: Path) -> list[Path]:
    """The segment files of the metadata topic in a log directory, a partition or a file. Raises CommandFailed."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise CommandFailed(f"There is no file or directory {path}.")
    logs = (file for file in files_below(path) if file.suffix == LOG)
    found = sorted(file for file in logs if partition_of_file(file) is not None)
    if not found:
        raise CommandFailed(f"{path} has no segments of {REMOTE_LOG_METADATA_TOPIC} in it.")
    return found


def partition_of_file(file: Path) -> int | None:
    """The metadata partition that a segment file belongs to, by the name of its directory."""
    where = parse_partition_directory(file.resolve().parent.name)
    is_one = where is not None and where.topic == REMOTE_LOG_METADATA_TOPIC and parse_numbered(file.name) is not None
    return where.partition if where is not None and is_one else None


def rows_of_file(file: Path) -> Iterator[Json]:
    """A row for each record of a segment file. A damaged end gives a last row with `problem`."""
    partition = partition_of_file(file)
    with file.open("rb") as opened:
        if os.fstat(opened.fileno()).st_size == 0:
            return
        with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as data:
            yield from _rows(data, partition)


# A running cluster


def rows_of_cluster(bootstrap: str) -> Iterator[Json]:
    """A row for each record that consumers may read now, partition by partition. Raises CommandFailed."""
    with Cluster(bootstrap) as cluster, sentences():
        (topic,) = cluster.metadata([REMOTE_LOG_METADATA_TOPIC]).topics
        check(topic.error_code, None, f"The cluster at {bootstrap} has no {REMOTE_LOG_METADATA_TOPIC}")
        for partition in sorted(topic.partitions, key=lambda each: int(each.partition_index)):
            leader = cluster.broker(partition.leader_id)
            yield from _fetched(leader, topic.topic_id, partition.partition_index)


def _fetched(leader: Client, topic_id: Any, partition: int) -> Iterator[Json]:
    for position, data in fetch_records(leader, topic_id, partition):
        for row in _rows(data, partition):
            if row.get("offset", position) >= position:
                yield row


def fetch_records(
    leader: Client, topic_id: Any, partition: int, from_offset: Offset = 0
) -> Iterator[tuple[Offset, Buffer]]:
    """What consumers may read now of a metadata partition: batches, each with the offset of its request.

    Raises CommandFailed.
    """
    position = max(from_offset, _start_offset(leader, partition))
    while True:
        wanted = FetchPartition(partition=partition, fetch_offset=position, partition_max_bytes=_FETCH_BYTES)
        topic = FetchTopic(topic=REMOTE_LOG_METADATA_TOPIC, topic_id=topic_id, partitions=[wanted])
        answer = leader.request(ApiKey.FETCH, FetchRequest(max_bytes=_FETCH_BYTES, topics=[topic]))
        check(answer.error_code, None, f"{REMOTE_LOG_METADATA_TOPIC} cannot be read")
        fetched = answer.responses[0].partitions[0]
        check(fetched.error_code, None, f"{REMOTE_LOG_METADATA_TOPIC}-{partition} cannot be read")
        end = position
        for _, header in iter_headers(fetched.records or b""):
            end = header.next_offset
        if end == position:
            return
        yield position, fetched.records
        position = end


def _start_offset(leader: Client, partition: int) -> int:
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=EARLIEST)
    topic = ListOffsetsTopic(name=REMOTE_LOG_METADATA_TOPIC, partitions=[wanted])
    answer = leader.request(ApiKey.LIST_OFFSETS, ListOffsetsRequest(replica_id=_NO_REPLICA, topics=[topic]))
    found = answer.topics[0].partitions[0]
    check(found.error_code, None, f"{REMOTE_LOG_METADATA_TOPIC}-{partition} cannot be read")
    return int(found.offset)


# Rows


def _rows(data: Buffer, partition: int | None) -> Iterator[Json]:
    place = {} if partition is None else {"metadata_partition": partition}
    try:
        for position, header in iter_headers(data):
            for row in _batch(data, position, header):
                yield {**place, **row}
    except StrandlineError as error:
        yield {**place, "problem": f"bytes that are no batch: {error}"}


def _batch(data: Buffer, position: int, header: BatchHeader) -> Iterator[Json]:
    if header.is_control:
        return
    try:
        if not crc_matches(data, position, header):
            yield {"offset": header.base_offset, "problem": "the batch does not match its checksum"}
            return
        records = read_records(bytes(memoryview(data)[position : position + header.size]))
    except StrandlineError as error:
        yield {"offset": header.base_offset, "problem": str(error)}
        return
    yield from map(_record, records)


def _record(record: Record) -> Json:
    row: Json = {"offset": record.offset, "timestamp": record.timestamp}
    if record.value is None:
        return {**row, "problem": "the record has no value"}
    try:
        return {**row, **_message(deserialize(record.value))}
    except StrandlineError as error:
        return {**row, "problem": f"the record does not belong in this topic: {error}"}


def _message(message: RemoteLogMetadata) -> Json:
    where = partition_of(message)
    row: Json = {
        "type": type(message).__name__,
        "topic": where.topic,
        "topic_id": uuid_to_text(where.topic_id),
        "partition": where.partition,
        "state": message.state.name,
        "broker_id": message.broker_id,
        "event_timestamp": message.event_timestamp_ms,
    }
    if isinstance(message, RemotePartitionDeleteMetadata):
        return row
    row["segment_id"] = uuid_to_text(message.segment_id.id)
    row["custom_metadata"] = None if message.custom_metadata is None else message.custom_metadata.hex()
    if isinstance(message, RemoteLogSegmentMetadata):
        row["start_offset"], row["end_offset"] = message.start_offset, message.end_offset
        row["max_timestamp"] = message.max_timestamp_ms
        row["leader_epochs"] = {str(epoch): start for epoch, start in message.segment_leader_epochs.items()}
        row["size"] = message.segment_size_in_bytes
        row["txn_index_empty"] = message.txn_index_empty
    return row
