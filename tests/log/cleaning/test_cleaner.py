"""What cleaning leaves of a log."""

from __future__ import annotations

from pathlib import Path
from struct import pack_into

import pytest

from strandline.errors import OutOfOrderSequence
from strandline.log.checkpoints import CLEANER_OFFSETS, read_offsets
from strandline.model import INT64_MAX
from strandline.records import Codec, Record, build_batch
from strandline.records.batch import renew_crc
from tests.log.cleaning.support import DAY_MS, PARTITION, CompactedLog, cleaner_of


@pytest.fixture
def log(tmp_path: Path) -> CompactedLog:
    return CompactedLog(tmp_path / "data")


@pytest.mark.parametrize("codec", list(Codec))
async def test_only_the_newest_record_of_a_key_stays(log: CompactedLog, codec: Codec) -> None:
    log.produce((b"a", b"1"), (b"b", b"1"), (b"a", b"2"), codec=codec)
    log.produce((b"c", b"1"), (b"b", b"2"), codec=codec)
    log.roll()
    log.produce((b"a", b"3"))
    await log.clean()
    assert log.pairs() == [(b"a", b"2"), (b"c", b"1"), (b"b", b"2"), (b"a", b"3")]
    assert log.offsets() == [2, 3, 4, 5]
    assert log.log.log_end_offset == 6


async def test_the_active_segment_is_not_cleaned(log: CompactedLog) -> None:
    log.produce((b"a", b"1"), (b"a", b"2"))
    assert await log.cleaner().clean_once() is None
    assert len(log.records()) == 2


async def test_a_batch_of_which_all_stays_keeps_its_bytes(log: CompactedLog) -> None:
    log.produce((b"a", b"1"), (b"b", b"1"), codec=Codec.ZSTD)
    log.roll()
    before = log.first_file()
    await log.clean()
    assert log.first_file() == before


async def test_records_without_a_key_go(log: CompactedLog, tmp_path: Path) -> None:
    plain = CompactedLog(tmp_path / "plain", cleanup_policy=("delete",))
    plain.produce((None, b"1"), (b"a", b"1"))
    plain.roll()
    plain.log.update_config(log.config)
    report = await plain.cleaner().clean_once()
    assert report is not None
    assert report.keyless_records == 1
    assert plain.pairs() == [(b"a", b"1")]


async def test_the_checkpoint_says_where_the_dirty_part_starts(log: CompactedLog) -> None:
    log.produce((b"a", b"1"), (b"a", b"2"))
    log.roll()
    log.produce((b"a", b"3"))
    await log.clean()
    assert read_offsets(str(log.directory / CLEANER_OFFSETS)) == {PARTITION: 2}
    assert await log.cleaner().clean_once() is None, "a new cleaner reads the checkpoint"


async def test_small_segments_are_joined(log: CompactedLog) -> None:
    for i in range(6):
        log.produce((b"k%d" % i, b"v"))
        log.roll()
    assert log.bases() == [0, 1, 2, 3, 4, 5, 6]
    await log.clean()
    assert log.bases() == [0, 6]
    assert log.offsets() == [0, 1, 2, 3, 4, 5]


async def test_joined_segments_do_not_outgrow_the_limit(tmp_path: Path) -> None:
    log = CompactedLog(tmp_path / "data", internal_segment_bytes=250)
    for i in range(6):
        log.produce((b"k%d" % i, b"v" * 30))
    assert log.bases() == [0, 2, 4]
    log.roll()
    await log.clean()
    assert log.bases() == [0, 2, 4, 6]
    assert all(segment.size <= 250 for segment in log.log.segments)


async def test_a_tombstone_goes_after_its_horizon(log: CompactedLog) -> None:
    log.produce((b"a", b"1"), (b"b", b"1"))
    log.produce((b"a", None))
    log.roll()
    await log.clean()
    assert log.pairs() == [(b"b", b"1"), (b"a", None)]
    (header, _) = log.batches()[1]
    assert header.delete_horizon_ms == log.clock.now_ms() + DAY_MS
    log.produce((b"c", b"1"))
    log.roll()
    log.clock.move(DAY_MS / 1000 - 1)
    await log.clean()
    assert (b"a", None) in log.pairs()
    log.produce((b"d", b"1"))
    log.roll()
    log.clock.move(1)
    await log.clean()
    assert log.pairs() == [(b"b", b"1"), (b"c", b"1"), (b"d", b"1")]


async def test_tombstones_may_stay_for_ever(tmp_path: Path) -> None:
    log = CompactedLog(tmp_path / "data", delete_retention_ms=INT64_MAX)
    log.produce((b"a", b"1"), (b"b", b"1"))
    log.produce((b"a", None))
    before = log.records()
    log.roll()
    await log.clean()
    assert log.records() == before[1:]
    assert log.batches()[1][0].delete_horizon_ms == INT64_MAX


async def test_timestamps_beyond_64_bits_are_no_obstacle(tmp_path: Path, log: CompactedLog) -> None:
    plain = CompactedLog(tmp_path / "plain", cleanup_policy=("delete",))  # which does not look at the records
    batch = build_batch([Record(i, i, key, b"1") for i, key in enumerate((b"a", b"b", b"a"))])
    pack_into(">q", batch, 27, INT64_MAX - 1)
    renew_crc(batch, 0)
    plain.append(batch)
    plain.roll()
    plain.log.update_config(log.config)
    await plain.clean()
    assert [(record.offset, record.timestamp) for record in plain.records()] == [(1, INT64_MAX), (2, -INT64_MAX - 1)]


async def test_the_timestamps_of_a_batch_with_a_horizon_stay(log: CompactedLog) -> None:
    log.produce((b"a", None), (b"b", b"1"), (b"c", b"1"))
    before = log.records()
    log.roll()
    await log.clean()
    assert log.records() == before
    assert log.batches()[0][0].max_timestamp == before[-1].timestamp


async def test_the_end_of_the_cleaned_part_is_remembered(log: CompactedLog) -> None:
    log.produce((b"a", b"1"))
    log.produce((b"a", b"2"))
    log.roll()
    log.produce((b"a", b"3"))
    log.roll()
    log.produce((b"b", b"1"))
    await log.clean()
    assert [(header.base_offset, header.record_count) for header, _ in log.batches()] == [(2, 1), (3, 1)]
    log.log.delete_records(2)


async def test_an_idempotent_producer_keeps_its_sequence(log: CompactedLog) -> None:
    log.produce((b"a", b"1"), (b"a", b"2"), producer_id=7, producer_epoch=0, base_sequence=0)
    log.produce((b"a", b"3"))
    log.roll()
    await log.clean()
    header, records = log.batches()[0]
    assert (header.producer_id, header.last_sequence, header.record_count, records) == (7, 1, 0, [])
    log.reload()
    with pytest.raises(OutOfOrderSequence):
        log.produce((b"a", b"4"), producer_id=7, producer_epoch=0, base_sequence=5)
    log.produce((b"a", b"4"), producer_id=7, producer_epoch=0, base_sequence=2)


async def test_a_forgotten_producer_leaves_nothing_behind(log: CompactedLog) -> None:
    log.produce((b"a", b"1"), producer_id=7, producer_epoch=0, base_sequence=0)
    log.produce((b"a", b"2"))
    log.roll()
    log.clock.move(2 * DAY_MS / 1000)
    log.log.producers.remove_expired(log.clock.now_ms())
    await log.clean()
    assert [header.producer_id for header, _ in log.batches()] == [-1]


async def test_aborted_records_go_and_committed_ones_stay(log: CompactedLog) -> None:
    log.produce((b"a", b"committed"))
    log.produce((b"a", b"aborted"), producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    log.produce((b"b", b"committed"), producer_id=2, producer_epoch=0, base_sequence=0, is_transactional=True)
    log.end_transaction(1, commit=False)
    log.end_transaction(2, commit=True)
    log.roll()
    await log.clean()
    assert log.pairs() == [(b"a", b"committed"), (b"b", b"committed")]
    assert [txn.producer_id for txn in log.log.segments.first.txn_index] == [1]


async def test_an_abort_whose_marker_is_in_a_later_segment(log: CompactedLog) -> None:
    log.produce((b"a", b"old"))
    log.produce((b"a", b"aborted"), producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    log.roll()
    log.end_transaction(1, commit=False)
    await log.clean()
    assert log.pairs() == [(b"a", b"old")]


async def test_nothing_above_an_open_transaction_is_cleaned(log: CompactedLog) -> None:
    log.produce((b"a", b"1"), producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    log.produce((b"b", b"1"), (b"b", b"2"))
    log.roll()
    log.produce((b"c", b"1"))
    assert await log.cleaner().clean_once() is None
    log.end_transaction(1, commit=True)
    await log.clean()
    assert log.pairs() == [(b"a", b"1"), (b"b", b"2"), (b"c", b"1")]


async def test_a_marker_goes_after_its_records_and_its_horizon(log: CompactedLog) -> None:
    for value in (b"1", b"2"):
        sequence = int(value) - 1
        log.produce((b"a", value), producer_id=1, producer_epoch=0, base_sequence=sequence, is_transactional=True)
        log.end_transaction(1, commit=True)
    log.produce((b"z", b"z"))

    async def clean_again() -> list[tuple[int, bool]]:
        log.roll()
        await log.clean()
        log.produce((b"z", b"z"))
        return [(header.base_offset, header.delete_horizon_ms is not None) for header, _ in log.batches()[:-1]]

    # The records of offset 0 go first; their marker gets a horizon in the pass after, and goes in a later one.
    assert (1, False) in await clean_again()
    assert (1, True) in await clean_again()
    log.clock.move(DAY_MS / 1000)
    assert 1 not in [offset for offset, _ in await clean_again()]
    assert 3 in [header.base_offset for header, _ in log.batches()], "its record is still there"


async def test_the_log_is_cleaned_in_several_passes_if_the_keys_do_not_fit(log: CompactedLog) -> None:
    for round_ in range(2):
        for i in range(40):
            log.produce((b"key-%d" % i, b"%d" % round_))
    log.roll()
    cleaner = log.cleaner(log_cleaner_dedupe_buffer_size=1500)
    ends = []
    while report := await cleaner.clean_once():
        ends.append(report.end_offset)
    assert len(ends) > 3
    assert ends == sorted(ends)
    assert ends[-1] == 80
    assert log.pairs() == [(b"key-%d" % i, b"1") for i in range(40)]


async def test_long_keys_do_not_collide_with_short_ones(log: CompactedLog) -> None:
    log.produce((b"x" * 100, b"1"), (b"x" * 101, b"1"), (b"x" * 32, b"1"), (b"x" * 33, b"1"), (b"", b"1"))
    log.produce((b"x" * 100, b"2"), (b"", b"2"))
    log.roll()
    await log.clean()
    assert log.offsets() == [1, 2, 3, 5, 6]


async def test_young_records_are_left_alone(tmp_path: Path) -> None:
    log = CompactedLog(tmp_path / "data", min_compaction_lag_ms=10_000)
    log.produce((b"a", b"1"), (b"a", b"2"))
    log.roll()
    log.clock.move(6)
    log.produce((b"b", b"1"), (b"b", b"2"))
    log.roll()
    assert await log.cleaner().clean_once() is None
    log.clock.move(6)
    await log.clean()
    assert log.pairs() == [(b"a", b"2"), (b"b", b"1"), (b"b", b"2")]
    log.clock.move(6)
    await log.clean()
    assert log.pairs() == [(b"a", b"2"), (b"b", b"2")]


async def test_old_records_are_cleaned_whatever_the_ratio(tmp_path: Path) -> None:
    log = CompactedLog(tmp_path / "data", min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=10_000)
    log.produce((b"a", b"1"), (b"a", b"2"))
    log.roll()
    log.clock.move(5)
    cleaner = log.cleaner()
    assert await cleaner.clean_once() is None
    log.clock.move(6)
    assert await cleaner.clean_once() is not None
    assert cleaner.status().max_compaction_delay_ms == 999
    assert log.pairs() == [(b"a", b"2")]


async def test_the_dirtiest_log_comes_first(tmp_path: Path) -> None:
    first = CompactedLog(tmp_path / "first", min_cleanable_dirty_ratio=0.5)
    second = CompactedLog(tmp_path / "second", first.clock, min_cleanable_dirty_ratio=0.5)
    for log in (first, second):
        log.produce(*((b"%d" % i, b"v") for i in range(50)))
        log.roll()
    cleaner = cleaner_of([first, second])
    assert await cleaner.clean_once() is not None
    assert await cleaner.clean_once() is not None
    assert await cleaner.clean_once() is None
    for log, count in ((first, 10), (second, 200)):
        log.produce(*((b"%d" % i, b"v") for i in range(count)))
        log.roll()
    assert await cleaner.clean_once() is not None
    assert (len(first.records()), len(second.records())) == (60, 200)
    assert await cleaner.clean_once() is None, "the other one is not dirty enough"
    assert 0 < cleaner.status().max_dirty_ratio < 0.5


async def test_a_log_that_is_not_compacted_is_left_alone(tmp_path: Path) -> None:
    log = CompactedLog(tmp_path / "data", cleanup_policy=("delete",))
    log.produce((b"a", b"1"), (b"a", b"2"))
    log.roll()
    assert await log.cleaner().clean_once() is None


async def test_retention_and_compaction_together(tmp_path: Path) -> None:
    log = CompactedLog(
        tmp_path / "data", cleanup_policy=("compact", "delete"), retention_ms=10_000, internal_segment_bytes=80
    )
    log.produce((b"a", b"1"))
    log.clock.move(8)
    log.produce((b"b", b"1"))
    log.produce((b"b", b"2"))
    log.roll()
    await log.clean()
    log.clock.move(5)
    log.log.retention.delete_old_segments(log.clock.now_ms())
    log.produce((b"c", b"1"))
    log.roll()
    await log.clean()
    assert log.pairs() == [(b"b", b"2"), (b"c", b"1")]
    assert log.log.log_start_offset == 1


async def test_a_checkpoint_beyond_the_end_is_not_believed(log: CompactedLog) -> None:
    log.produce((b"a", b"1"), (b"a", b"2"))
    log.roll()
    (log.directory / CLEANER_OFFSETS).write_text(f"0\n1\n{PARTITION.topic} 0 99\n")
    await log.clean()
    assert log.pairs() == [(b"a", b"2")]


async def test_a_damaged_checkpoint_costs_only_a_pass(log: CompactedLog) -> None:
    log.produce((b"a", b"1"), (b"a", b"2"))
    log.roll()
    (log.directory / CLEANER_OFFSETS).write_text("7\nnonsense\n")
    await log.clean()
    assert read_offsets(str(log.directory / CLEANER_OFFSETS)) == {PARTITION: 2}


async def test_a_log_that_is_gone_leaves_the_checkpoint(tmp_path: Path) -> None:
    data = tmp_path / "data"
    log = CompactedLog(data)
    (data / CLEANER_OFFSETS).write_text("0\n1\ngone 3 5\n")
    log.produce((b"a", b"1"), (b"a", b"2"))
    log.roll()
    await log.clean()
    assert read_offsets(str(data / CLEANER_OFFSETS)) == {PARTITION: 2}


async def test_a_damaged_log_is_left_alone(log: CompactedLog) -> None:
    log.produce((b"a", b"1"), (b"a", b"2"))
    log.roll()
    size = log.log.segments.first.size
    log.log.segments.first.file.write(b"!", size - 1)
    before = log.first_file()
    cleaner = log.cleaner()
    assert await cleaner.clean_once() is not None
    assert cleaner.status().uncleanable == {PARTITION}
    assert await cleaner.clean_once() is None
    assert log.first_file() == before
    assert not log.files_ending_in(".cleaned")


async def test_status(log: CompactedLog) -> None:
    cleaner = log.cleaner()
    assert cleaner.status().last_run_ms == -1
    assert cleaner.status().recopy_ratio == 0.0
    log.produce((b"a", b"1"), (b"a", b"2"))
    log.roll()
    report = await cleaner.clean_once()
    assert report is not None
    status = cleaner.status()
    assert (status.passes, status.records_read, status.records_kept) == (1, 2, 1)
    assert (status.bytes_read, status.bytes_written) == (report.bytes_read, report.bytes_written)
    assert 0 < status.recopy_ratio < 1
    assert status.last_run_ms == log.clock.now_ms()
    assert (status.is_running, status.cleaning) == (False, None)
    await cleaner.close()


async def test_what_compaction_swaps_in_can_be_read_and_loaded(log: CompactedLog) -> None:
    for i in range(60):
        log.produce((b"key-%d" % (i % 7), b"v" * 50))
    log.roll()
    await log.clean()
    records = log.records()
    assert len(records) == 7
    first = log.log.segments.first
    assert first.offset_index.is_sane()
    for offset, position in first.offset_index.entries:
        assert next((at, header.last_offset) for at, header in first.headers(position)) == (position, offset)
    log.reload(is_clean=True)
    assert log.records() == records
    log.reload()
    assert log.records() == records
