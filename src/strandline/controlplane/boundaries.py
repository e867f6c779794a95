"""When a boundary may be set or reset, and what a report about a prefix changes: rules, without a database.

The caller has locked the log, and stores the result.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from strandline.controlplane.values import (
    BoundarySet,
    DisklessLog,
    MigrationState,
    NewBoundary,
    PrefixProgress,
    Refusal,
)
from strandline.model import NO_OFFSET, LeaderEpoch

_ORDER: Final = tuple(MigrationState)
"""A partition passes through the states in this order, and may leave some out."""
_NOTHING_TIERED: Final = (NO_OFFSET, NO_OFFSET)


def judge_boundary(log: DisklessLog | None, new: NewBoundary, *, is_requested: bool) -> BoundarySet:
    """The answer to a leader that wants to set B0. `log`: None if there is none; created without B0 beforehand."""
    if not 0 <= new.log_start_offset <= new.boundary or new.tiered_high_offset >= new.boundary:
        raise ValueError(f"The log of {new.partition} cannot have these offsets: {new}.")
    where = f"{new.partition.topic_partition}"
    ended = f"The switch of the topic {new.partition.topic} was aborted, is finished, or was requested anew."
    if log is None:
        return BoundarySet(Refusal.MIGRATION_NOT_FOUND, message=ended)
    boundary, epoch = log.diskless_log_start_offset, log.diskless_log_start_epoch
    if new.leader_epoch < epoch:
        message = f"Leader epoch {new.leader_epoch} of {where} is older than {epoch}, which is known."
        return BoundarySet(Refusal.STALE_LEADER_EPOCH, boundary, epoch, message)
    if boundary >= 0:
        if boundary == new.boundary:
            return BoundarySet(None, boundary, epoch)
        message = f"{where} is diskless from offset {boundary} on, not from {new.boundary}."
        return BoundarySet(Refusal.BOUNDARY_IS_SET, boundary, epoch, message)
    if not is_requested:
        return BoundarySet(Refusal.MIGRATION_NOT_FOUND, boundary, epoch, ended)
    return BoundarySet(None, new.boundary, new.leader_epoch)


def judge_seeds(new: NewBoundary, epoch: LeaderEpoch, *, are_same: bool) -> BoundarySet:
    """The answer to a leader that repeats the B0 of a log without diskless records. Its producers must be the same.

    The producers decide which batches of the prefix are recognised when they are sent again. Those of the first report
    count.
    """
    if are_same:
        return BoundarySet(None, new.boundary, epoch)
    message = (
        f"{new.partition.topic_partition} is diskless from offset {new.boundary} on, with other producers than these."
    )
    return BoundarySet(Refusal.BOUNDARY_IS_SET, new.boundary, epoch, message)


def new_columns(new: NewBoundary) -> tuple[object, ...]:
    """A log that has just got its B0, in the order of the statement."""
    if new.log_start_offset == new.boundary:
        state, tiered = MigrationState.DISKLESS_ONLY, _NOTHING_TIERED
    else:
        state, tiered = MigrationState.MIGRATING, (new.tiered_log_start_offset, new.tiered_high_offset)
    return (new.boundary, new.leader_epoch, new.log_start_offset, *tiered, state.value)


def judge_reset(log: DisklessLog | None, leader_epoch: LeaderEpoch) -> BoundarySet:
    """The answer to a leader that wants to make B0 unset again."""
    if log is None:
        return BoundarySet(Refusal.UNKNOWN_LOG, message="This partition has no diskless log.")
    boundary, epoch = log.diskless_log_start_offset, log.diskless_log_start_epoch
    where = f"{log.partition.topic_partition}"
    if leader_epoch < epoch:
        message = f"Leader epoch {leader_epoch} of {where} is older than {epoch}, which is known."
        return BoundarySet(Refusal.STALE_LEADER_EPOCH, boundary, epoch, message)
    if 0 <= boundary < log.high_watermark:
        message = f"{where} has diskless records from offset {boundary} to {log.high_watermark}: they would be lost."
        return BoundarySet(Refusal.BOUNDARY_IS_SET, boundary, epoch, message)
    return BoundarySet(None, -1, leader_epoch if boundary >= 0 else epoch)


def advanced(log: DisklessLog, report: PrefixProgress) -> DisklessLog:
    """The log after a report about its prefix. The same one if the report says nothing new, or comes too late."""
    boundary = log.diskless_log_start_offset
    if boundary < 0 or report.leader_epoch < log.diskless_log_start_epoch:
        return log
    # Segments above B0 were made by conversion: reports about the prefix say nothing about them.
    is_converted = log.diskless_start_offset > boundary
    state = log.migration_state if is_converted else max(log.migration_state, report.state, key=_ORDER.index)
    tiered = (
        max(log.tiered_log_start_offset, min(report.tiered_log_start_offset, boundary)),
        max(log.tiered_high_offset, min(report.tiered_high_offset, boundary - 1)),
    )
    start, high = _NOTHING_TIERED if state is MigrationState.DISKLESS_ONLY else tiered
    return replace(
        log,
        log_start_offset=max(log.log_start_offset, min(report.log_start_offset, boundary)),
        tiered_log_start_offset=start,
        tiered_high_offset=high,
        migration_state=state,
    )
