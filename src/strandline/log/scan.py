"""Walking over the batches of a segment file: headers only, or whole batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from strandline.log.segment_file import SegmentFile
from strandline.records.batch import HEADER_SIZE, BatchHeader, read_header

# Room for the headers of many small batches; of a large batch only its header is worth reading.
_HEADERS_CHUNK: Final = 16 * 1024
_BATCHES_CHUNK: Final = 1024 * 1024


def iter_file_headers(file: SegmentFile, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each whole batch in [position, end). Stops before a batch that is cut.

    Raises CorruptMessage where the bytes cannot begin a batch.
    """
    while position < end:
        chunk = file.read(position, min(_HEADERS_CHUNK, end - position))
        at = 0
        while len(chunk) - at >= HEADER_SIZE or (at == 0 and chunk):
            header = read_header(chunk, at)
            size = header.size
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
            header = read_header(chunk, at)
            size = header.size
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
