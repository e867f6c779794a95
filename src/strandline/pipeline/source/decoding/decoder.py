"""Turns the bytes of batches into record batches of Arrow, each of about the same size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from strandline.conversion_api.values import PlannedRow
from strandline.errors import CorruptMessage, InvalidRecord, UnsupportedForMessageFormat
from strandline.model import INT64_MAX, Offset, TimestampMs
from strandline.pipeline.source.decoding.fields import read_fields
from strandline.pipeline.source.decoding.numbers import int64, repeated
from strandline.pipeline.source.decoding.walking import find_records
from strandline.pipeline.source.schema import arrow_schema
from strandline.records import HEADER_SIZE, BatchHeader, TimestampType, crc_matches, iter_headers
from strandline.records.batch import CODEC_MASK, TIMESTAMP_TYPE_BIT
from strandline.records.record import records_data

PAGE_BYTES: Final = 8 << 20
"""How many bytes of records, uncompressed, become one record batch of Arrow: a batch of Kafka more at most."""

_MS: Final = int64(1000)
# Spark counts microseconds in 64 bits, Kafka milliseconds: later and earlier times than these do not fit.
_LAST_MS: Final = int64(INT64_MAX // 1000)
_FIRST_MS: Final = int64(-(INT64_MAX // 1000))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which records of a partition are asked for."""

    start: Offset
    end: Offset
    """Exclusive."""
    min_timestamp: TimestampMs = -INT64_MAX
    max_timestamp: TimestampMs = INT64_MAX
    """Inclusive."""

    @property
    def has_times(self) -> bool:
        return self.min_timestamp > -INT64_MAX or self.max_timestamp < INT64_MAX


@dataclass(slots=True)
class _Page:
    """Batches that are gathered."""

    pieces: list[bytes] = field(default_factory=list)
    size: int = 0
    """Bytes of the pieces."""
    taken: int = 0
    """Bytes of the records that are asked for, about."""
    starts: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    run_ends: list[int] = field(default_factory=list)
    base_offsets: list[int] = field(default_factory=list)
    base_timestamps: list[int] = field(default_factory=list)
    timestamp_types: list[int] = field(default_factory=list)
    floors: list[int] = field(default_factory=list)
    """The first offset of each batch that is wanted, and was not there before."""
    is_partial: bool = False
    """Whether records are in it that are not wanted."""

    def add(self, piece: bytes) -> int:
        """Keep bytes. Returns where they begin in the page."""
        begin = self.size
        self.pieces.append(piece)
        self.size += len(piece)
        return begin


class Decoder:
    """Decodes one range of a partition: bytes go in, in their order, and record batches come out.

    Control batches are left out. Every checksum is checked.
    """

    def __init__(
        self, topic: str, partition: int, wanted: Wanted, *, include_headers: bool, page_bytes: int = PAGE_BYTES
    ) -> None:
        self._topic, self._partition, self._wanted = topic, partition, wanted
        self._include_headers, self._page_bytes = include_headers, page_bytes
        self._schema = arrow_schema(include_headers=include_headers)
        self._page = _Page()
        # By time, few batches of many bytes may be wanted: only those are kept. Otherwise nearly all are, and the bytes
        # are kept as they came, without a copy.
        self._is_sparse = wanted.has_times
        self.next_offset = wanted.start
        """Behind the last batch that went in."""

    def feed(self, data: bytes, *, row: PlannedRow | None = None, name: str) -> Iterator[Any]:
        """Whole batches, and the record batches that are ready. `row`: they are of a WAL object, which says less.

        Batches below the wanted offsets, or before the wanted time, are passed over. Raises CorruptMessage or
        InvalidRecord with a sentence that names `name`.
        """
        if not self._is_sparse and self._page.size + len(data) > 2 * self._page_bytes:
            yield from self.finish()
        next_offset = None if row is None else row.base_offset
        piece_at = -1
        end = 0
        for position, header in iter_headers(data):
            end = position + header.size
            try:
                if row is not None and next_offset is not None:
                    header = _placed(header, row, next_offset)
                    next_offset = header.next_offset
                if self._is_wanted(header):
                    self._check(data, position, header)
                    piece_at = self._add(header, data, position, piece_at)
            except (CorruptMessage, InvalidRecord, UnsupportedForMessageFormat) as error:
                raise type(error)(f"{name}, byte {position}: {error}") from error
            self.next_offset = max(self.next_offset, header.next_offset)
            if self._page.taken >= self._page_bytes:
                yield from self.finish()
                piece_at = -1
        if end != len(data):
            raise CorruptMessage(f"{name} ends with {len(data) - end} bytes that are not a whole batch.")

    def finish(self) -> Iterator[Any]:
        """The last record batch, if there are records left."""
        page, self._page = self._page, _Page()
        if page.starts:
            try:
                found = self._columns(page)
            except pa.ArrowException as error:
                raise InvalidRecord(
                    f"The records of {self._topic}-{self._partition} from offset {page.base_offsets[0]} to "
                    f"{self.next_offset - 1} cannot be made columns of Arrow: {error}"
                ) from error
            if found.num_rows:
                yield found

    def _is_wanted(self, header: BatchHeader) -> bool:
        wanted = self._wanted
        return (
            header.base_offset < wanted.end
            and header.next_offset > self.next_offset
            and header.max_timestamp >= wanted.min_timestamp
            and not header.is_control
            and header.record_count != 0
        )

    def _check(self, data: bytes, position: int, header: BatchHeader) -> None:
        if not crc_matches(data, position, header):
            raise CorruptMessage("The batch does not match its checksum: it is damaged.")
        if header.is_legacy:
            raise UnsupportedForMessageFormat(f"Records of the old format {header.magic} cannot be read.")

    def _add(self, header: BatchHeader, data: bytes, position: int, piece_at: int) -> int:
        """Keep a batch. Returns where `data` begins in the page; -1 if it is not there as a whole."""
        end = position + header.size
        if header.attributes & CODEC_MASK:
            self._add_body(header, records_data(memoryview(data)[position:end], header))
        elif self._is_sparse:
            self._add_body(header, data[position + HEADER_SIZE : end])
        else:
            if piece_at < 0:
                piece_at = self._page.add(data)
            self._find(header, data, piece_at, position + HEADER_SIZE, end)
        return piece_at

    def _add_body(self, header: BatchHeader, body: bytes) -> None:
        self._find(header, body, self._page.add(body), 0, len(body))

    def _find(self, header: BatchHeader, data: bytes, piece_at: int, begin: int, end: int) -> None:
        page, wanted = self._page, self._wanted
        known = len(page.starts)
        find_records(data, begin, end, header.record_count, starts=page.starts, sizes=page.sizes)
        if piece_at:
            page.starts[known:] = [start + piece_at for start in page.starts[known:]]
        page.taken += end - begin
        page.run_ends.append(len(page.starts))
        page.base_offsets.append(header.base_offset)
        kind = header.timestamp_type
        page.timestamp_types.append(kind)
        page.base_timestamps.append(header.max_timestamp if kind else header.base_timestamp)
        page.floors.append(self.next_offset)
        if header.base_offset < self.next_offset or header.last_offset >= wanted.end:
            page.is_partial = True

    def _columns(self, page: _Page) -> Any:
        data = page.pieces[0] if len(page.pieces) == 1 else b"".join(page.pieces)
        fields = read_fields(data, page.starts, page.sizes, include_headers=self._include_headers)
        rows = len(page.starts)
        offsets = pc.add(repeated(page.base_offsets, page.run_ends), fields.offset_deltas)
        timestamps, types = _timestamps(page, fields.timestamp_deltas)
        columns = [
            fields.keys,
            fields.values,
            pa.repeat(self._topic, rows),
            pa.repeat(pa.scalar(self._partition, pa.int32()), rows),
            offsets,
            _microseconds(timestamps),
            types,
        ]
        if self._include_headers:
            columns.append(fields.headers)
        found = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        mask = self._mask(page, offsets, timestamps)
        return found if mask is None else found.filter(mask)

    def _mask(self, page: _Page, offsets: Any, timestamps: Any) -> Any:
        """Which records are wanted; None: all."""
        wanted, mask = self._wanted, None
        if page.is_partial:
            floors = repeated(page.floors, page.run_ends)
            mask = pc.and_(pc.greater_equal(offsets, floors), pc.less(offsets, int64(wanted.end)))
        if wanted.has_times:
            first, last = int64(wanted.min_timestamp), int64(wanted.max_timestamp)
            in_time = pc.and_(pc.greater_equal(timestamps, first), pc.less_equal(timestamps, last))
            mask = in_time if mask is None else pc.and_(mask, in_time)
        return mask


def _timestamps(page: _Page, deltas: Any) -> tuple[Any, Any]:
    """Timestamps in milliseconds, and their types. Under LogAppendTime a batch has one time for all its records."""
    bases = repeated(page.base_timestamps, page.run_ends)
    rows = len(page.starts)
    kinds = set(page.timestamp_types)
    if kinds == {TimestampType.CREATE_TIME}:
        return pc.add(bases, deltas), pa.repeat(pa.scalar(0, pa.int32()), rows)
    if kinds == {TimestampType.LOG_APPEND_TIME}:
        return bases, pa.repeat(pa.scalar(1, pa.int32()), rows)
    types = repeated(page.timestamp_types, page.run_ends)
    return pc.if_else(pc.equal(types, int64(1)), bases, pc.add(bases, deltas)), types.cast(pa.int32())


def _microseconds(timestamps: Any) -> Any:
    """As Spark has times. What it cannot hold becomes the last or first moment that it can: a producer that has mixed
    up its units must not make a topic unreadable.
    """
    held = pc.max_element_wise(pc.min_element_wise(timestamps, _LAST_MS), _FIRST_MS)
    return pc.multiply(held, _MS).cast(pa.timestamp("us", tz="UTC"))


def _placed(header: BatchHeader, row: PlannedRow, base_offset: Offset) -> BatchHeader:
    """A batch of a WAL object with the place and the time that its commit has given it."""
    attributes, max_timestamp = header.attributes, header.max_timestamp
    if row.timestamp_type == TimestampType.LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_BIT
        max_timestamp = row.log_append_time_ms
    return header._replace(base_offset=base_offset, attributes=attributes, max_timestamp=max_timestamp)
