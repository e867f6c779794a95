"""Walking over the batches of a segment file: headers only, or whole batches."""

from __future__ import annotations

import os
from collections.abc import Iterator
from struct import Struct
from typing import Final

from strandline.log.segment_file import SegmentFile
from strandline.records import HEADER_SIZE, LOG_OVERHEAD, BatchHeader, Buffer, iter_headers, read_header
from strandline.records.batch import CURRENT_MAGIC, HEADER

# Room for the headers of many small batches; of a large batch only its header is worth reading.
_HEADERS_CHUNK: Final = 16 * 1024
_BATCHES_CHUNK: Final = 1024 * 1024
_LOOKUP_CHUNK: Final = 2048

# Base offset, length, magic, last offset delta.
_unpack_span: Final = Struct(">qi4xb6xi").unpack_from
_unpack_header: Final = HEADER.unpack_from
_new_header = tuple.__new__


def find_batch(file: SegmentFile, position: int, end: int, offset: int) -> tuple[int, int] | None:
    """(position, end) of the first whole batch in [position, end) whose last offset is at least `offset`.

    The hot way to find where a read starts: it looks at four fields of each header. Raises CorruptMessage.
    """
    fd = file.fileno()
    while position < end:
        chunk = os.pread(fd, _LOOKUP_CHUNK, position)
        at = 0
        last = len(chunk) - HEADER_SIZE
        while at <= last:
            base_offset, length, magic, delta = _unpack_span(chunk, at)
            size = length + LOG_OVERHEAD
            if magic != CURRENT_MAGIC or size < HEADER_SIZE:
                header = read_header(chunk, at)
                delta, size = header.last_offset_delta, header.size
            if position + at + size > end:
                return None
            if base_offset + delta >= offset:
                return position + at, position + at + size
            at += size
        if at == 0:
            # Too little for a header of the present format; an old record may be smaller.
            return _find_tiny(chunk, position, end, offset)
        position += at
    return None


def _find_tiny(chunk: bytes, position: int, end: int, offset: int) -> tuple[int, int] | None:
    for at, header in iter_headers(chunk):
        if header.last_offset >= offset and position + at + header.size <= end:
            return position + at, position + at + header.size
    return None


def _header(chunk: Buffer, at: int) -> BatchHeader:
    """The header at a position, with one look at the bytes if it is an ordinary one. Raises CorruptMessage."""
    if len(chunk) - at >= HEADER_SIZE:
        fields = _unpack_header(chunk, at)
        if fields[3] == CURRENT_MAGIC and fields[1] >= HEADER_SIZE - LOG_OVERHEAD:
            return _new_header(BatchHeader, fields)
    return read_header(chunk, at)


def iter_file_headers(file: SegmentFile, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each whole batch in [position, end). Stops before a batch that is cut.

    Raises CorruptMessage where the bytes cannot begin a batch.
    """
    while position < end:
        chunk = file.read(position, min(_HEADERS_CHUNK, end - position))
        at = 0
        while len(chunk) - at >= HEADER_SIZE or (at == 0 and chunk):
            header = _header(chunk, at)
            size = header[1] + LOG_OVERHEAD
            if position + at + size > end:
                return
            yield position + at, header
            at += size
        if at == 0:
            return
        position += at


def iter_file_batches(
    file: SegmentFile, position: int, end: int, *, chunk_size: int = _BATCHES_CHUNK
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """(position, header, bytes) of each whole batch in [position, end). Stops before a batch that is cut.

    Raises CorruptMessage where the bytes cannot begin a batch. The bytes are valid until the next step.
    """
    while position < end:
        chunk = memoryview(file.read(position, min(chunk_size, end - position)))
        at = 0
        while len(chunk) - at >= HEADER_SIZE or (at == 0 and chunk):
            header = _header(chunk, at)
            size = header[1] + LOG_OVERHEAD
            if position + at + size > end:
                return
            if at + size > len(chunk):
                if at == 0:
                    chunk = memoryview(file.read(position, size))
                    if len(chunk) < size:
                        return
                else:
                    break
            yield position + at, header, chunk[at : at + size]
            at += size
        if at == 0:
            return
        position += at
