"""What `strandline migration start --wait` shows while it waits."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from strandline.admin.commands.migration_wait import showing
from strandline.admin.migration_text import summary
from strandline.controlplane.values import MigrationState
from strandline.hybrid.switching.status import MigrationPhase, PartitionMigration, TopicMigrationStatus

COPYING = PartitionMigration(
    partition=0, state=MigrationState.MIGRATING, phase=MigrationPhase.COPYING_PREFIX, b0=5, total_bytes=70
)
SLOW = replace(COPYING, partition=1, problem="Nothing is copied, 31 seconds after the switch.")


def topic(*partitions: PartitionMigration) -> TopicMigrationStatus:
    return TopicMigrationStatus(topic="orders", state=MigrationState.MIGRATING, partitions=partitions)


def test_a_problem_is_told_once_with_its_partition(capsys: pytest.CaptureFixture[str]) -> None:
    longer = replace(SLOW, problem="Nothing is copied, 32 seconds after the switch.", copied_bytes=35)
    with showing(as_json=False) as show:
        for status in (topic(COPYING), topic(COPYING, SLOW), topic(COPYING, longer), topic(COPYING)):
            show(status)
    assert capsys.readouterr().out.splitlines() == [
        "orders: MIGRATING, 1 of 1 partitions diskless, 0 %, 70 B to copy",
        "orders: MIGRATING, 2 of 2 partitions diskless, 0 %, 140 B to copy, a problem with partition 1",
        "1: Nothing is copied, 31 seconds after the switch.",
        "orders: MIGRATING, 2 of 2 partitions diskless, 25 %, 105 B to copy, a problem with partition 1",
        "orders: MIGRATING, 1 of 1 partitions diskless, 0 %, 70 B to copy",
    ]


def test_programs_get_the_problems_by_partition(capsys: pytest.CaptureFixture[str]) -> None:
    with showing(as_json=True) as show:
        show(topic(COPYING, SLOW))
    assert json.loads(capsys.readouterr().out)["problems"] == {"1": SLOW.problem}


def test_of_many_partitions_with_a_problem_some_are_named() -> None:
    many = topic(*(replace(SLOW, partition=number) for number in range(8)))
    assert summary(many).endswith("a problem with partitions 0, 1, 2, 3, 4 and 3 more")
