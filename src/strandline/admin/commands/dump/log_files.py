"""What is in the files of a log directory, as rows that can be printed."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from strandline.admin.text import preview
from strandline.client import CommandFailed, Json
from strandline.errors import StrandlineError
from strandline.log.checkpoints import read_epochs, read_offsets, read_properties
from strandline.log.files import (
    LEADER_EPOCHS,
    LOG,
    OFFSET_INDEX,
    PARTITION_METADATA,
    SNAPSHOT,
    TIME_INDEX,
    TXN_INDEX,
    parse_numbered,
)
from strandline.log.offset_index import OffsetIndex
from strandline.log.producer_snapshot import parse_snapshot
from strandline.log.time_index import TimeIndex
from strandline.log.transaction_index import TransactionIndex
from strandline.records import BatchHeader, Record, control_type_of, crc_matches, iter_headers, marker_of, read_records

CHECKPOINTS: Final = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
_PROPERTIES: Final = (PARTITION_METADATA, "meta.properties")
_READABLE: Final = frozenset({LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT})


def files_below(directory: Path) -> Iterator[Path]:
    """Every file in a directory. A broker may be deleting others meanwhile: what is gone is passed over."""
    return (Path(parent, name) for parent, _, names in os.walk(directory) for name in names)


def is_readable(path: Path) -> bool:
    """True if `read_file` knows what the file is."""
    numbered = parse_numbered(path.name)
    if numbered is not None:
        return numbered[1] in _READABLE
    return path.name == LEADER_EPOCHS or path.name in CHECKPOINTS or path.name in _PROPERTIES


def read_file(path: Path, *, with_records: bool) -> Iterator[Json]:
    """The content of one file, a row for each batch or entry. Raises CommandFailed.

    A damaged end gives a last row with `problem`, after everything before it that could be read.
    """
    try:
        yield from _read(path, with_records=with_records)
    except FileNotFoundError as error:
        raise CommandFailed(f"There is no file {path}.") from error
    except OSError as error:
        raise CommandFailed(f"{path} cannot be read: {error.strerror}.") from error
    except StrandlineError as error:
        yield {"problem": str(error)}


def _read(path: Path, *, with_records: bool) -> Iterator[Json]:
    numbered = parse_numbered(path.name)
    if numbered is not None:
        return _read_numbered(path, *numbered, with_records=with_records)
    if path.name == LEADER_EPOCHS:
        return ({"epoch": epoch, "start_offset": start} for epoch, start in read_epochs(str(path)))
    if path.name in CHECKPOINTS:
        offsets = read_offsets(str(path))
        return ({"topic": tp.topic, "partition": tp.partition, "offset": offset} for tp, offset in offsets.items())
    if path.name in _PROPERTIES:
        return iter([dict(read_properties(str(path)))])
    raise CommandFailed(f"{path} is not a file of a log directory.")


def _read_numbered(path: Path, offset: int, suffix: str, state: str, *, with_records: bool) -> Iterator[Json]:
    directory = str(path.parent)
    match suffix:
        case ".log":
            yield from read_batches(path, with_records=with_records)
        case ".index":
            offsets = OffsetIndex(directory, offset)
            offsets.assume_state(state)
            yield from ({"offset": entry.offset, "position": entry.position} for entry in offsets.entries)
        case ".timeindex":
            times = TimeIndex(directory, offset)
            times.assume_state(state)
            yield from ({"timestamp": entry.timestamp, "offset": entry.offset} for entry in times.entries)
        case ".txnindex":
            yield from (entry._asdict() for entry in TransactionIndex(directory, offset, exists=True))
        case ".snapshot":
            yield from (_producer(entry) for entry in parse_snapshot(path.read_bytes()))
        case _:
            raise CommandFailed(f"{path} is not a file of a log directory.")


def read_batches(path: Path, *, with_records: bool) -> Iterator[Json]:
    """The batches of a segment file; a last row with `problem` says what is wrong with its end."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return
        # Mapped, not read: a segment may be larger than the memory at hand.
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as data:
            yield from _batches(data, with_records=with_records)


def _batches(data: memoryview, *, with_records: bool) -> Iterator[Json]:
    end, problem = 0, "bytes of a batch that is not complete"
    try:
        for position, header in iter_headers(data):
            yield _batch(data, position, header, with_records=with_records)
            end = position + header.size
    except StrandlineError as error:
        problem = f"bytes that are no batch: {error}"
    rest = data[end:]
    if len(rest) > 0:
        if not any(rest[: 1 << 16]):
            problem = "unused, preallocated bytes"
        yield {"position": end, "problem": f"{len(rest)} {problem}"}


def _batch(data: memoryview, position: int, header: BatchHeader, *, with_records: bool) -> Json:
    row: Json = {
        "position": position,
        "size": header.size,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.record_count,
        "leader_epoch": header.leader_epoch,
        "timestamp_type": header.timestamp_type.name,
        "max_timestamp": header.max_timestamp,
        "codec": header.codec.name.lower(),
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "magic": header.magic,
        "crc_ok": crc_matches(data, position, header),
    }
    if header.delete_horizon_ms is not None:
        row["delete_horizon_ms"] = header.delete_horizon_ms
    if with_records and header.magic == 2:
        batch = bytes(data[position : position + header.size])
        row["content"] = [_record(record, is_control=header.is_control) for record in read_records(batch)]
    return row


def _record(record: Record, *, is_control: bool) -> Json:
    row: Json = {"offset": record.offset, "timestamp": record.timestamp}
    if is_control:
        marker = marker_of(record)
        row["control"] = control_type_of(record.key).name
        if marker is not None:
            row["coordinator_epoch"] = marker.coordinator_epoch
        return row
    row["key"] = _text(record.key)
    row["value"] = _text(record.value)
    if record.headers:
        row["headers"] = [[header.key, _text(header.value)] for header in record.headers]
    return row


def _text(data: bytes | None) -> str | None:
    return None if data is None else preview(data, limit=1 << 30)


def _producer(entry: object) -> Json:
    names = (
        "producer_id",
        "epoch",
        "last_sequence",
        "last_offset",
        "last_offset_delta",
        "last_timestamp",
        "coordinator_epoch",
        "txn_first_offset",
    )
    return {name: getattr(entry, name) for name in names}
