"""What a cleaner makes of one batch: the same bytes, fewer records, an empty shell, or nothing."""

from __future__ import annotations

from typing import NamedTuple

from strandline.log.cleaning.offset_map import OffsetMap
from strandline.log.cleaning.requests import CleaningRules
from strandline.log.cleaning.transactions import TransactionTracker
from strandline.model import INT64_MAX, NO_TIMESTAMP
from strandline.records import BatchHeader, ControlType, TimestampType, control_type_of
from strandline.records.batch import CODEC_MASK, DELETE_HORIZON_BIT
from strandline.records.builder import assemble, write_raw_record
from strandline.records.record import RawRecord, read_raw_records, records_data
from strandline.records.varint import in_64_bits


class Rewritten(NamedTuple):
    """A batch after cleaning; `data` is empty if nothing of it stays."""

    data: bytes | bytearray | memoryview
    header: BatchHeader
    records_kept: int


class BatchRewriter:
    """Applies the rules of compaction to the batches of a log, shown in order."""

    __slots__ = ("_map", "_rules", "_transactions", "keyless_records")

    def __init__(self, offset_map: OffsetMap, transactions: TransactionTracker, rules: CleaningRules) -> None:
        self._map = offset_map
        self._transactions = transactions
        self._rules = rules
        self.keyless_records = 0

    def rewrite(self, header: BatchHeader, batch: memoryview) -> Rewritten:
        """Clean one batch. Raises CorruptMessage or InvalidRecord if its records cannot be read."""
        data = records_data(batch, header)
        records = read_raw_records(data, header.record_count)
        is_moot = self._is_moot(header, records)
        drops_all = is_moot and (not header.is_control or self._is_past_horizon(header))
        kept = [] if drops_all else self._kept(header, records)
        if kept:
            return self._with_records(header, batch, data, records, kept, sets_horizon=is_moot and header.is_control)
        if self._must_stay(header):
            empty = _emptied(header)
            return Rewritten(assemble(empty, b""), empty, 0)
        return Rewritten(b"", header, 0)

    def _is_moot(self, header: BatchHeader, records: list[RawRecord]) -> bool:
        """Whether the batch is of an aborted transaction, or a marker without records."""
        if not header.is_control:
            return self._transactions.is_aborted(header)
        control_type: ControlType | None = control_type_of(records[0][2]) if records else None
        return self._transactions.is_marker_of_nothing(header, control_type)

    def _is_past_horizon(self, header: BatchHeader) -> bool:
        horizon = header.delete_horizon_ms
        return horizon is not None and horizon <= self._rules.now_ms

    def _kept(self, header: BatchHeader, records: list[RawRecord]) -> list[RawRecord]:
        if header.is_control:
            return records
        keeps_tombstones = not self._is_past_horizon(header)
        base, latest, newest_of = header.base_offset, self._map.latest_offset, self._map.get
        kept = []
        for record in records:
            _, delta, key, has_value, _, _ = record
            offset = base + delta
            if offset > latest:
                kept.append(record)
            elif key is None:
                self.keyless_records += 1
            elif (has_value or keeps_tombstones) and offset >= newest_of(key):
                kept.append(record)
        return kept

    def _with_records(
        self,
        header: BatchHeader,
        batch: memoryview,
        data: bytes,
        records: list[RawRecord],
        kept: list[RawRecord],
        *,
        sets_horizon: bool,
    ) -> Rewritten:
        horizon = header.delete_horizon_ms
        sets_horizon = sets_horizon or not all(has_value for _, _, _, has_value, _, _ in kept)
        if horizon is None and sets_horizon:
            horizon = min(self._rules.now_ms + self._rules.delete_retention_ms, INT64_MAX)  # may mean: keep forever
        elif len(kept) == len(records):
            return Rewritten(batch, header, len(kept))
        new_header, body = _filtered(header, data, kept, horizon)
        return Rewritten(assemble(new_header, body), new_header, len(kept))

    def _must_stay(self, header: BatchHeader) -> bool:
        if header.next_offset == self._rules.end_offset:
            return True
        last = self._rules.producers.get(header.producer_id) if header.has_producer_id else None
        if last is None:
            return False
        if last.last_offset >= 0:
            return header.last_offset == last.last_offset
        return header.is_control and header.producer_epoch == last.producer_epoch


def _filtered(
    header: BatchHeader, data: bytes, kept: list[RawRecord], horizon: int | None
) -> tuple[BatchHeader, bytearray]:
    """Header and records of a batch that lost some records or got a horizon. Offsets stay as they were."""
    is_append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    timestamps = [
        header.max_timestamp if is_append_time else in_64_bits(header.base_timestamp + time)
        for time, _, _, _, _, _ in kept
    ]
    base_timestamp = timestamps[0] if horizon is None else horizon
    body = bytearray()
    view = memoryview(data)
    for (_, delta, _, _, rest, end), timestamp in zip(kept, timestamps, strict=True):
        write_raw_record(body, timestamp - base_timestamp, delta, view[rest:end])
    attributes = header.attributes if horizon is None else header.attributes | DELETE_HORIZON_BIT
    new_header = header._replace(
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max(timestamps),
        record_count=len(kept),
    )
    return new_header, body


def _emptied(header: BatchHeader) -> BatchHeader:
    """The header of a batch whose records are all gone: it remembers a producer's sequence, or an offset."""
    return header._replace(
        attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT),
        base_timestamp=NO_TIMESTAMP,
        record_count=0,
    )
