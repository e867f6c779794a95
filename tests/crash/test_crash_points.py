"""The broker dies at named places: in the middle of a roll, of a replacement of segments, of a clean stop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from strandline.crash import ENVIRONMENT_VARIABLE
from tests.broker import BrokerProcess, running_broker
from tests.crash.writers import Writer, judge, read_all, wait_for_more
from tests.waiting import wait_until
from tests.wirelevel.raw import connected, create_topic

SMALL_SEGMENTS = {"internal_segment_bytes": "50000", "index_interval_bytes": "1000"}
SIGKILLED = -9


def start_without_crash_points(broker: BrokerProcess) -> None:
    broker.environment = {}
    broker.start()


@pytest.mark.parametrize(
    "place",
    [
        "log.roll.before_indexes:5",
        "log.roll.before_snapshot:4",
        "log.roll.before_segment:3",
        "log.roll.done:6",
    ],
)
def test_death_in_the_middle_of_a_roll(tmp_path: Path, start_writers: Callable[..., list[Writer]], place: str) -> None:
    """Producers write until the broker dies by itself, and go on when it is back."""
    with running_broker(tmp_path / "data", environment={ENVIRONMENT_VARIABLE: place}) as broker:
        with connected(broker.bootstrap) as connection:
            create_topic(connection, "numbers", partitions=2, **SMALL_SEGMENTS)
        writers = start_writers(broker.bootstrap, "numbers")
        assert broker.wait() == SIGKILLED
        start_without_crash_points(broker)
        wait_for_more(writers, 2000)
        for writer in writers:
            writer.stop()
        assert [failure for writer in writers for failure in writer.failures] == []
        verdict = judge(writers, read_all(broker.bootstrap, "numbers", 2))
        assert verdict.is_clean, str(verdict)


@pytest.mark.parametrize("place", ["log.close.before_checkpoints", "log.close.before_clean_mark"])
def test_death_in_the_middle_of_a_clean_stop(
    tmp_path: Path, start_writers: Callable[..., list[Writer]], place: str
) -> None:
    with running_broker(tmp_path / "data", environment={ENVIRONMENT_VARIABLE: place}) as broker:
        with connected(broker.bootstrap) as connection:
            create_topic(connection, "numbers", partitions=2, **SMALL_SEGMENTS)
        writers = start_writers(broker.bootstrap, "numbers")
        wait_for_more(writers, 2000)
        assert broker.stop() == SIGKILLED
        start_without_crash_points(broker)
        wait_for_more(writers, 2000)
        for writer in writers:
            writer.stop()
        verdict = judge(writers, read_all(broker.bootstrap, "numbers", 2))
        assert verdict.is_clean, str(verdict)


@pytest.mark.parametrize(
    "place",
    [
        "log.replace.renamed_to_swap:1",
        "log.replace.removed_old:1",
        "log.replace.removed_old:3",
        "log.replace.renamed_to_final:1",
    ],
)
def test_death_in_the_middle_of_compaction(
    tmp_path: Path, start_writers: Callable[..., list[Writer]], place: str
) -> None:
    """The cleaner dies while it swaps segments: the newest record of each key is still in its place."""
    settings = {"log.cleaner.backoff.ms": "100"}
    environment = {ENVIRONMENT_VARIABLE: place}
    compacted = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01", **SMALL_SEGMENTS}
    with running_broker(tmp_path / "data", settings, environment=environment) as broker:
        with connected(broker.bootstrap) as connection:
            create_topic(connection, "numbers", partitions=1, **compacted)
        writers = start_writers(broker.bootstrap, "numbers", count=2, partitions=1, keys=50)
        assert broker.wait() == SIGKILLED
        start_without_crash_points(broker)
        wait_for_more(writers, 2000)
        for writer in writers:
            writer.stop()
        newest: dict[str, tuple[int, str]] = {}
        for writer in writers:
            for value, place_of in writer.acknowledged.items():
                key = writer.key_of(value)
                newest[key] = max(newest.get(key, (-1, "")), (place_of.offset, value))
        found = read_all(broker.bootstrap, "numbers", 1)
        by_offset = {place_of.offset: value for place_of, value in found.items()}
        assert {key: by_offset.get(offset) for key, (offset, _) in newest.items()} == {
            key: value for key, (_, value) in newest.items()
        }
        wait_until(
            lambda: not list(broker.data_dir.rglob("*.swap")) and not list(broker.data_dir.rglob("*.cleaned")),
            what="leftovers of the interrupted cleaning to go",
        )
