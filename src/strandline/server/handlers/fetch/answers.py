"""The parts of a Fetch answer: one partition's records or error, diverging epochs, partitions grouped by topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from strandline.errors import OffsetOutOfRange, StrandlineError
from strandline.hybrid.partition import ServedPartition
from strandline.model import NO_EPOCH
from strandline.reads import FetchIsolation, ReadResult
from strandline.server.fetch_sessions import Place
from strandline.wire.errors import error_code_of
from strandline.wire.fetch_codec import FetchAnswer, FetchEntry, FetchRequest

_READ_COMMITTED: Final = 1


def isolation_of(request: FetchRequest) -> FetchIsolation:
    """How far the reader sees."""
    if request.replica_id >= 0:
        return FetchIsolation.LOG_END
    is_committed = request.isolation_level == _READ_COMMITTED
    return FetchIsolation.TXN_COMMITTED if is_committed else FetchIsolation.HIGH_WATERMARK


def answer_with(entry: FetchEntry, result: ReadResult) -> FetchAnswer:
    """The answer for a partition that was read."""
    records = result.records
    return FetchAnswer(
        entry.topic,
        entry.partition,
        0,
        result.high_watermark,
        result.last_stable_offset,
        result.log_start_offset,
        result.aborted_transactions,
        records if records is not None and records.length else None,
    )


def refusal(entry: FetchEntry, error: StrandlineError) -> FetchAnswer:
    """The answer for a partition that could not be read."""
    return FetchAnswer(entry.topic, entry.partition, int(error_code_of(error)))


def diverging_epoch(partition: ServedPartition, entry: FetchEntry) -> tuple[int, int] | None:
    """Where the reader's log diverges from ours (KIP-595), or None if it does not. Raises OffsetOutOfRange."""
    epoch, end_offset = partition.known_end_of_epoch(entry.last_fetched_epoch)
    if epoch < 0 or end_offset < 0 or entry.fetch_offset < partition.newest.log_start_offset:
        raise OffsetOutOfRange(
            f"{partition.topic_partition} does not know epoch {entry.last_fetched_epoch} at {entry.fetch_offset}."
        )
    if epoch < entry.last_fetched_epoch or end_offset < entry.fetch_offset:
        return epoch, end_offset
    return None


def may_have(
    min_bytes: int, found: Mapping[Place, ServedPartition], places: Sequence[Place], isolation: FetchIsolation
) -> bool:
    """Whether the partitions have `min_bytes` to read, or only a read can tell: one in another epoch than the reader
    knows is refused. Cheaper than reading."""
    available = 0
    for place in places:
        entry, partition = place.entry, found.get(place)
        size = None if partition is None else partition.available_bytes(entry.fetch_offset, isolation)
        if size is None or partition is None:
            return True
        if entry.current_leader_epoch not in (NO_EPOCH, partition.newest.leader_epoch):
            return True
        available += min(size, entry.max_bytes)
    return available >= min_bytes


def grouped(answers: Sequence[FetchAnswer]) -> Sequence[FetchAnswer]:
    """Answers of one topic side by side: sessions reorder partitions, the wire groups them by topic."""
    topics: dict[str | bytes, list[FetchAnswer]] = {}
    for answer in answers:
        topics.setdefault(answer.topic, []).append(answer)
    if len(topics) <= 1:
        return answers
    return [answer for rows in topics.values() for answer in rows]
