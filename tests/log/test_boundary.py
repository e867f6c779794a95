"""A log that ends at a boundary, above which another log goes on: cut there, and in the end empty there."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.config.topic import TopicConfig
from strandline.errors import KafkaStorageError, OffsetOutOfRange
from strandline.log import LoadedOffsets
from tests.log.harness import NOW, LogHarness, batch, offsets_in
from tests.log.test_tiering import made, starts

DAY_MS = 24 * 60 * 60 * 1000
BOUNDARY = 10
"""Where the logs of `made` end."""


def sealed(root: Path, **settings: object) -> LogHarness:
    """A log of ten records and two producers that is rolled and forced to disk at its end, as a switch leaves it."""
    harness = LogHarness(root, made(root / "unused", **settings).config, remote_enabled=True)
    harness.create()
    for step in range(BOUNDARY):
        records = batch(timestamp=NOW + step, producer_id=70 + step % 2, sequence=step // 2)
        harness.append(records, epoch=step // 4)
    harness.log.roll()
    plan = harness.log.flusher.begin_hard()
    plan.run()
    harness.log.flusher.finish(plan)
    return harness


def emptied(root: Path, *, log_start: int = 0, **settings: object) -> LogHarness:
    """The same after all of it was copied and has left the disk."""
    harness = sealed(root, **({"local_retention_bytes": 0} | settings))
    log = harness.log
    log.remote.update_highest_offset(BOUNDARY - 1)
    log.start.increment(log_start)
    harness.checkpoint()
    log.retention.delete_old_segments(harness.clock.now_ms())
    harness.delete_due()
    assert starts(harness) == (log_start, BOUNDARY, [BOUNDARY])
    return harness


def check_empty(harness: LogHarness, *, log_start: int = 0) -> None:
    """Nothing of what a log at its boundary knows is lost."""
    log = harness.log
    assert starts(harness) == (log_start, BOUNDARY, [BOUNDARY])
    assert (log.log_end_offset, log.reserved_end, log.high_watermark, log.last_stable_offset) == (BOUNDARY,) * 4
    assert log.size == 0
    assert {pid: entry.last_sequence for pid, entry in log.producers.entries.items()} == {70: 4, 71: 4}


class TestCutting:
    def test_what_is_above_the_boundary_goes_and_what_is_known_to_be_remote_stays_known(self, tmp_path: Path) -> None:
        """Segments above the boundary may have been made of the other log; they were once deleted by such a cut."""
        harness = made(tmp_path)
        log = harness.log
        log.remote.update_highest_offset(8)
        assert log.truncate_above_boundary(5)
        assert (log.log_end_offset, log.high_watermark, log.log_start_offset) == (5, 5, 0)
        assert log.remote.highest_offset == 8
        assert log.epochs.entries == tuple((epoch, epoch) for epoch in range(5))
        assert offsets_in(log) == [0, 1, 2, 3, 4]

    def test_the_same_cut_of_a_follower_forgets_it(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        harness.log.remote.update_highest_offset(8)
        harness.log.truncate_to(5)
        assert harness.log.remote.highest_offset == 4

    def test_a_log_that_ends_at_the_boundary_or_below_is_left_as_it_is(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        harness.log.remote.update_highest_offset(8)
        for boundary in (BOUNDARY, BOUNDARY + 5):
            assert not harness.log.truncate_above_boundary(boundary)
        assert (harness.log.log_end_offset, harness.log.remote.highest_offset) == (BOUNDARY, 8)

    def test_a_log_of_which_only_what_is_above_the_boundary_is_local(self, tmp_path: Path) -> None:
        harness = made(tmp_path, local_retention_bytes=0)
        log = harness.log
        log.remote.update_highest_offset(8)
        log.retention.delete_old_segments(NOW)
        assert log.local_log_start_offset == 9
        assert log.truncate_above_boundary(5)
        assert starts(harness) == (0, 5, [5])
        assert (log.log_end_offset, log.high_watermark, log.remote.highest_offset) == (5, 5, 8)
        assert log.epochs.entries == tuple((epoch, epoch) for epoch in range(5))

    def test_a_boundary_below_the_log_start_is_refused(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        harness.log.delete_records(6)
        with pytest.raises(OffsetOutOfRange, match="records below 6 are deleted"):
            harness.log.truncate_above_boundary(5)
        assert harness.log.log_end_offset == BOUNDARY
        assert harness.log.truncate_above_boundary(6)
        assert (harness.log.log_start_offset, harness.log.log_end_offset) == (6, 6)

    def test_a_batch_that_reaches_over_the_boundary_is_not_cut(self, harness: LogHarness) -> None:
        harness.append(batch(3))
        harness.append(batch(3))
        with pytest.raises(KafkaStorageError, match="reaches over it"):
            harness.log.truncate_above_boundary(4)
        assert harness.log.log_end_offset == 6
        assert harness.log.truncate_above_boundary(3)
        assert offsets_in(harness.log) == [0]

    @pytest.mark.parametrize("boundary", [5, BOUNDARY])
    def test_the_cut_survives_a_crash(self, tmp_path: Path, boundary: int) -> None:
        harness = made(tmp_path)
        harness.log.truncate_above_boundary(boundary)
        log = harness.crash()
        assert (log.log_end_offset, log.log_start_offset) == (boundary, 0)


class TestEmptyAtTheBoundary:
    """Every closed segment has left the disk: the empty active one says where the log ends."""

    @pytest.mark.parametrize("log_start", [0, 4, BOUNDARY])
    def test_it_is_the_same_after_a_clean_stop(self, tmp_path: Path, log_start: int) -> None:
        harness = emptied(tmp_path, log_start=log_start)
        epochs = harness.log.epochs.entries
        for _ in range(2):
            harness.reopen()
            check_empty(harness, log_start=log_start)
        if log_start < BOUNDARY:
            assert harness.log.epochs.entries == epochs

    @pytest.mark.parametrize("log_start", [0, 4, BOUNDARY])
    def test_it_is_the_same_after_a_crash(self, tmp_path: Path, log_start: int) -> None:
        harness = emptied(tmp_path, log_start=log_start)
        epochs = harness.log.epochs.entries
        for _ in range(2):
            harness.crash()
            check_empty(harness, log_start=log_start)
        if log_start < BOUNDARY:
            assert harness.log.epochs.entries == epochs

    def test_it_is_the_same_if_the_checkpoints_are_lost(self, tmp_path: Path) -> None:
        harness = emptied(tmp_path)
        harness.log.abandon()
        harness.open(LoadedOffsets(), is_clean=False)
        check_empty(harness)

    @pytest.mark.parametrize(
        "settings",
        [
            {"retention_ms": 1, "local_retention_ms": 1, "local_retention_bytes": -2},
            {"retention_bytes": 0, "retention_ms": -1},
            {"local_retention_bytes": 0, "local_retention_ms": 0},
            {"segment_ms": 1, "flush_ms": 1, "flush_messages": 1},
            {"remote_log_copy_disable": True, "retention_ms": 1, "retention_bytes": 0},
            {"remote_storage_enable": False, "retention_ms": 1, "retention_bytes": 0},
        ],
        ids=lambda settings: "+".join(settings),
    )
    async def test_no_setting_moves_its_end_or_takes_its_last_segment(
        self, tmp_path: Path, settings: dict[str, object]
    ) -> None:
        harness = emptied(tmp_path)
        log = harness.log
        log.update_config(TopicConfig(**({"remote_storage_enable": True} | settings)))  # type: ignore[arg-type]
        for _ in range(3):
            await harness.clock.advance(30 * DAY_MS / 1000)
            assert log.retention.delete_old_segments(harness.clock.now_ms()) == 0
            log.flusher.flush()
            log.roll()
            log.close_idle_files()
            harness.delete_due()
        assert (log.log_end_offset, log.high_watermark, log.segments.bases) == (BOUNDARY, BOUNDARY, [BOUNDARY])
        assert harness.files(".log") == [f"{BOUNDARY:020d}.log"]

    def test_its_start_reaches_the_boundary_and_not_more(self, tmp_path: Path) -> None:
        harness = emptied(tmp_path)
        log = harness.log
        with pytest.raises(OffsetOutOfRange):
            log.start.increment(BOUNDARY + 1)
        assert log.start.increment(BOUNDARY)
        harness.checkpoint()
        log.remote.set_log_start(BOUNDARY + 5)
        check_empty(harness, log_start=BOUNDARY)
        assert log.epochs.epoch_of(BOUNDARY) == 2
