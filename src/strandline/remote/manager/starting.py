"""What a broker finds out when it begins to lead a partition: what is in remote storage, and where the log begins."""

from __future__ import annotations

import logging

from strandline.remote.manager.copy_plan import copied_without_gap, log_start_of_new_leader
from strandline.remote.manager.lineage import finished_in_lineage, highest_copied_offset
from strandline.remote.manager.partition import LeaderPartition, TieredPartition, offsets_of
from strandline.remote.ports import RemoteLogMetadataManager

logger = logging.getLogger(__name__)


def find_out(partition: TieredPartition, leader: LeaderPartition, metadata: RemoteLogMetadataManager) -> None:
    """Tell the log, and remember. Raises RemoteStorageError while the description is not ready."""
    log = leader.log
    known = metadata.list_remote_log_segments(partition.id)
    finished = finished_in_lineage(known, log.epochs.entries, log.log_end_offset)
    if log.set_log_start_offset(log_start_of_new_leader(offsets_of(log), finished)):
        logger.info("%s starts at %d, as its remote segments tell", partition.id, log.log_start_offset)
    highest = highest_copied_offset(
        log.epochs.entries,
        log.log_end_offset,
        lambda epoch: metadata.highest_offset_for_epoch(partition.id, epoch),
    )
    partition.copied = copied_without_gap(highest, log.local_log_start_offset, finished)
    log.update_highest_offset_in_remote_storage(partition.copied)
    partition.is_started = True
