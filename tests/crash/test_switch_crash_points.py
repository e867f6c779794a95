"""The broker dies at each step of the switch of a topic to diskless. After the restart the switch ends by itself."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from strandline.crash import ENVIRONMENT_VARIABLE
from tests.broker import BrokerProcess, running_broker
from tests.crash.switching import (
    PARTITIONS,
    SETTINGS,
    TOPIC,
    assert_nothing_lost,
    create_history,
    request_switch,
    wait_switched,
)
from tests.crash.writers import Writer, wait_for_more

SIGKILLED = -9
BEFORE_ITS_REQUEST_IS_STORED = "controlplane.migration.requested"

pytestmark = pytest.mark.timeout(240)


def dies_at(broker: BrokerProcess, place: str) -> None:
    """Start the broker again so that it dies at a place, before or after it accepts connections."""
    broker.environment = {ENVIRONMENT_VARIABLE: place}
    broker.spawn()
    assert broker.wait() == SIGKILLED


@pytest.mark.parametrize(
    "place",
    [
        BEFORE_ITS_REQUEST_IS_STORED,
        "switch.before_seal",
        "switch.after_seal",
        "switch.at_rest",
        "switch.after_roll:2",
        "switch.after_flush",
        "controlplane.migration.before_commit",
        "controlplane.migration.after_commit",
        "switch.after_boundary",
        "switch.joined:2",
        "switch.before_prefix",
        "controlplane.migration.before_prefix_commit",
        "switch.after_prefix",
    ],
)
def test_death_at_a_step_of_the_switch(tmp_path: Path, start_writers: Callable[..., list[Writer]], place: str) -> None:
    """Idempotent producers write all the time; whoever requested the switch does not ask for it a second time."""
    with running_broker(tmp_path / "data", SETTINGS, environment={ENVIRONMENT_VARIABLE: place}) as broker:
        create_history(broker)
        writers = start_writers(broker.bootstrap, TOPIC, count=2, partitions=PARTITIONS, pause=0.001)
        wait_for_more(writers, 600)
        with suppress(KafkaException):  # it may die before it answers
            request_switch(broker)
        assert broker.wait() == SIGKILLED
        if place == "switch.after_flush":  # and once more when it has seen that nobody else sets the boundary
            dies_at(broker, "switch.claimed")
        broker.environment = {}
        broker.start()
        if place == BEFORE_ITS_REQUEST_IS_STORED:
            wait_for_more(writers, 100)
            request_switch(broker)
        found = wait_switched(broker)
        assert min(found) > 0
        wait_for_more(writers, 300)
        records = assert_nothing_lost(broker, writers)
        assert all(max(p.offset for p in records if p.partition == n) >= found[n] for n in range(PARTITIONS))
        assert "Traceback" not in broker.log_text
