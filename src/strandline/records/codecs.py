"""Kafka's compression codecs, with a bound on what a compressed batch may grow to.

All of them work on whole buffers. Snappy comes in the framing of the xerial library that Kafka's Java client
uses, lz4 in frames of independent blocks (Kafka's Java reader knows no others); reading accepts a little more
than writing produces, because other clients differ.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from enum import IntEnum
from types import ModuleType
from typing import Final, TypeAlias

import cramjam

from strandline.errors import CorruptMessage, UnsupportedCompressionType

_Buffer: TypeAlias = bytes | bytearray | memoryview

# What one batch may decompress to. Clients stay far below it: their batches are a few MB at most.
MAX_DECOMPRESSED_BYTES: Final = 128 << 20

_FIRST_TRY_LEAST: Final = 1 << 16
_FIRST_TRY_MOST: Final = 1 << 21

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK: Final = 32 * 1024
_INT32: Final = struct.Struct(">i")

# Frame descriptor: version 1, independent blocks of at most 64 KB, no checksums; its own check byte is a constant.
_LZ4_HEADER: Final = bytes.fromhex("04224d18604082")
_LZ4_BLOCK: Final = 64 * 1024
_LZ4_STORED: Final = 1 << 31
_LZ4_END: Final = bytes(4)
_LZ4_FAST_LEVEL: Final = 9
_UINT32_LE: Final = struct.Struct("<I")

_GZIP_LEVEL: Final = 6
_ZSTD_LEVEL: Final = 3


class Codec(IntEnum):
    """How the records of a batch are compressed, by the number in its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def of(cls, number: int) -> Codec:
        """The codec with this number. Raises UnsupportedCompressionType."""
        try:
            return _BY_NUMBER[number]
        except IndexError:
            raise UnsupportedCompressionType(f"Kafka has no compression codec with the number {number}.") from None


_BY_NUMBER: Final = tuple(Codec)


def compress(codec: Codec, data: _Buffer, level: int | None = None) -> bytes:
    """Compress `data` as Kafka's clients read it. `level` is the topic's compression.<codec>.level."""
    return _COMPRESSORS[codec](data, level)


def decompress(codec: Codec, data: _Buffer, limit: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """The inverse of `compress`. Raises CorruptMessage if the data is damaged or grows beyond `limit` bytes."""
    return _DECOMPRESSORS[codec](data, limit)


def _store(data: _Buffer, level: int | None) -> bytes:
    return bytes(data)


def _gzip(data: _Buffer, level: int | None) -> bytes:
    return bytes(cramjam.gzip.compress(data, _GZIP_LEVEL if level is None or level < 0 else level))


def _zstd(data: _Buffer, level: int | None) -> bytes:
    return bytes(cramjam.zstd.compress(data, _ZSTD_LEVEL if level is None else level))


def _snappy(data: _Buffer, level: int | None) -> bytes:
    parts = [_XERIAL_HEADER]
    with memoryview(data) as view:
        for start in range(0, len(view), _XERIAL_BLOCK):
            block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK]))
            parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)


def _lz4(data: _Buffer, level: int | None) -> bytes:
    parts = [_LZ4_HEADER]
    with memoryview(data) as view:
        for start in range(0, len(view), _LZ4_BLOCK):
            plain = view[start : start + _LZ4_BLOCK]
            block = _lz4_block(plain, level)
            if len(block) < len(plain):
                parts += (_UINT32_LE.pack(len(block)), block)
            else:
                parts += (_UINT32_LE.pack(len(plain) | _LZ4_STORED), bytes(plain))
    parts.append(_LZ4_END)
    return b"".join(parts)


def _lz4_block(plain: memoryview, level: int | None) -> bytes:
    # Kafka's default level, 9, means the fast compressor; the others ask for the slow one.
    if level is None or level == _LZ4_FAST_LEVEL:
        return bytes(cramjam.lz4.compress_block(plain, store_size=False))
    return bytes(cramjam.lz4.compress_block(plain, mode="high_compression", compression=level, store_size=False))


def _unstore(data: _Buffer, limit: int) -> bytes:
    return bytes(data)


def _unsnappy(data: _Buffer, limit: int) -> bytes:
    raw = bytes(data)
    try:
        if not raw.startswith(_XERIAL_MAGIC):
            return _unsnappy_block(raw, limit)
        return _unsnappy_stream(raw, limit)
    except cramjam.DecompressionError as error:
        raise CorruptMessage(f"The snappy data of the batch is damaged: {error}.") from error


def _unsnappy_stream(raw: bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    position = len(_XERIAL_HEADER)
    while position < len(raw):
        if raw.startswith(_XERIAL_MAGIC, position):  # several streams may follow one another
            position += len(_XERIAL_HEADER)
            continue
        if len(raw) - position < 4:
            raise CorruptMessage("The snappy data of the batch ends inside a block length.")
        length = _INT32.unpack_from(raw, position)[0]
        position += 4
        if not 0 <= length <= len(raw) - position:
            raise CorruptMessage(f"A snappy block claims {length} bytes, but {len(raw) - position} are left.")
        block = _unsnappy_block(raw[position : position + length], limit)
        parts.append(block)
        limit -= len(block)
        position += length
    return b"".join(parts)


def _unsnappy_block(block: bytes, limit: int) -> bytes:
    if not block:
        return b""
    size = cramjam.snappy.decompress_raw_len(block)
    if size > limit:
        raise _too_large(Codec.SNAPPY)
    # One byte of a snappy copy yields at most 64 bytes: a block that claims more is damaged. No memory is allocated.
    if size > 64 * len(block):
        raise CorruptMessage(f"A snappy block of {len(block)} bytes claims to hold {size}.")
    return bytes(cramjam.snappy.decompress_raw(block))


def _stream_decompressor(codec: Codec, module: ModuleType) -> Callable[[_Buffer, int], bytes]:
    def decompress_stream(data: _Buffer, limit: int) -> bytes:
        try:
            room = bytearray(min(limit, max(_FIRST_TRY_LEAST, min(8 * len(data), _FIRST_TRY_MOST))))
            try:
                return bytes(memoryview(room)[: module.decompress_into(data, room)])
            except cramjam.DecompressionError:
                if len(room) == limit:
                    raise
            return _decompress_at_large(module, data, limit)
        except cramjam.DecompressionError as error:
            if "whole buffer" in str(error):
                raise _too_large(codec) from error
            raise CorruptMessage(f"The {codec.name.lower()} data of the batch is damaged: {error}.") from error

    return decompress_stream


def _decompress_at_large(module: ModuleType, data: _Buffer, limit: int) -> bytes:
    # Anonymous memory costs only the pages that are written, so reserving the whole limit is cheap.
    with mmap.mmap(-1, limit) as room:
        return room[: module.decompress_into(data, room)]


def _too_large(codec: Codec) -> CorruptMessage:
    return CorruptMessage(f"The batch decompresses ({codec.name.lower()}) to more bytes than the broker allows.")


_COMPRESSORS: Final = {
    Codec.NONE: _store,
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
_DECOMPRESSORS: Final = {
    Codec.NONE: _unstore,
    Codec.GZIP: _stream_decompressor(Codec.GZIP, cramjam.gzip),
    Codec.SNAPPY: _unsnappy,
    Codec.LZ4: _stream_decompressor(Codec.LZ4, cramjam.lz4),
    Codec.ZSTD: _stream_decompressor(Codec.ZSTD, cramjam.zstd),
}
