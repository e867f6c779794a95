"""The broker dies around the commits of WAL objects while a diskless topic is copied exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker import running_broker
from tests.clients.transactions import TRANSACTION_SETTINGS
from tests.crash.test_transaction_crashes import CopiedTopic, die_at

WRITER, PLANE, COORDINATOR = "diskless.writer", "controlplane.commit", "transactions"
PLACES = (
    (WRITER, "before_commit"),
    (PLANE, "before_commit"),
    (WRITER, "after_commit"),
    (WRITER, "before_answer"),
    (COORDINATOR, "before_marker"),
    (COORDINATOR, "after_marker"),
)


@pytest.fixture
def copied(tmp_path: Path) -> Iterator[CopiedTopic]:
    with running_broker(tmp_path / "data", TRANSACTION_SETTINGS) as broker:
        world = CopiedTopic(broker, diskless_enable="true")
        try:
            yield world
        finally:
            world.copier.kill()


def test_the_broker_dies_around_commits_of_data_and_markers(copied: CopiedTopic) -> None:
    """At the third visit of each place: commits of records and of markers take turns."""
    copied.write(1500)
    copied.copier.start()
    copied.wait_for_more(25)
    copied.broker.kill()
    for of, place in PLACES:
        die_at(copied, f"{place}:3", of=of)
    copied.broker.start()
    copied.judge()


@pytest.mark.long
@pytest.mark.parametrize(("of", "place"), PLACES)
def test_the_broker_dies_often_at_one_place(copied: CopiedTopic, of: str, place: str) -> None:
    copied.write(6000)
    copied.copier.start()
    copied.broker.kill()
    for visit in (1, 2, 4, 5, 7):
        die_at(copied, f"{place}:{visit}", of=of)
    copied.broker.start()
    copied.judge()
