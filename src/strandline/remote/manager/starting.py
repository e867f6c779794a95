"""What a new leader finds out from remote log metadata: where its log begins, and up to where it is copied."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from strandline.log import UnifiedLog
from strandline.model import Offset
from strandline.remote.manager.history import finished_in_lineage, highest_copied_offset, is_readable
from strandline.remote.manager.partition import LeaderPartition, LogOffsets, TieredPartition, offsets_of
from strandline.remote.ports import RemoteLogMetadataManager
from strandline.remote.values import RemoteLogSegmentMetadata, RemoteLogSegmentState

logger = logging.getLogger(__name__)


def find_out(partition: TieredPartition, leader: LeaderPartition, metadata: RemoteLogMetadataManager) -> None:
    """Set log start and highest copied offset. Raises RemoteStorageError while the metadata is not ready."""
    log, lookup = leader.log, partial(metadata.remote_log_segment_metadata, partition.id)
    known = metadata.list_remote_log_segments(partition.id)
    finished = finished_in_lineage(known, log.epochs.entries, log.log_end_offset)
    if _has_lost_epochs(log, known):
        logger.error(
            "the leader epochs of %s below offset %s are not known: is its leader-epoch-checkpoint lost? Remote "
            "segments below that offset are kept but cannot be read. Restore the file, or delete the records",
            partition.id,
            log.epochs.first_start,
        )
    elif log.remote.set_log_start(log_start_of_new_leader(offsets_of(log), finished)):
        logger.info("%s starts at offset %d, according to its remote segments", partition.id, log.log_start_offset)
    highest = highest_copied_offset(
        log.epochs.entries,
        log.log_end_offset,
        lambda epoch: metadata.highest_offset_for_epoch(partition.id, epoch),
    )
    start = log.local_log_start_offset
    readable = [segment for segment in finished if segment.end_offset >= start and is_readable(segment, lookup)]
    partition.copied = copied_without_gap(highest, start, readable)
    log.remote.update_highest_offset(partition.copied)
    partition.is_started = True


def _has_lost_epochs(log: UnifiedLog, known: Sequence[RemoteLogSegmentMetadata]) -> bool:
    """Whether there are remote segments in a part of the log whose leader epochs are not known.

    Without epochs nothing tells whether they belong to the log. If the log start moved above them, they would count as
    unreferenced and be deleted. Only segments in COPY_SEGMENT_FINISHED matter.
    """
    start, first = log.log_start_offset, log.epochs.first_start
    finished = (segment for segment in known if segment.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED)
    return (
        first is not None and first > start and any(s.end_offset >= start and s.start_offset < first for s in finished)
    )


def log_start_of_new_leader(offsets: LogOffsets, finished: Sequence[RemoteLogSegmentMetadata]) -> Offset:
    """Where the log begins, given all of its segments in COPY_SEGMENT_FINISHED.

    It begins with the first remote segment, or, without one, with the first local offset. A log start below the local
    log start, or inside the first local segment, was set by retention or DeleteRecords, and deleted records stay
    deleted. But a log start that equals the local log start may be wrong: a restarted replica that has lost its log
    start checkpoint begins with its first local segment, and would lose everything that is only in remote storage.
    Then the remote segments decide, back to the first gap.
    """
    if not finished:
        return offsets.local_log_start
    if offsets.log_start < offsets.local_log_start or offsets.log_start > offsets.first_base:
        first = min(segment.start_offset for segment in finished)
        return min(max(offsets.log_start, first), offsets.local_log_start)
    start = offsets.local_log_start
    for segment in sorted(finished, key=lambda segment: segment.end_offset, reverse=True):
        if segment.end_offset + 1 < start:
            break
        start = min(start, segment.start_offset)
    return start


def copied_without_gap(
    highest: Offset, local_log_start: Offset, finished: Sequence[RemoteLogSegmentMetadata]
) -> Offset:
    """Up to which offset all local records are in remote storage too, given the highest offset that was ever copied.

    Local retention may delete records up to this offset, so it must not lie behind a gap. A gap remains if tiering was
    switched off and on again while segments were being deleted.
    """
    end = local_log_start
    for segment in sorted(finished, key=lambda segment: segment.start_offset):
        if segment.start_offset > end:
            break
        end = max(end, segment.end_offset + 1)
    return min(highest, end - 1)
