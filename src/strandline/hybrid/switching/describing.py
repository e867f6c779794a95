"""What people are told of the switch of one partition, by the broker that has its log."""

from __future__ import annotations

from typing import Final

from strandline.controlplane import MigrationState
from strandline.hybrid.switching.stages import Stage, WhileDraining, WhileSwitched
from strandline.hybrid.switching.status import MigrationPhase, PartitionMigration
from strandline.hybrid.switching.switch import PartitionSwitch
from strandline.model import NO_OFFSET, Offset

_PHASES: Final = {
    Stage.WAITING: MigrationPhase.WAITING,
    Stage.DRAINING: MigrationPhase.DRAINING_TRANSACTIONS,
    Stage.SEALED: MigrationPhase.SEALING,
    Stage.STEPPED_BACK: MigrationPhase.SEALING,
}
"""At other stages there is none, but where a prefix is copied."""


def describe(switch: PartitionSwitch) -> PartitionMigration:
    """What this broker knows of a partition that it leads."""
    log, plane, at = switch.replica.log, switch.log, switch.at
    switched = at if isinstance(at, WhileSwitched) else None
    prefix = None if switched is None else switched.prefix
    copied = 0 if prefix is None else prefix.copied_bytes
    return PartitionMigration(
        partition=switch.id.partition,
        state=switch.state,
        phase=_phase(switch),
        b0=switch.boundary,
        tiering_complete=_is_prefix_tiered(switch),
        problem=switch.problem,
        held_by=tuple(sorted(at.held_by)) if isinstance(at, WhileDraining) else (),
        copied_bytes=copied,
        total_bytes=log.size if prefix is None else prefix.total_bytes,
        log_start=log.log_start_offset if switched is None else switched.parts.newest.log_start_offset,
        local_start=log.local_log_start_offset,
        tiered_high=_tiered_high(switch),
        high_watermark=log.high_watermark if switched is None else switched.parts.newest.high_watermark,
        local_bytes=log.size,
        remote_bytes=copied,
        diskless_bytes=0 if plane is None else plane.byte_size,
    )


def _phase(switch: PartitionSwitch) -> MigrationPhase | None:
    if isinstance(switch.at, WhileSwitched):
        return MigrationPhase.COPYING_PREFIX if switch.at.is_copying else None
    return _PHASES.get(switch.stage)


def _tiered_high(switch: PartitionSwitch) -> Offset:
    """The newest offset in remote storage: of the prefix as it is now, or converted, as the control plane says."""
    if switch.state is MigrationState.DISKLESS_ONLY:
        return NO_OFFSET
    prefix = switch.at.prefix if isinstance(switch.at, WhileSwitched) else None
    of_prefix = NO_OFFSET if prefix is None else prefix.tiered_high
    return max(of_prefix, NO_OFFSET if switch.log is None else switch.log.tiered_high_offset)


def _is_prefix_tiered(switch: PartitionSwitch) -> bool:
    """`tieringComplete`. Once it is true, only a segment that is missing at the log start makes it false again."""
    prefix = switch.at.prefix if isinstance(switch.at, WhileSwitched) else None
    if prefix is not None and switch.has_prefix and (prefix.is_complete or prefix.tiered_log_start == NO_OFFSET):
        return prefix.is_complete
    return switch.log is not None and switch.log.is_prefix_tiered
