"""A consumer without a network: reads a log through both tiers, and sees what a client would see."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.errors import OffsetMovedToTieredStorage, StrandlineError
from strandline.log import UnifiedLog
from strandline.model import TopicIdPartition
from strandline.reads import AbortedTransaction, FetchIsolation, RecordSet, WholeLog
from strandline.records import iter_headers, read_records
from strandline.records.control import control_type_of
from strandline.remote.reader import RemoteLogReader, RemoteRead

UNCOMMITTED = FetchIsolation.HIGH_WATERMARK
COMMITTED = FetchIsolation.TXN_COMMITTED


def bytes_of(records: RecordSet | None) -> bytes:
    """What would be sent."""
    if records is None:
        return b""
    data = records.read()
    assert len(data) == records.length
    return data


def id_of(log: UnifiedLog) -> TopicIdPartition:
    assert log.topic_id is not None
    return TopicIdPartition(log.topic_id, log.topic_partition)


def request(
    log: UnifiedLog,
    offset: int,
    max_bytes: int = 1 << 20,
    isolation: FetchIsolation = UNCOMMITTED,
    whole: WholeLog | None = None,
) -> RemoteRead:
    return RemoteRead(id_of(log), log, offset, max_bytes, isolation, whole)


class Consumer:
    """Reads from an offset on until there is nothing more."""

    def __init__(self, reader: RemoteLogReader, log: UnifiedLog, isolation: FetchIsolation, max_bytes: int) -> None:
        self._reader, self._log, self._isolation, self._max_bytes = reader, log, isolation, max_bytes
        self.remote_answers = 0
        self.immediate_answers = 0
        self.remote_bytes = 0

    async def visible(self, offset: int) -> list[int]:
        """The offsets a client would give to the application, to the end of the log."""
        seen: list[int] = []
        while True:
            data, aborted = await self._read(offset)
            if not data:
                return seen
            before = offset
            for found, next_offset in _consumed(data, offset, aborted):
                seen += found
                offset = next_offset
            assert offset > before, "an answer without a whole batch"

    async def _read(self, offset: int) -> tuple[bytes, Sequence[AbortedTransaction]]:
        try:
            local = self._log.read(offset, self._max_bytes, isolation=self._isolation)
            return bytes_of(local.records), local.aborted_transactions or ()
        except OffsetMovedToTieredStorage:
            wanted = request(self._log, offset, self._max_bytes, self._isolation)
        result = self._reader.read_now(wanted, min_one_message=True)
        if result is None:
            (result,) = await self._reader.read([wanted], max_bytes=self._max_bytes)
        else:
            self.immediate_answers += 1
        self.remote_answers += 1
        if isinstance(result, StrandlineError):
            raise result
        data = bytes_of(result.records)
        self.remote_bytes += len(data)
        return data, result.aborted_transactions or ()


def _consumed(data: bytes, offset: int, aborted: Sequence[AbortedTransaction]) -> list[tuple[list[int], int]]:
    """As clients do it: a producer's records are left out from the first aborted offset to its marker."""
    waiting = sorted(aborted, key=lambda entry: entry.first_offset)
    aborting: set[int] = set()
    answers: list[tuple[list[int], int]] = []
    for position, header in iter_headers(data):
        batch = data[position : position + header.size]
        while waiting and waiting[0].first_offset <= header.last_offset:
            aborting.add(waiting.pop(0).producer_id)
        found: list[int] = []
        if header.is_control:
            if header.producer_id in aborting and control_type_of(read_records(batch)[0].key or b"").name == "ABORT":
                aborting.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborting):
            found = [record.offset for record in read_records(batch) if record.offset >= offset]
        answers.append((found, header.next_offset))
    return answers
