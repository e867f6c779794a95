"""Values about the switch of topics: progress, states of topics, write pauses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.controlplane.values import MigrationState
from strandline.hybrid.switching.status import (
    PAUSE_BOUNDS_S,
    MigrationPhase,
    PartitionMigration,
    TopicMigrationStatus,
    WritePauses,
    progress,
    topic_state,
    with_phases,
)

PENDING = PartitionMigration(partition=0, state=MigrationState.MIGRATING, total_bytes=100)
COPYING = replace(PENDING, b0=50, log_start=10, tiered_high=29, copied_bytes=25)


def test_a_topic_is_as_far_as_its_last_partition() -> None:
    assert topic_state(()) is None
    assert topic_state([MigrationState.DISKLESS_ONLY, MigrationState.HYBRID]) is MigrationState.HYBRID
    assert topic_state([MigrationState.HYBRID, MigrationState.MIGRATING]) is MigrationState.MIGRATING


@pytest.mark.parametrize(
    ("partition", "percent"),
    [
        (PENDING, 0),
        (COPYING, 25),
        (replace(COPYING, total_bytes=0), 50),  # of offsets, where bytes are not known
        (replace(COPYING, copied_bytes=100), 99),  # the state decides when it is over
        (replace(COPYING, state=MigrationState.HYBRID), 100),
        (replace(COPYING, state=MigrationState.DISKLESS_ONLY), 100),
    ],
)
def test_progress(partition: PartitionMigration, percent: float) -> None:
    assert progress([partition]) == percent
    assert progress([partition, partition]) == percent
    assert progress([]) == 0


def test_what_only_one_disk_has() -> None:
    assert COPYING.uncopied_bytes == 75
    forced = replace(COPYING, state=MigrationState.HYBRID)
    assert forced.uncopied_bytes == 75, "ending a switch by force copies nothing"
    assert replace(forced, tiering_complete=True).uncopied_bytes == 0


def test_the_diskless_part_begins_at_the_boundary_or_above_what_was_converted() -> None:
    assert PENDING.diskless_start == -1
    assert COPYING.diskless_start == 50
    assert replace(COPYING, tiered_high=79).diskless_start == 80


def test_leaders_know_more_than_the_control_plane() -> None:
    status = TopicMigrationStatus(topic="t", state=None, partitions=(PENDING, replace(COPYING, partition=1)))
    known = replace(PENDING, phase=MigrationPhase.SEALING)
    assert with_phases(status, [known]).partitions == (known, status.partitions[1])


def test_pauses_are_counted_once_and_the_longest_of_a_topic_is_kept() -> None:
    pauses = WritePauses()
    for topic, seconds in (("a", 0.005), ("a", 0.2), ("a", 0.1), ("b", 100.0)):
        pauses = pauses.plus(topic, seconds)
    bounds = (*PAUSE_BOUNDS_S, float("inf"))
    assert {bound: count for bound, count in zip(bounds, pauses.counts, strict=True) if count} == {
        0.005: 1,
        0.1: 1,
        0.25: 1,
        float("inf"): 1,
    }
    assert pauses.seconds == pytest.approx(100.305)
    assert pauses.last == {"a": 0.2, "b": 100.0}
