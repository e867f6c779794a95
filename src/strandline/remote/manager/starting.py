"""What a new leader finds out from remote log metadata: where its log begins, and up to where it is copied.

There may be tens of thousands of segments, and clients are served meanwhile: they are looked at in short turns. What
was found counts only if nothing has changed that it depends on, so that the answer is that of one moment.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, NamedTuple

from strandline.clock import Clock
from strandline.log import UnifiedLog
from strandline.model import Offset
from strandline.remote.manager.history import EpochEntry, LogHistory, highest_copied_offset, is_readable
from strandline.remote.manager.partition import LeaderPartition, LogOffsets, TieredPartition, offsets_of
from strandline.remote.ports import RemoteLogMetadataManager
from strandline.remote.turns import AT_ONCE, at_once, in_turns
from strandline.remote.values import RemoteLogSegmentMetadata, RemoteLogSegmentState, RemoteSummary

logger = logging.getLogger(__name__)

# After so many walks that something changed under, everything is looked at without a pause.
_WALKS_IN_TURNS: Final = 5


class _CoveredRun(NamedTuple):
    """Offsets that segments have without a gap, both inclusive."""

    start: Offset
    end: Offset


class Runs:
    """The offsets of many segments, which are added by start offset: as few runs as there are gaps."""

    __slots__ = ("_runs",)

    def __init__(self, segments: Sequence[RemoteLogSegmentMetadata] = ()) -> None:
        self._runs: list[_CoveredRun] = []
        for segment in segments:
            self.add(segment)

    def add(self, segment: RemoteLogSegmentMetadata) -> None:
        start, end = segment.start_offset, segment.end_offset
        if self._runs and start <= self._runs[-1].end + 1:
            last = self._runs[-1]
            if end > last.end:
                self._runs[-1] = _CoveredRun(last.start, end)
        else:
            self._runs.append(_CoveredRun(start, end))

    def __iter__(self) -> Iterator[_CoveredRun]:
        return iter(self._runs)

    def __reversed__(self) -> Iterator[_CoveredRun]:
        return reversed(self._runs)

    @property
    def first(self) -> Offset | None:
        """The first offset of all; None without segments."""
        return self._runs[0].start if self._runs else None


class _StartBasis(NamedTuple):
    """What the answer depends on. The end of the log only grows, which changes nothing below it."""

    offsets: LogOffsets
    epochs: tuple[EpochEntry, ...]
    changes: int
    known: RemoteSummary


@dataclass(slots=True)
class _FinishedRuns:
    """Segments in COPY_SEGMENT_FINISHED, by how much can be said of them."""

    all: Runs = field(default_factory=Runs)
    in_lineage: Runs = field(default_factory=Runs)
    readable: Runs = field(default_factory=Runs)
    """Those of the log that reach into its local part and that lookups find."""


async def find_out(
    partition: TieredPartition, leader: LeaderPartition, metadata: RemoteLogMetadataManager, clock: Clock
) -> None:
    """Set log start and highest copied offset, and `is_started`, unless that must not be done any more.

    It must not if another leadership has begun, or tiering was switched off. Raises RemoteStorageError while the
    metadata is not ready.
    """
    log = leader.log
    async with partition.starting:
        for walk in range(_WALKS_IN_TURNS + 1):
            if partition.is_started or not _is_wanted(partition, leader):
                return
            basis, looking = _basis(partition, log, metadata), _look(partition, log, metadata)
            if walk < _WALKS_IN_TURNS:
                found = await in_turns(clock, looking)
                if not _is_wanted(partition, leader) or _basis(partition, log, metadata) != basis:
                    continue
            else:
                found = at_once(looking)
            _decide(partition, log, metadata, found)


def _is_wanted(partition: TieredPartition, leader: LeaderPartition) -> bool:
    return partition.is_led_as(leader) and not partition.is_withdrawing and leader.log.config.remote_storage_enable


def _basis(partition: TieredPartition, log: UnifiedLog, metadata: RemoteLogMetadataManager) -> _StartBasis:
    # Neither the active segment nor the last stable offset matters, and both move with every append.
    offsets = replace(offsets_of(log), active_base=0, last_stable_offset=0)
    return _StartBasis(offsets, tuple(log.epochs.entries), partition.changes, metadata.remote_log_summary(partition.id))


def _look(
    partition: TieredPartition, log: UnifiedLog, metadata: RemoteLogMetadataManager
) -> Generator[None, None, _FinishedRuns]:
    found, lookup = _FinishedRuns(), partial(metadata.remote_log_segment_metadata, partition.id)
    history, local_start = LogHistory(log.epochs.entries, log.log_end_offset), log.local_log_start_offset
    for count, segment in enumerate(metadata.iter_remote_log_segments(partition.id), 1):
        if segment.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED:
            found.all.add(segment)
            if segment in history:
                found.in_lineage.add(segment)
                if segment.end_offset >= local_start and is_readable(segment, lookup):
                    found.readable.add(segment)
        if count % AT_ONCE == 0:
            yield
    return found


def _decide(
    partition: TieredPartition, log: UnifiedLog, metadata: RemoteLogMetadataManager, found: _FinishedRuns
) -> None:
    if _has_lost_epochs(log, found.all):
        logger.error(
            "the leader epochs of %s below offset %s are not known: is its leader-epoch-checkpoint lost? Remote "
            "segments below that offset are kept but cannot be read. Restore the file, or delete the records",
            partition.id,
            log.epochs.first_start,
        )
    elif log.remote.set_log_start(log_start_of_new_leader(offsets_of(log), found.in_lineage)):
        logger.info("%s starts at offset %d, according to its remote segments", partition.id, log.log_start_offset)
    highest = highest_copied_offset(
        log.epochs.entries,
        log.log_end_offset,
        lambda epoch: metadata.highest_offset_for_epoch(partition.id, epoch),
    )
    partition.copied = copied_without_gap(highest, log.local_log_start_offset, found.readable)
    log.remote.update_highest_offset(partition.copied)
    partition.is_started = True


def _has_lost_epochs(log: UnifiedLog, finished: Runs) -> bool:
    """Whether there are remote segments in a part of the log whose leader epochs are not known.

    Without epochs nothing tells whether they belong to the log. If the log start moved above them, they would count as
    unreferenced and be deleted. Only segments in COPY_SEGMENT_FINISHED matter.
    """
    start, first = log.log_start_offset, log.epochs.first_start
    return first is not None and first > start and any(run.end >= start and run.start < first for run in finished)


def log_start_of_new_leader(offsets: LogOffsets, finished: Runs) -> Offset:
    """Where the log begins, given all of its segments in COPY_SEGMENT_FINISHED.

    It begins with the first remote segment, or, without one, with the first local offset. A log start below the local
    log start, or inside the first local segment, was set by retention or DeleteRecords, and deleted records stay
    deleted. But a log start that equals the local log start may be wrong: a restarted replica that has lost its log
    start checkpoint begins with its first local segment, and would lose everything that is only in remote storage.
    Then the remote segments decide, back to the first gap.
    """
    first = finished.first
    if first is None:
        return offsets.local_log_start
    if offsets.log_start < offsets.local_log_start or offsets.log_start > offsets.first_base:
        return min(max(offsets.log_start, first), offsets.local_log_start)
    start = offsets.local_log_start
    for run in reversed(finished):
        if run.end + 1 < start:
            break
        start = min(start, run.start)
    return start


def copied_without_gap(highest: Offset, local_log_start: Offset, finished: Runs) -> Offset:
    """Up to which offset all local records are in remote storage too, given the highest offset that was ever copied.

    Local retention may delete records up to this offset, so it must not lie behind a gap. A gap remains if tiering was
    switched off and on again while segments were being deleted.
    """
    end = local_log_start
    for run in finished:
        if run.start > end:
            break
        end = max(end, run.end + 1)
    return min(highest, end - 1)
