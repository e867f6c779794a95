"""One pass over one log: map its dirty keys, rewrite its segments group by group, swap each group in."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from strandline.clock import Clock
from strandline.config import LogSettings
from strandline.errors import CorruptMessage
from strandline.log.cleaning.candidates import Candidate, groups_of, segments_between
from strandline.log.cleaning.process import CleaningWorker
from strandline.log.cleaning.requests import (
    CleaningRules,
    CleaningSource,
    CleaningStopped,
    GroupRequest,
    GroupResult,
    LastOfProducer,
    MapRequest,
)
from strandline.log.files import CLEANED, SEGMENT_SUFFIXES, offset_name, remove_if_there
from strandline.log.segment import LogSegment
from strandline.log.transaction_index import AbortedTxn
from strandline.model import TopicPartition

_tokens: Final = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassReport:
    """What a pass did. Without `is_complete` it ended early and will be tried again."""

    topic_partition: TopicPartition | None = None
    is_complete: bool = False
    first_dirty: int = 0
    end_offset: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_kept: int = 0
    keyless_records: int = 0

    def plus(self, other: PassReport) -> PassReport:
        """The sums of both; everything else is the newer one's."""
        return replace(
            other,
            bytes_read=self.bytes_read + other.bytes_read,
            bytes_written=self.bytes_written + other.bytes_written,
            records_read=self.records_read + other.records_read,
            records_kept=self.records_kept + other.records_kept,
            keyless_records=self.keyless_records + other.keyless_records,
        )


class CleaningPass:
    """Cleans the candidate once. Appends continue meanwhile; a change of the segments that it cleans ends the pass."""

    __slots__ = ("_candidate", "_cuts", "_log", "_now_ms", "_settings", "_token", "_worker")

    def __init__(self, candidate: Candidate, worker: CleaningWorker, clock: Clock, settings: LogSettings) -> None:
        self._candidate = candidate
        self._log = candidate.log
        self._cuts = candidate.log.segments.cuts
        self._worker = worker
        self._settings = settings
        self._now_ms = clock.now_ms()
        self._token = next(_tokens)

    async def run(self) -> PassReport:
        """Raises what the worker raises; segments that were swapped by then stay swapped, which is safe."""
        try:
            return await self._run()
        except CorruptMessage as error:
            if self._log.segments.cuts == self._cuts:
                raise
            raise CleaningStopped("The log was cut while it was read.") from error

    async def _run(self) -> PassReport:
        segments = self._log.segments.as_list()
        candidate = self._candidate
        mapped = await self._worker.build_map(
            MapRequest(
                token=self._token,
                sources=tuple(self._sources(segments, candidate.first_dirty, candidate.end)),
                start_offset=candidate.first_dirty,
                aborted=tuple(_aborted_before(segments, candidate.end)),
                budget_bytes=self._settings.log_cleaner_dedupe_buffer_size,
                max_bytes_per_second=self._settings.log_cleaner_io_max_bytes_per_second,
            )
        )
        report = PassReport(
            topic_partition=self._log.topic_partition,
            first_dirty=candidate.first_dirty,
            end_offset=mapped.end_offset,
        )
        for group in self._groups(segments, mapped.end_offset):
            report = self._counted(report, await self._clean_group(segments, group))
        return replace(report, is_complete=True)

    def _groups(self, segments: Sequence[LogSegment], end_offset: int) -> list[list[LogSegment]]:
        config = self._log.config
        return groups_of(
            segments_between(segments, segments[0].base_offset, min(end_offset, self._candidate.end)),
            segment_bytes=config.effective_segment_bytes,
            index_bytes=config.segment_index_bytes,
            end=self._candidate.end,
        )

    async def _clean_group(self, segments: Sequence[LogSegment], group: Sequence[LogSegment]) -> GroupResult:
        log = self._log
        base = group[0].base_offset
        try:
            self._check_unchanged(group)
            result = await self._worker.clean_group(
                GroupRequest(
                    token=self._token,
                    directory=str(log.directory),
                    sources=tuple(self._sources(segments, base, group[-1].base_offset + 1)),
                    rules=self._rules(),
                    index_interval_bytes=log.config.index_interval_bytes,
                    max_bytes_per_second=self._settings.log_cleaner_io_max_bytes_per_second,
                )
            )
            self._check_unchanged(group)
        except Exception:
            self._remove_output(base)
            raise
        cleaned = LogSegment(
            str(log.directory),
            result.base_offset,
            size=result.size,
            created_ms=self._now_ms,
            cache=log.env.cache,
            has_txn_index=result.has_txn_index,
            state=CLEANED,
        )
        log.segments.replace([cleaned], group)
        return result

    def _check_unchanged(self, group: Sequence[LogSegment]) -> None:
        """Raises CleaningStopped if the log no longer holds exactly these segments, with these batches."""
        log = self._log
        log.check_online()
        current = {segment.base_offset: segment for segment in log.segments}
        is_cut = log.segments.cuts != self._cuts  # what was read of it may have been replaced by another leader's
        if is_cut or any(current.get(segment.base_offset) is not segment for segment in group):
            raise CleaningStopped("The log has changed meanwhile.")

    def _remove_output(self, base_offset: int) -> None:
        for suffix in SEGMENT_SUFFIXES:
            remove_if_there(os.path.join(self._log.directory, offset_name(base_offset, suffix) + CLEANED))

    def _rules(self) -> CleaningRules:
        return CleaningRules(
            now_ms=self._now_ms,
            delete_retention_ms=self._log.config.delete_retention_ms,
            end_offset=self._candidate.end,
            # Asked for anew with each group: producers go on writing while a pass runs.
            producers={
                producer_id: LastOfProducer(entry.last_offset, entry.epoch)
                for producer_id, entry in self._log.producers.entries.items()
            },
        )

    def _sources(self, segments: Sequence[LogSegment], start: int, end: int) -> Iterator[CleaningSource]:
        following = {segment.base_offset: follower.base_offset for segment, follower in itertools.pairwise(segments)}
        for segment in segments_between(segments, start, end):
            next_base = following.get(segment.base_offset, self._candidate.end)
            yield CleaningSource(
                base_offset=segment.base_offset,
                next_base_offset=min(next_base, self._candidate.end),
                path=segment.file.path,
                size=segment.size,
            )

    @staticmethod
    def _counted(report: PassReport, result: GroupResult) -> PassReport:
        return replace(
            report,
            bytes_read=report.bytes_read + result.bytes_read,
            bytes_written=report.bytes_written + result.size,
            records_read=report.records_read + result.records_read,
            records_kept=report.records_kept + result.records_kept,
            keyless_records=report.keyless_records + result.keyless_records,
        )


def _aborted_before(segments: Sequence[LogSegment], end: int) -> Iterator[AbortedTxn]:
    """Aborted transactions with records below `end`. Their markers may lie in any later segment."""
    for segment in segments:
        if not segment.txn_index.is_empty:
            yield from (txn for txn in segment.txn_index if txn.first_offset < end)
