"""A process that changes tiered logs and may be told to die while it does: `python -m tests.log.tiered_process`.

Arguments: the log directory, and what to do. Used by test_tiering_crash.
"""

from __future__ import annotations

import sys
from pathlib import Path

from strandline.clock import SystemChance
from strandline.config.log import LogSettings
from strandline.config.topic import TopicConfig
from strandline.log import LogManager, UnifiedLog
from strandline.log.checkpoints import format_epochs
from strandline.log.producer_snapshot import format_snapshot
from strandline.testing.clock import VirtualClock
from tests.log.harness import NOW, PARTITION, batch

RECORDS = 10
PER_SEGMENT = 3
SIZE = len(batch(producer_id=1, sequence=0))
CONFIG = TopicConfig(
    remote_storage_enable=True,
    internal_segment_bytes=PER_SEGMENT * SIZE,
    retention_ms=-1,
    local_retention_ms=1_000,
    file_delete_delay_ms=0,
)
HISTORY = format_epochs([(0, 0), (7, 50)])


def opened(directory: Path) -> LogManager:
    """All logs of the directory, as a broker with tiered storage opens them."""
    manager = LogManager(
        LogSettings(log_dirs=(str(directory),)),
        node_id=1,
        clock=VirtualClock(NOW),
        chance=SystemChance(1),
        remote_enabled=True,
    )
    manager.load(lambda topic: CONFIG)
    return manager


def fill(manager: LogManager) -> UnifiedLog:
    """Ten records, each in an epoch of its own, all but the active segment copied."""
    log = manager.get_or_create(PARTITION, None, CONFIG)
    for step in range(RECORDS):
        log.append(batch(timestamp=NOW, producer_id=1, sequence=step), leader_epoch=step)
        log.update_high_watermark(log.log_end_offset)
    log.remote.update_highest_offset(8)
    return log


def delete(log: UnifiedLog) -> None:
    """Local retention: three segments go, the active one is rolled."""
    log.retention.delete_old_segments(NOW + 10_000)


def empty(log: UnifiedLog) -> None:
    """A log that takes no more records is closed at its end, copied, and leaves the disk."""
    log.roll()
    plan = log.flusher.begin_hard()
    plan.run()
    log.flusher.finish(plan)
    log.remote.update_highest_offset(RECORDS - 1)
    delete(log)


def start_from_remote(log: UnifiedLog) -> None:
    """As a follower that has to begin where the leader's local log does."""
    log.start_from_remote(
        100, log_start=0, epoch_history=HISTORY, producer_snapshot=format_snapshot(()), source="a remote segment"
    )


def cut(log: UnifiedLog) -> None:
    """Truncation below the local log."""
    delete(log)
    log.truncate_to(4)


def main(directory: str, action: str) -> None:
    actions = {"delete": delete, "empty": empty, "start_from_remote": start_from_remote, "cut": cut}
    actions[action](fill(opened(Path(directory))))


if __name__ == "__main__":
    main(*sys.argv[1:])
