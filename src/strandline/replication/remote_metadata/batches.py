"""Batches of `__remote_log_metadata`: written with one record each, and read so that a damaged one hides no other."""

from __future__ import annotations

from collections.abc import Iterator

from strandline.errors import CorruptMessage, StrandlineError
from strandline.model import Offset, TimestampMs
from strandline.records import BatchHeader, Record, build_batch, crc_matches, iter_headers, read_records
from strandline.remote.topic_based.topic import MetadataTopicRecord, TopicChunk


def metadata_batch(value: bytes, timestamp_ms: TimestampMs) -> bytearray:
    """A batch with one record, without a key as Kafka writes it."""
    return build_batch([Record(0, timestamp_ms, None, value)])


def read_chunk(data: bytes, from_offset: Offset) -> TopicChunk:
    """The records at and after an offset. Raises CorruptMessage if the bytes do not begin with a batch."""
    records: list[MetadataTopicRecord] = []
    next_offset = from_offset
    try:
        for at, header in iter_headers(data):
            if header.last_offset >= from_offset:
                records.extend(record for record in _records(data, at, header) if record.offset >= from_offset)
                next_offset = header.next_offset
    except CorruptMessage:
        if next_offset == from_offset:
            raise  # otherwise the next read begins there
    if data and next_offset == from_offset:
        raise CorruptMessage(f"The batch at offset {from_offset} is cut short.")
    return TopicChunk(records, next_offset)


def _records(data: bytes, at: int, header: BatchHeader) -> Iterator[MetadataTopicRecord]:
    if header.is_control:
        return
    try:
        if not crc_matches(data, at, header):
            raise CorruptMessage("The batch does not match its checksum.")
        records = read_records(memoryview(data)[at : at + header.size])
    except StrandlineError as error:
        yield MetadataTopicRecord(header.base_offset, None, str(error))
        return
    for record in records:
        yield MetadataTopicRecord(record.offset, record.value)
