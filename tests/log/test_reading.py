"""Reading: isolation, sizes, times, and files that go away meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from strandline.config.topic import TopicConfig
from strandline.errors import OffsetOutOfRange
from strandline.log import FileSlice
from strandline.reads import FetchIsolation
from strandline.records.batch import iter_headers
from strandline.records.builder import build_batch
from strandline.records.codecs import Codec
from strandline.records.record import Record
from tests.log.harness import NOW, LogHarness, batch, offsets_in
from tests.waiting import wait_until

SIZE = len(batch())


@pytest.fixture
def rolled(tmp_path: Path) -> LogHarness:
    """Ten batches of one record in segments of three."""
    harness = LogHarness(tmp_path / "data", TopicConfig(internal_segment_bytes=3 * SIZE, index_interval_bytes=0))
    harness.create()
    for step in range(10):
        harness.append(batch(timestamp=NOW + step))
    return harness


def read_offsets(harness: LogHarness, offset: int, max_bytes: int, *, min_one_message: bool = True) -> list[int]:
    records = harness.log.read(offset, max_bytes, min_one_message=min_one_message).records
    return [] if records is None else [header.base_offset for _, header in iter_headers(records.read())]


def is_closed(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return True
    return False


class TestBounds:
    def test_offsets_outside_the_log_are_refused(self, rolled: LogHarness) -> None:
        rolled.log.delete_records(2)
        for offset in (-1, 1, 11):
            with pytest.raises(OffsetOutOfRange):
                rolled.log.read(offset, 100)

    def test_at_the_end_there_is_nothing(self, rolled: LogHarness) -> None:
        result = rolled.log.read(10, 100)
        assert result.records is None
        assert (result.high_watermark, rolled.log.log_end_offset, result.log_start_offset) == (10, 10, 0)

    @pytest.mark.parametrize("watermark", [0, 2, 3, 7, 9, 10])
    def test_consumers_stop_at_the_high_watermark(self, tmp_path: Path, watermark: int) -> None:
        harness = LogHarness(tmp_path, TopicConfig(internal_segment_bytes=3 * SIZE))
        log = harness.create()
        for _ in range(10):
            log.append(batch(), leader_epoch=0)
        log.update_high_watermark(watermark)
        assert offsets_in(log, isolation=FetchIsolation.HIGH_WATERMARK) == list(range(watermark))
        assert offsets_in(log, isolation=FetchIsolation.LOG_END) == list(range(10))
        assert log.available_bytes(0) == watermark * SIZE
        assert log.available_bytes(0, FetchIsolation.LOG_END) == 10 * SIZE
        assert log.read(10, 1000).records is None

    def test_the_high_watermark_stays_within_the_log(self, rolled: LogHarness) -> None:
        log = rolled.log
        assert not log.update_high_watermark(99)
        assert log.high_watermark == 10
        log.delete_records(4)
        assert log.update_high_watermark(1)
        assert log.high_watermark == 4


class TestSizes:
    def test_a_read_ends_at_the_size_asked_for(self, rolled: LogHarness) -> None:
        assert read_offsets(rolled, 0, 2 * SIZE) == [0, 1]
        assert read_offsets(rolled, 0, 2 * SIZE + 5) == [0, 1]
        records = rolled.log.read(0, 2 * SIZE + 5).records
        assert records is not None
        assert records.length == 2 * SIZE, "the reader would throw the part of a batch away and ask for it again"

    def test_where_the_index_knows_no_batch_a_part_of_one_may_come(self, tmp_path: Path) -> None:
        harness = LogHarness(tmp_path / "data", TopicConfig(index_interval_bytes=1 << 20))
        harness.create()
        for _ in range(4):
            harness.append(batch())
        records = harness.log.read(0, 2 * SIZE + 5).records
        assert records is not None
        assert records.length == 2 * SIZE + 5

    def test_a_read_stays_within_a_segment(self, rolled: LogHarness) -> None:
        assert read_offsets(rolled, 1, 1 << 20) == [1, 2]
        assert read_offsets(rolled, 9, 1 << 20) == [9]

    def test_the_first_batch_comes_whole_if_asked_for(self, rolled: LogHarness) -> None:
        assert read_offsets(rolled, 4, 1) == [4]
        assert rolled.log.read(4, SIZE - 1, min_one_message=False).records is None
        assert read_offsets(rolled, 4, SIZE, min_one_message=False) == [4]

    def test_nothing_is_nothing(self, rolled: LogHarness) -> None:
        assert rolled.log.read(4, 0, min_one_message=False).records is None

    def test_an_offset_inside_a_batch_gives_the_whole_batch(self, harness: LogHarness) -> None:
        """In another system a fetch that starts inside the last batch returned nothing for ever."""
        harness.append(batch(5))
        harness.append(batch(5))
        for offset in range(10):
            assert read_offsets(harness, offset, 1)[0] == offset // 5 * 5
        harness.reopen().update_high_watermark(10)
        for offset in range(10):
            assert read_offsets(harness, offset, 1)[0] == offset // 5 * 5

    def test_holes_are_stepped_over(self, tmp_path: Path) -> None:
        harness = LogHarness(tmp_path, TopicConfig(internal_segment_bytes=3 * SIZE))
        log = harness.create()
        for base in (5, 10, 20, 40, 41, 90):
            log.append_as_follower(batch(base_offset=base), leader_epoch=0)
        log.update_high_watermark(91)
        wanted = {0: 5, 5: 5, 6: 10, 11: 20, 21: 40, 40: 40, 42: 90, 90: 90}
        for reopened in (False, True):
            if reopened:
                harness.reopen().update_high_watermark(91)
            assert {offset: read_offsets(harness, offset, 1)[0] for offset in wanted} == wanted

    def test_many_batches_behind_the_tail(self, harness: LogHarness) -> None:
        """More batches than the log remembers in memory: the index takes over."""
        for _ in range(500):
            harness.append(batch())
        for offset in (0, 1, 250, 371, 372, 373, 436, 437, 498, 499):
            assert read_offsets(harness, offset, SIZE) == [offset]
            assert harness.log.available_bytes(offset) == (500 - offset) * SIZE


class TestFiles:
    def test_a_slice_outlives_its_segment(self, rolled: LogHarness) -> None:
        records = rolled.log.read(0, 1 << 20).records
        assert isinstance(records, FileSlice)
        rolled.log.delete_records(10)
        assert rolled.log.retention.delete_old_segments(rolled.clock.now_ms()) == 3
        rolled.clock.move(61)
        rolled.delete_due()
        assert not os.path.exists(records.file.path)
        assert [header.base_offset for _, header in iter_headers(records.read())] == [0, 1, 2]

    def test_the_last_reference_closes_the_file(self, rolled: LogHarness) -> None:
        records = rolled.log.read(0, 1 << 20).records
        assert isinstance(records, FileSlice)
        fd = records.file.fileno()
        rolled.log.delete_records(10)
        rolled.log.retention.delete_old_segments(rolled.clock.now_ms())
        rolled.clock.move(61)
        rolled.delete_due()
        os.fstat(fd)
        del records
        wait_until(lambda: is_closed(fd), what="a thread to close the file")

    def test_a_file_is_opened_when_it_is_needed(self, rolled: LogHarness) -> None:
        log = rolled.reopen()
        log.update_high_watermark(10)
        first = log.segments.first
        assert not first.file.is_open
        assert log.read(0, 100).records is not None
        assert first.file.is_open


class TestTimes:
    def test_the_first_record_not_older(self, rolled: LogHarness) -> None:
        assert rolled.log.offset_by_timestamp(0) == (NOW, 0, 0)
        assert rolled.log.offset_by_timestamp(NOW + 4) == (NOW + 4, 4, 0)
        assert rolled.log.offset_by_timestamp(NOW + 10) is None

    def test_records_below_the_log_start_do_not_count(self, rolled: LogHarness) -> None:
        rolled.log.delete_records(5)
        assert rolled.log.offset_by_timestamp(0) == (NOW + 5, 5, 0)

    def test_inside_a_compressed_batch(self, harness: LogHarness) -> None:
        records = [Record(i, NOW + i * 10, None, b"v") for i in range(5)]
        harness.append(memoryview(build_batch(records, codec=Codec.ZSTD)))
        assert harness.log.offset_by_timestamp(NOW + 11) == (NOW + 20, 2, 0)
        assert harness.log.offset_of_max_timestamp() == (NOW + 40, 4, 0)

    def test_the_largest_timestamp(self, rolled: LogHarness) -> None:
        assert rolled.log.offset_of_max_timestamp() == (NOW + 9, 9, 0)
        rolled.append(batch(3, timestamp=NOW + 3))
        assert rolled.log.offset_of_max_timestamp() == (NOW + 9, 9, 0)
        rolled.append(batch(3, timestamp=NOW + 30))
        assert rolled.log.offset_of_max_timestamp() == (NOW + 30, 13, 0)

    def test_an_empty_log_has_no_largest_timestamp(self, harness: LogHarness) -> None:
        assert harness.log.offset_of_max_timestamp() is None
        assert harness.log.offset_by_timestamp(0) is None
