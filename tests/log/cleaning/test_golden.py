"""The compacted topics that Kafka's own cleaner left: cleaning them again changes only what it may change."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from strandline.clock import SystemChance
from strandline.config.log import LogSettings
from strandline.config.topic import TopicConfig
from strandline.log import LoadedOffsets, LogDirectory, LogEnvironment, UnifiedLog, load_log
from strandline.log.checkpoints import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_START_OFFSETS, read_offsets
from strandline.log.cleaning.cleaner import LogCleaner
from strandline.model import TopicPartition
from strandline.records import BatchHeader, Record, read_records
from strandline.testing.clock import VirtualClock
from tests.golden import copy_of, read_json
from tests.golden import kafka_classic as kafka_classic
from tests.log.cleaning.support import InlineWorker

TOPICS = ["fx-compact", "fx-compact-fast", "fx-compact-txn", "fx-compact-delete"]
AFTER_THE_RUN_MS = 1_794_771_500_000
YEAR_S = 365 * 86_400


class GoldenLog:
    """A copy of one partition that Kafka wrote, opened by us."""

    def __init__(self, golden: Path, copy: Path, topic: str) -> None:
        self.partition = TopicPartition(topic, 0)
        directory = copy
        copy_of(golden / "classic" / str(self.partition), directory / str(self.partition))
        for checkpoint in (HIGH_WATERMARKS, LOG_START_OFFSETS, CLEANER_OFFSETS):
            shutil.copyfile(golden / "classic" / checkpoint, directory / checkpoint)
        overrides = read_json(golden / "expected/classic/topics.json")[topic]["configs"]
        self.clock = VirtualClock(AFTER_THE_RUN_MS)
        watermarks = read_offsets(str(directory / HIGH_WATERMARKS))
        starts = read_offsets(str(directory / LOG_START_OFFSETS))
        self.first_dirty = read_offsets(str(directory / CLEANER_OFFSETS))[self.partition]
        self.log: UnifiedLog = load_log(
            self.partition,
            str(directory / str(self.partition)),
            _config(overrides),
            LogEnvironment(directory=LogDirectory(str(directory)), clock=self.clock, chance=SystemChance(0)),
            offsets=LoadedOffsets(
                recovery_point=watermarks[self.partition],
                log_start=starts.get(self.partition, 0),
                high_watermark=watermarks[self.partition],
            ),
            is_clean=True,
        )

    def batches(self) -> list[tuple[BatchHeader, list[Record]]]:
        return [
            (header, read_records(bytes(batch)))
            for segment in self.log.segments
            for _, header, batch in segment.batches()
        ]

    def records(self) -> list[Record]:
        return [record for header, records in self.batches() if not header.is_control for record in records]

    def horizons_of_tombstones(self) -> list[int | None]:
        """The delete horizon of each batch with a tombstone, the active segment aside."""
        end = self.log.segments.active.base_offset
        return [
            header.delete_horizon_ms
            for header, records in self.batches()
            if header.base_offset < end and any(record.value is None for record in records)
        ]

    def forget_checkpoint(self) -> None:
        (Path(self.log.env.directory.path) / CLEANER_OFFSETS).unlink()

    async def clean(self) -> None:
        cleaner = LogCleaner(LogSettings(), lambda: [self.log], self.clock, InlineWorker())
        while report := await cleaner.clean_once():
            assert report.is_complete
            assert not cleaner.status().uncleanable


def _config(overrides: dict[str, str]) -> TopicConfig:
    return TopicConfig(
        cleanup_policy=tuple(overrides["cleanup.policy"].split(",")),
        min_cleanable_dirty_ratio=0.0,
        delete_retention_ms=int(overrides.get("delete.retention.ms", 86_400_000)),
        internal_segment_bytes=int(overrides.get("internal.segment.bytes", 1 << 30)),
        index_interval_bytes=int(overrides.get("index.interval.bytes", 4096)),
    )


@pytest.fixture(params=TOPICS)
def golden(request: pytest.FixtureRequest, kafka_classic: Path, tmp_path: Path) -> GoldenLog:
    return GoldenLog(kafka_classic, tmp_path / "data", request.param)


async def test_the_clean_part_stays_as_kafka_left_it(golden: GoldenLog) -> None:
    before = golden.records()
    end = golden.log.log_end_offset
    golden.forget_checkpoint()
    await golden.clean()
    after = golden.records()
    assert golden.log.log_end_offset == end
    assert set(after) <= set(before), "no record is invented or changed"
    newest = {record.key: record.offset for record in before}
    gone = set(before) - set(after)
    assert all(record.offset < newest[record.key] or record.value is None for record in gone)
    cleanable = golden.log.segments.active.base_offset
    kept = [record.key for record in after if record.offset < cleanable]
    assert len(kept) == len(set(kept))


async def test_cleaning_twice_changes_nothing(golden: GoldenLog) -> None:
    golden.forget_checkpoint()
    await golden.clean()
    batches = golden.batches()
    golden.forget_checkpoint()
    await golden.clean()
    assert golden.batches() == batches


async def test_tombstones_go_in_time(golden: GoldenLog) -> None:
    for _ in range(2):
        golden.clock.move(YEAR_S)
        golden.log.producers.remove_expired(golden.clock.now_ms())
        golden.forget_checkpoint()
        await golden.clean()
        for horizon in golden.horizons_of_tombstones():
            assert horizon is not None
            assert horizon > golden.clock.now_ms(), "what had its horizon before is gone"
    assert golden.horizons_of_tombstones() == []
