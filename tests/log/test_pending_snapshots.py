"""Producer snapshots that are encoded in steps after a roll, because there are very many producers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from strandline.config.topic import TopicConfig
from strandline.log import AppendOrigin
from strandline.log.producer_snapshot import SnapshotEncoding, format_snapshot, parse_snapshot
from strandline.log.snapshot_writing import write_snapshots
from strandline.tasks import next_turn
from tests.log.crowds import give_producers, in_thread, path_of, pending_in, producers, state
from tests.log.harness import NOW, LogHarness, batch, marker


@pytest.fixture
def crowded(harness: LogHarness) -> LogHarness:
    """A log with very many producers, one of them in a transaction, that has just rolled at offset 3."""
    give_producers(harness.log)
    harness.append(batch(producer_id=1000, sequence=5))
    harness.append(batch(producer_id=2000, sequence=5, is_transactional=True))
    harness.append(batch())
    harness.log.roll()
    return harness


class TestEncoding:
    @pytest.mark.parametrize("count", [0, 1, 11, 12, 13, 700, 6_000])
    @pytest.mark.parametrize("step", [1, 100])
    def test_in_steps_it_is_the_same_as_at_once(self, count: int, step: int) -> None:
        entries = producers(count)
        encoding = SnapshotEncoding(entries)
        while not encoding.is_complete:
            encoding.encode(step)
        encoding.encode(step)
        content = b"".join(encoding.content())
        assert content == format_snapshot(entries)
        assert len(parse_snapshot(content)) == count

    def test_what_changes_meanwhile_is_not_in_it(self) -> None:
        entries = producers()
        before = format_snapshot(entries)
        encoding = SnapshotEncoding(entries)
        number = 0
        while not encoding.is_complete:
            for entry in (entries[number], entries[-1 - number]):
                encoding.keep(entry)
                entry.epoch += 1
            number += 1
            encoding.encode(700)
        assert b"".join(encoding.content()) == before


class TestWriting:
    async def test_a_roll_with_few_producers_writes_it_at_once(self, harness: LogHarness) -> None:
        give_producers(harness.log, 5_000)
        harness.append(batch())
        harness.log.roll()
        assert harness.log.producers.snapshots == [0, 1]
        assert not harness.log.segments.has_pending_snapshot

    async def test_others_have_turns_and_append(self, crowded: LogHarness) -> None:
        """Every way in which a producer changes: its next batch, a new epoch, a marker, its expiry and its return."""
        log = crowded.log
        before = state(log)
        assert log.segments.has_pending_snapshot
        assert not path_of(log, 3).exists()
        task = asyncio.create_task(write_snapshots(log, in_thread))
        turns = 0
        while not task.done():
            await next_turn()
            turns += 1
            if turns == 1:
                crowded.append(batch(producer_id=1000, sequence=6))
                crowded.append(batch(producer_id=4000, producer_epoch=1, sequence=0))
                crowded.append(marker(2000, commits=False, epoch=1), origin=AppendOrigin.COORDINATOR)
                crowded.append(batch(producer_id=5, sequence=0))
            elif turns == 2:
                doomed = log.producers.entries[7000]
                doomed.last_timestamp, known = 0, doomed.last_timestamp
                log.producers.remove_expired(NOW, [doomed])
                doomed.last_timestamp = known
                crowded.append(batch(producer_id=7000, sequence=0))
            elif turns == 4:
                crowded.append(batch(producer_id=8000, sequence=5))
        assert turns > 10
        assert path_of(log, 3).read_bytes() == before
        assert log.producers.snapshots == [0, 3]
        assert crowded.files(".tmp") == []

    async def test_a_new_producer_is_not_kept(self, crowded: LogHarness, monkeypatch: pytest.MonkeyPatch) -> None:
        """The snapshot does not have it: what it was before its first batch is of no use."""
        kept: list[int] = []
        monkeypatch.setattr(SnapshotEncoding, "keep", lambda _, entry: kept.append(entry.producer_id))
        crowded.append(batch(producer_id=5, sequence=0))
        crowded.append(batch(producer_id=6, sequence=0, is_transactional=True))
        crowded.end_transaction(7, commits=True)
        assert kept == []
        crowded.append(batch(producer_id=1000, sequence=6))
        crowded.append(batch(producer_id=4000, producer_epoch=1, sequence=0))
        crowded.end_transaction(2000, commits=True)
        assert kept == [1000, 4000, 2000]

    async def test_two_at_a_time(self, crowded: LogHarness) -> None:
        log = crowded.log
        expected = {3: state(log)}
        crowded.append(batch(producer_id=1000, sequence=6))
        log.roll()
        expected[4] = state(log)
        crowded.append(batch(producer_id=1000, sequence=7))
        await asyncio.gather(write_snapshots(log, in_thread), write_snapshots(log, in_thread))
        assert {offset: path_of(log, offset).read_bytes() for offset in (3, 4)} == expected
        assert log.producers.snapshots == [0, 3, 4]
        assert crowded.files(".tmp") == []

    async def test_it_ends_although_the_log_goes_on_rolling(self, crowded: LogHarness) -> None:
        log = crowded.log
        written: list[int] = []

        async def rolls_meanwhile(work: Callable[[], None]) -> bool:
            written.append(log.producers.snapshots[-1])
            if len(written) < 10:
                crowded.append(batch(producer_id=1000, sequence=5 + len(written)))
                log.roll()
            return await in_thread(work)

        await write_snapshots(log, rolls_meanwhile)
        assert log.producers.snapshots == [0, 3]
        assert pending_in(log) == [4]

    async def test_a_disk_that_fails_takes_the_log_offline(self, crowded: LogHarness) -> None:
        log = crowded.log

        async def fails(work: Callable[[], None]) -> bool:
            log.env.directory.fail(OSError("no room"))
            return False

        await write_snapshots(log, fails)
        assert log.is_offline


class TestBeforeItIsWritten:
    def test_a_crash_leaves_the_snapshot_before_and_the_batches(self, crowded: LogHarness) -> None:
        crowded.append(batch(producer_id=1000, sequence=6))
        crowded.append(batch(producer_id=6, sequence=0))
        before = state(crowded.log)
        crowded.log.flusher.flush(3)
        log = crowded.crash()
        assert state(log) == before
        assert log.producers.first_unstable_offset == 1

    def test_a_clean_stop_writes_it(self, crowded: LogHarness) -> None:
        before = state(crowded.log)
        crowded.append(batch(producer_id=1000, sequence=6))
        log = crowded.reopen()
        assert path_of(log, 3).read_bytes() == before
        assert log.producers.snapshots == [0, 3, 4]
        assert crowded.append(batch(producer_id=1000, sequence=6)).is_duplicate

    def test_a_clean_stop_right_after_the_roll_forces_it_to_disk(self, crowded: LogHarness) -> None:
        crowded.log.flusher.flush()
        before = state(crowded.log)
        log = crowded.reopen()
        assert path_of(log, 3).read_bytes() == before
        assert state(log) == before

    def test_a_hard_flush_writes_it(self, crowded: LogHarness) -> None:
        before = state(crowded.log)
        crowded.log.flusher.begin_hard().run()
        assert path_of(crowded.log, 3).read_bytes() == before

    def test_retention_waits(self, crowded: LogHarness) -> None:
        log = crowded.log
        crowded.end_transaction(2000, commits=True)
        crowded.append(batch(producer_id=1000, sequence=6))
        later = NOW + log.config.retention_ms + 1
        before = state(log)
        assert log.retention.delete_old_segments(later) == 0  # it has rolled, and waits
        assert log.log_start_offset == 0
        log.producers.finish_snapshots()
        assert log.retention.delete_old_segments(later) == 2
        assert (log.log_start_offset, log.log_end_offset) == (5, 5)
        assert state(crowded.crash()) == before

    async def test_a_cut_below_drops_it(self, crowded: LogHarness) -> None:
        """Also if a thread is writing it at that moment: what it says of its offset is not true any more."""
        log = crowded.log

        async def cut_meanwhile(work: Callable[[], None]) -> bool:
            await in_thread(work)
            log.truncate_to(2)
            crowded.append(batch(producer_id=77, sequence=0))
            return True

        await write_snapshots(log, cut_meanwhile)
        assert not path_of(log, 3).exists()
        assert crowded.files(".tmp") == []
        assert log.producers.snapshots == [0]
        before = state(log)
        assert 77 in log.producers.entries
        assert state(crowded.crash()) == before

    def test_a_cut_above_keeps_it(self, crowded: LogHarness) -> None:
        log = crowded.log
        before = state(log)
        crowded.append(batch(producer_id=1000, sequence=6))
        log.truncate_to(3)
        assert state(log) == before
        assert path_of(log, 3).read_bytes() == before

    def test_a_log_that_starts_again_drops_it(self, crowded: LogHarness) -> None:
        crowded.log.truncate_fully_and_start_at(3)
        assert not crowded.log.segments.has_pending_snapshot
        assert crowded.log.producers.snapshots == []
        assert len(crowded.log.producers) == 0

    async def test_the_segment_is_not_copied_yet(self, tmp_path: Path) -> None:
        harness = LogHarness(tmp_path, TopicConfig(remote_storage_enable=True), remote_enabled=True)
        log = harness.create()
        give_producers(log)
        harness.append(batch(producer_id=1000, sequence=5))
        log.roll()
        expected = state(log)
        harness.append(batch(producer_id=1000, sequence=6))
        assert log.remote.segments_to_copy(0) == []
        await write_snapshots(log, in_thread)
        (segment,) = log.remote.segments_to_copy(0)
        assert segment.producer_snapshot.read_bytes() == expected
