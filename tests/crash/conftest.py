"""Brokers that tests may kill, and producers that write to them meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.broker import EXTERNAL_BOOTSTRAP
from tests.crash.writers import Writer
from tests.golden import kafka_classic as kafka_classic


@pytest.fixture(autouse=True)
def _only_ours() -> None:
    if EXTERNAL_BOOTSTRAP:
        pytest.skip("kills the broker")


@pytest.fixture
def start_writers() -> Iterator[Callable[..., list[Writer]]]:
    """Starts producers; whatever the test does, they have ended when it has."""
    started: list[Writer] = []

    def start(
        bootstrap: str, topic: str, *, count: int = 3, partitions: int = 2, keys: int = 0, pause: float = 0.0
    ) -> list[Writer]:
        writers = [
            Writer(bootstrap, topic, f"writer-{number}", partitions, keys=keys, pause=pause) for number in range(count)
        ]
        for writer in writers:
            writer.start()
        started.extend(writers)
        return writers

    yield start
    for writer in started:
        writer.stop()
