"""What a broker finds out when it begins to lead a partition: what is in remote storage, and where the log begins."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from strandline.log import UnifiedLog
from strandline.remote.manager.copy_plan import copied_without_gap, log_start_of_new_leader
from strandline.remote.manager.lineage import finished_in_lineage, highest_copied_offset, is_readable
from strandline.remote.manager.partition import LeaderPartition, TieredPartition, offsets_of
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
