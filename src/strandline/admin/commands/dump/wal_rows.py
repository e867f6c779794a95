"""What is in WAL objects, as rows that can be printed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import TypeAlias

from strandline.client import CommandFailed, Json
from strandline.diskless.wal import (
    DamagedObject,
    Footer,
    WalExtent,
    iter_batches,
    parse_footer,
    read_footer,
    verify_extent,
)
from strandline.model import uuid_to_text
from strandline.objects import ObjectNotFound, ObjectStore
from strandline.objects.store import Buffer
from strandline.records import BatchHeader, crc_matches

# The bytes of an extent.
ReadExtent: TypeAlias = Callable[[WalExtent], Awaitable[Buffer]]


async def describe_key(store: ObjectStore, key: str, *, with_batches: bool) -> Json:
    """The object under a key. Raises CommandFailed, DamagedObject and ObjectStoreErrors."""
    size = await _size_of(store, key)
    footer = await read_footer(store, key, size)

    async def read(extent: WalExtent) -> Buffer:
        return await store.get_range(key, extent.byte_offset, extent.byte_size)

    return await _describe(key, size, footer, read if with_batches else None)


def read_whole(path: Path) -> bytes:
    """The bytes of a file. Raises CommandFailed."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CommandFailed(f"{path} cannot be read: {error.strerror}.") from error


async def describe_bytes(name: str, data: bytes, *, with_batches: bool) -> Json:
    """An object whose bytes are at hand. Raises DamagedObject."""
    footer = parse_footer(data)
    if footer.data_size + footer.size != len(data):
        raise DamagedObject(f"It has {len(data)} bytes, but its footer describes {footer.data_size + footer.size}.")

    async def read(extent: WalExtent) -> Buffer:
        return memoryview(data)[extent.byte_offset : extent.byte_end]

    return await _describe(name, len(data), footer, read if with_batches else None)


async def _size_of(store: ObjectStore, key: str) -> int:
    async with aclosing(store.list(key)) as items:
        async for item in items:
            if item.key == key:
                return item.size
    raise ObjectNotFound(f"There is no object {key} in {store.url}, and no such file.")


async def _describe(name: str, size: int, footer: Footer, read: ReadExtent | None) -> Json:
    return {
        "object": name,
        "size": size,
        "created_ms": footer.created_ms,
        "broker_id": footer.broker_id,
        "cluster_id": footer.cluster_id,
        "version": footer.version,
        "extents": [await _extent(extent, read) for extent in footer.extents],
    }


async def _extent(extent: WalExtent, read: ReadExtent | None) -> Json:
    row: Json = {
        "topic_id": uuid_to_text(extent.topic_id),
        "partition": extent.partition,
        "byte_offset": extent.byte_offset,
        "byte_size": extent.byte_size,
        "batch_count": extent.batch_count,
        "record_count": extent.record_count,
        "min_timestamp": extent.min_timestamp,
        "max_timestamp": extent.max_timestamp,
        "leader_epoch": extent.leader_epoch,
        "timestamp_type": extent.timestamp_type.name,
        "crc": f"{extent.crc:08x}",
    }
    if read is not None:
        _add_batches(row, extent, await read(extent))
    return row


def _add_batches(row: Json, extent: WalExtent, data: Buffer) -> None:
    """The batches as far as there are any, and what is wrong with the extent as a whole."""
    batches: list[Json] = []
    row["batches"], row["problem"] = batches, None
    try:
        for position, header in iter_batches(extent, data):
            is_whole = crc_matches(data, position, header)
            batches.append(_batch(extent.byte_offset + position, header, crc_ok=is_whole))
        verify_extent(extent, data)
    except DamagedObject as error:
        row["problem"] = str(error)


def _batch(position: int, header: BatchHeader, *, crc_ok: bool) -> Json:
    return {
        "position": position,
        "size": header.size,
        "records": header.record_count,
        "last_offset_delta": header.last_offset_delta,
        "timestamp_type": header.timestamp_type.name,
        "base_timestamp": header.base_timestamp,
        "max_timestamp": header.max_timestamp,
        "codec": header.codec.name.lower() if crc_ok else "unknown",
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "crc_ok": crc_ok,
    }
