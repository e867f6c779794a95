"""What a broker finds out when it begins to lead a partition: what is in remote storage, and where the log begins."""

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
    """Tell the log, and remember. Raises RemoteStorageError while the description is not ready."""
    log, lookup = leader.log, partial(metadata.remote_log_segment_metadata, partition.id)
    known = metadata.list_remote_log_segments(partition.id)
    finished = finished_in_lineage(known, log.epochs.entries, log.log_end_offset)
    if _has_lost_epochs(log, known):
        logger.error(
            "The leader epochs of %s below offset %s are not known: is its leader-epoch-checkpoint lost? What is in "
            "remote storage below that offset stays there and cannot be read. Restore the file, or delete the records.",
            partition.id,
            log.epochs.first_start,
        )
    elif log.remote.set_log_start(log_start_of_new_leader(offsets_of(log), finished)):
        logger.info("%s starts at %d, as its remote segments tell", partition.id, log.log_start_offset)
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
    """Whether there are remote segments in a part of the log of which the epochs do not tell.

    To which history they belong cannot be said then. If the log began above them, they would count as left behind, and
    be deleted. Those that are being deleted anyway, or were never copied to the end, do not matter.
    """
    start, first = log.log_start_offset, log.epochs.first_start
    finished = (segment for segment in known if segment.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED)
    return (
        first is not None and first > start and any(s.end_offset >= start and s.start_offset < first for s in finished)
    )


def log_start_of_new_leader(offsets: LogOffsets, finished: Sequence[RemoteLogSegmentMetadata]) -> Offset:
    """Where the log begins, given all segments of it that were copied to the end.

    It begins with the first remote segment, or, without one, with the first local offset. That a log begins below its
    local part, or inside its first local segment, was somebody's decision (retention, DeleteRecords), and records that
    were deleted stay so. But a log that begins exactly with its local part may just have forgotten what came before
    it when its last replica restarted (lesson 21): then what is in remote storage counts, as far as it has no gap.
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
    """Up to which offset everything local is in remote storage too, given the highest offset that ever was copied.

    Whatever is at or below it may leave the local disk. So a gap counts: one that is left if tiering was switched off
    and on again while segments were being deleted.
    """
    end = local_log_start
    for segment in sorted(finished, key=lambda segment: segment.start_offset):
        if segment.start_offset > end:
            break
        end = max(end, segment.end_offset + 1)
    return min(highest, end - 1)
