"""The part of cleaning that costs processor time: it runs in a process of its own.

A pass begins with `build_map` and goes on with one `clean_group` for each group of segments, all in the same
process, which keeps the map between the calls. Nothing here changes a live file: the output has its own names, and
the caller decides whether to use it. Both functions stop soon after the other end of the `stop` pipe is closed.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from typing import Final

from strandline.clock import SystemClock
from strandline.errors import CorruptMessage
from strandline.log.cleaning.offset_map import OffsetMap
from strandline.log.cleaning.requests import (
    CleaningSource,
    CleaningStopped,
    GroupRequest,
    GroupResult,
    MapRequest,
    MapResult,
)
from strandline.log.cleaning.rewriting import BatchRewriter
from strandline.log.cleaning.transactions import TransactionTracker
from strandline.log.files import CLEANED, sync_file
from strandline.log.index_file import LoadedIndexes
from strandline.log.scan import iter_file_batches
from strandline.log.segment import LogSegment
from strandline.log.segment_file import SegmentFile
from strandline.log.transaction_index import AbortedTxn
from strandline.records import BatchHeader, ControlType, control_type_of, crc_matches
from strandline.records.record import read_raw_records, records_data

_WRITE_CHUNK: Final = 1 << 20
_BREATH_BYTES: Final = 1 << 18
_POLITENESS: Final = 5


class _Pass:
    """The pass under way in this process."""

    __slots__ = ("aborted", "map", "token", "transactions")

    def __init__(self, token: int, offset_map: OffsetMap, aborted: tuple[AbortedTxn, ...]) -> None:
        self.token = token
        self.map = offset_map
        self.aborted = aborted
        # Of its own: the map's walk over the dirty part must not use up what the rewriting walk needs.
        self.transactions = TransactionTracker(aborted)


_current: _Pass | None = None
_stop: Connection | None = None


def start_worker(stop: Connection) -> None:
    """Prepare a worker process: it ends with its parent, not with the signals of the terminal.

    Work stops when the other end of `stop` is closed. A pipe, because nothing is left locked if this process is
    killed while it waits; the lock of an Event would be.
    """
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.nice(_POLITENESS)
    threading.Thread(target=_end_with_parent, name="parent-watch", daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def build_map(request: MapRequest) -> MapResult:
    """Map the keys of the dirty segments as far as the memory allows.

    Raises CleaningStopped, or CorruptMessage and its kin if a segment cannot be read.
    """
    global _current
    _current = None
    offset_map = OffsetMap(request.budget_bytes)
    transactions = TransactionTracker(request.aborted)
    pace = _Pace(request.max_bytes_per_second)
    records_read = 0
    is_full = False
    for source in request.sources:
        for header, batch in _batches(source, pace):
            records_read += header.record_count
            if not _map_batch(header, batch, offset_map, transactions, request.start_offset):
                is_full = True
                break
            if header.last_offset >= request.start_offset:
                offset_map.latest_offset = header.last_offset
        if is_full:
            break
        # The rest of a segment may be a hole: nothing is left to come before the next one.
        offset_map.latest_offset = max(offset_map.latest_offset, source.next_base_offset - 1)
    _current = _Pass(request.token, offset_map, request.aborted)
    return MapResult(
        end_offset=offset_map.latest_offset + 1,
        keys=len(offset_map),
        bytes_read=pace.total,
        records_read=records_read,
    )


def _map_batch(
    header: BatchHeader, batch: memoryview, offset_map: OffsetMap, transactions: TransactionTracker, start: int
) -> bool:
    """Put the keys of a batch into the map. False if it is full."""
    if header.is_control:
        transactions.is_marker_of_nothing(header, _control_type(header, batch))
        return True
    if transactions.is_aborted(header) or header.last_offset < start:
        return True
    base = header.base_offset
    for _, delta, key, _, _, _ in read_raw_records(records_data(batch, header), header.record_count):
        offset = base + delta
        if key is not None and offset >= start and not offset_map.put(key, offset):
            return False
    return True


def _control_type(header: BatchHeader, batch: memoryview) -> ControlType | None:
    for _, _, key, _, _, _ in read_raw_records(records_data(batch, header), header.record_count):
        return control_type_of(key)
    return None


def clean_group(request: GroupRequest) -> GroupResult:
    """Write what stays of a group of segments into one `.cleaned` segment, and force it to disk.

    Call it for the groups in the order of the log. Raises as `build_map` does; the half-written files then
    stay, and are removed by the caller or by the next start.
    """
    current = _current
    if current is None or current.token != request.token:
        raise CleaningStopped("This process does not hold the map of the pass.")
    rewriter = BatchRewriter(current.map, current.transactions, request.rules)
    output = _Output(request)
    pace = _Pace(request.max_bytes_per_second)
    records_read = records_kept = 0
    for source in request.sources:
        for header, batch in _batches(source, pace):
            data, cleaned, kept = rewriter.rewrite(header, batch)
            records_read += header.record_count
            if data:
                records_kept += kept
                output.add(data, cleaned)
                pace.take(len(data))
    aborts, current.transactions.retained_aborts = current.transactions.retained_aborts, []
    modified = os.stat(request.sources[-1].path).st_mtime
    output.finish(aborts, modified)
    return GroupResult(
        base_offset=output.segment.base_offset,
        size=output.segment.reserved,
        has_txn_index=bool(aborts),
        bytes_read=sum(source.size for source in request.sources),
        records_read=records_read,
        records_kept=records_kept,
        keyless_records=rewriter.keyless_records,
    )


class _Output:
    """The new segment. Batches gather in memory and are written in large pieces."""

    __slots__ = ("_gathered", "_interval", "_written", "segment")

    def __init__(self, request: GroupRequest) -> None:
        self.segment = LogSegment.create(
            request.directory,
            request.sources[0].base_offset,
            created_ms=request.rules.now_ms,
            cache=LoadedIndexes(),
            state=CLEANED,
        )
        self.segment.txn_index.remove()
        self._interval = request.index_interval_bytes
        self._gathered = bytearray()
        self._written = 0

    def add(self, data: bytes | bytearray | memoryview, header: BatchHeader) -> None:
        self.segment.reserve(len(data), header.max_timestamp, header.last_offset, self._interval)
        self._gathered += data
        if len(self._gathered) >= _WRITE_CHUNK:
            self._write()

    def _write(self) -> None:
        self.segment.file.write(self._gathered, self._written)
        self._written += len(self._gathered)
        self._gathered.clear()

    def finish(self, aborts: list[AbortedTxn], modified: float) -> None:
        self._write()
        segment = self.segment
        for txn in aborts:
            segment.txn_index.append(txn)
        segment.file.size = self._written
        segment.finish()
        segment.file.sync()
        for index in (segment.offset_index, segment.time_index, segment.txn_index):
            sync_file(index.path)
        # Retention of records without timestamps goes by the age of the file.
        os.utime(segment.file.path, (modified, modified))
        segment.file.close()


def _batches(source: CleaningSource, pace: _Pace) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Every batch of a segment, checked."""
    file = SegmentFile(source.path, source.size)
    end = 0
    try:
        for position, header, batch in iter_file_batches(file, 0, source.size):
            if not crc_matches(batch, 0, header):
                raise CorruptMessage(f"The batch at position {position} of {source.path} is damaged.")
            pace.take(header.size)
            yield header, batch
            end = position + header.size
    finally:
        file.close()
    if end != source.size:
        raise CorruptMessage(f"{source.path} holds no whole batch at position {end}.")


class _Pace:
    """Keeps to log.cleaner.io.max.bytes.per.second, and notices now and then that work should stop."""

    __slots__ = ("_clock", "_rate", "_since_breath", "_start", "total")

    def __init__(self, rate: float) -> None:
        self._clock = SystemClock()
        self._rate = rate
        self._start = self._clock.monotonic()
        self._since_breath = _BREATH_BYTES  # ask before the first batch
        self.total = 0

    def take(self, size: int) -> None:
        """Account for `size` bytes read or written. Raises CleaningStopped."""
        self.total += size
        self._since_breath += size
        if self._since_breath < _BREATH_BYTES:
            return
        self._since_breath = 0
        ahead = self.total / self._rate - (self._clock.monotonic() - self._start)
        if _stop is not None and _stop.poll(max(0.0, ahead)):
            raise CleaningStopped("The cleaner is stopping.")
