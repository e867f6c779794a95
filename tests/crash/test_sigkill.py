"""SIGKILL in the middle of writing: nothing that was acknowledged is lost, doubled or moved.

What acks=all promises. A record is acknowledged when every in-sync replica has written it to its log file, not when
it is on the platter: like Kafka, a broker leaves the moment of fsync to the operating system unless
`flush.messages` or `flush.ms` say otherwise. The death of the *process* therefore loses nothing in either setting, and
these tests prove it. The death of the *machine* may lose what the operating system had not written yet, unless
another replica has it or `flush.messages=1` made every acknowledgement wait for fsync.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker import BrokerProcess, running_broker
from tests.crash.writers import Writer, judge, read_all, wait_for_more
from tests.wirelevel.raw import connected, create_topic

FLUSH_SETTINGS = [
    pytest.param({}, id="flush-by-the-system"),
    pytest.param({"log.flush.interval.messages": "1"}, id="flush-every-record"),
]
SMALL_SEGMENTS = {"internal_segment_bytes": "200000", "index_interval_bytes": "1000"}


def assert_nothing_is_wrong(broker: BrokerProcess, writers: list[Writer], topic: str, partitions: int) -> None:
    failures = [failure for writer in writers for failure in writer.failures]
    assert failures == []
    verdict = judge(writers, read_all(broker.bootstrap, topic, partitions))
    assert verdict.is_clean, str(verdict)


@pytest.mark.parametrize("settings", FLUSH_SETTINGS)
def test_nothing_acknowledged_is_lost(
    tmp_path: Path, start_writers: Callable[..., list[Writer]], settings: dict[str, str]
) -> None:
    with running_broker(tmp_path / "data", settings) as broker:
        with connected(broker.bootstrap) as connection:
            create_topic(connection, "numbers", partitions=2, **SMALL_SEGMENTS)
        writers = start_writers(broker.bootstrap, "numbers")
        for _ in range(3):
            wait_for_more(writers, 3000)
            broker.kill()
            broker.start()
        wait_for_more(writers, 3000)
        for writer in writers:
            writer.stop()
        assert_nothing_is_wrong(broker, writers, "numbers", 2)

        broker.kill()  # and once more, without a producer: recovery must not change anything either
        broker.start()
        assert_nothing_is_wrong(broker, writers, "numbers", 2)


def test_a_kill_right_after_the_last_acknowledgement(
    tmp_path: Path, start_writers: Callable[..., list[Writer]]
) -> None:
    """The producers end before the kill: what they were told is all there is."""
    with running_broker(tmp_path / "data") as broker:
        with connected(broker.bootstrap) as connection:
            create_topic(connection, "numbers", partitions=2, **SMALL_SEGMENTS)
        writers = start_writers(broker.bootstrap, "numbers")
        wait_for_more(writers, 5000)
        for writer in writers:
            writer.stop()
        broker.kill()
        broker.start()
        found = read_all(broker.bootstrap, "numbers", 2)
        assert len(found) == sum(len(writer.acknowledged) for writer in writers)
        assert_nothing_is_wrong(broker, writers, "numbers", 2)


def test_a_clean_stop_under_load(tmp_path: Path, start_writers: Callable[..., list[Writer]]) -> None:
    """SIGTERM while producers write: the broker ends by itself, soon and without complaint; nothing is lost."""
    with running_broker(tmp_path / "data") as broker:
        with connected(broker.bootstrap) as connection:
            create_topic(connection, "numbers", partitions=2, **SMALL_SEGMENTS)
        writers = start_writers(broker.bootstrap, "numbers")
        for _ in range(2):
            wait_for_more(writers, 3000)
            assert broker.stop(within=5.0) == 0
            assert (broker.data_dir / ".kafka_cleanshutdown").exists() or list(
                broker.data_dir.rglob(".kafka_cleanshutdown")
            )
            broker.start()
        wait_for_more(writers, 3000)
        for writer in writers:
            writer.stop()
        assert_nothing_is_wrong(broker, writers, "numbers", 2)
        assert "Traceback" not in broker.log_text
