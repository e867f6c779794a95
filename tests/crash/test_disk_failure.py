"""One of several log directories fails: its partitions are gone, the others go on."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from strandline.wire.errors import ErrorCode
from tests.broker import running_broker
from tests.waiting import wait_until
from tests.wirelevel.raw import Closed, RawConnection, batch, connected, create_topic, end_offset, produce

PARTITIONS = 6
# The errors of clients: ask another broker, or try again.
GONE = {
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}


def partitions_in(directory: Path) -> set[int]:
    return {int(path.name.rpartition("-")[2]) for path in directory.glob("spread-*")}


def codes(connection: RawConnection, partitions: set[int]) -> dict[int, int]:
    """Write one large batch to each partition, so that each needs a new segment; the error codes."""
    return {number: produce(connection, "spread", batch(b"x" * 30_000), partition=number)[0] for number in partitions}


def test_a_failed_directory_does_not_take_the_others_down(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    with running_broker(tmp_path / "data", {"log.dirs": f"{good},{bad}"}) as broker:
        with connected(broker.bootstrap) as connection:
            create_topic(connection, "spread", partitions=PARTITIONS, internal_segment_bytes="40000")
            on_good, on_bad = partitions_in(good), partitions_in(bad)
            assert on_good | on_bad == set(range(PARTITIONS))
            assert on_good
            assert on_bad
            assert set(codes(connection, on_good | on_bad).values()) == {0}
            ends = {number: end_offset(connection, "spread", number) for number in on_good | on_bad}

            bad.rename(tmp_path / "lost")  # new segments can no longer be made there
            bad.write_text("not a directory any more")

            wait_until(lambda: set(codes(connection, on_bad).values()) <= GONE, what="the failure to be noticed")
            assert set(codes(connection, on_good).values()) == {0}
            assert all(end_offset(connection, "spread", number)[0] == 0 for number in on_good)

        broker.kill()
        bad.unlink()
        (tmp_path / "lost").rename(bad)
        broker.start()
        with connected(broker.bootstrap) as connection:
            for number in on_bad:  # what was acknowledged before the failure is there again
                code, end = end_offset(connection, "spread", number)
                assert code == 0
                assert end >= ends[number][1]
            assert set(codes(connection, on_good | on_bad).values()) == {0}


def test_a_broker_without_any_directory_ends(tmp_path: Path) -> None:
    only = tmp_path / "only"
    with running_broker(tmp_path / "data", {"log.dirs": str(only)}) as broker:
        with connected(broker.bootstrap) as connection:
            create_topic(connection, "spread", partitions=1, internal_segment_bytes="40000")
            assert codes(connection, {0}) == {0: 0}
            only.rename(tmp_path / "lost")
            only.write_text("not a directory any more")
            with suppress(Closed, OSError):  # the broker may end before it answers
                wait_until(lambda: codes(connection, {0})[0] in GONE, what="the failure to be noticed")
        assert broker.wait() != 0
        assert "log director" in broker.log_text
