"""Log directories that a killed Kafka left, with and without further damage: we recover what Kafka recovered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strandline.clock import SystemChance
from strandline.config.log import LogSettings
from strandline.config.topic import TopicConfig
from strandline.log import LogManager, UnifiedLog
from strandline.model import TopicPartition
from strandline.testing.clock import VirtualClock
from tests.golden import copy_of, read_json
from tests.log.harness import headers_in

RUN_TIME = 1_794_770_100_000
VARIANTS = [
    "sigkill", "cut-mid-batch", "cut-mid-header", "flipped-byte", "zero-tail", "garbage-tail", "lost-indexes",
]  # fmt: skip
INDEX_INTERVALS = {"fx-unclean": 2048, "fx-unclean-txn": 1024}


def config_of(topic: str) -> TopicConfig:
    return TopicConfig(index_interval_bytes=INDEX_INTERVALS.get(topic, 4096), internal_segment_bytes=65536)


def recovered(kafka_unclean: Path, variant: str, tmp_path: Path) -> LogManager:
    directory = copy_of(kafka_unclean / "unclean" / variant, tmp_path / variant)
    manager = LogManager(
        LogSettings(log_dirs=(str(directory),)), node_id=1, clock=VirtualClock(RUN_TIME), chance=SystemChance(1)
    )
    manager.load(config_of)
    return manager


def log_of(manager: LogManager, name: str) -> UnifiedLog:
    topic, _, partition = name.rpartition("-")
    log = manager.get(TopicPartition(topic, int(partition)))
    assert log is not None
    return log


def assert_segments(log: UnifiedLog, wanted: list[Any]) -> None:
    assert log.segments.bases == [segment["base_offset"] for segment in wanted]
    for segment, expected in zip(log.segments, wanted, strict=True):
        assert segment.size == expected["size"]
        assert Path(segment.file.path).stat().st_size == expected["size"]
        assert [list(entry) for entry in segment.offset_index.entries] == expected["offset_index"]
        assert [list(entry) for entry in segment.time_index.entries] == expected["time_index"]
        transactions = [entry._asdict() for entry in segment.txn_index]
        assert transactions == [
            {key: value for key, value in entry.items() if key != "version"} for entry in expected.get("txn_index", [])
        ]
        assert [header.crc for _, header in segment.headers()] == [batch["crc"] for batch in expected["batches"]]


@pytest.mark.parametrize("variant", VARIANTS)
def test_recovery_ends_where_kafkas_did(kafka_unclean: Path, tmp_path: Path, variant: str) -> None:
    summary = read_json(kafka_unclean / "expected/unclean/summary.json")["variants"][variant]
    manager = recovered(kafka_unclean, variant, tmp_path)
    ends = summary["log_end_offset_after_recovery"]
    assert {name: log_of(manager, name).log_end_offset for name in ends} == ends
    for name, checkpoint in summary["leader_epoch_checkpoint_after"].items():
        log = log_of(manager, name)
        entries = [tuple(map(int, line.split())) for line in checkpoint.splitlines()[2:]]
        # Kafka has begun another epoch at the end of the log since.
        assert list(log.epochs.entries) == entries[:-1]
        assert entries[-1][1] == log.log_end_offset
    manager.shutdown()


@pytest.mark.parametrize("variant", VARIANTS)
def test_recovered_files_say_what_kafkas_say(kafka_unclean: Path, tmp_path: Path, variant: str) -> None:
    manager = recovered(kafka_unclean, variant, tmp_path)
    descriptions = sorted((kafka_unclean / "expected/unclean" / variant / "recovered").glob("fx-*.json"))
    assert descriptions
    for path in descriptions:
        description = read_json(path)
        log = log_of(manager, path.stem)
        live = [segment for segment in description["segments"] if segment["file"].endswith(".log")]
        assert_segments(log, live)
        offsets = [header.base_offset for header in headers_in(log)]
        assert offsets == [batch["base_offset"] for segment in live for batch in segment["batches"]]
    manager.shutdown()


@pytest.mark.parametrize("variant", VARIANTS)
def test_producers_are_those_kafka_remembers(kafka_unclean: Path, tmp_path: Path, variant: str) -> None:
    manager = recovered(kafka_unclean, variant, tmp_path)
    for name, wanted in read_json(kafka_unclean / "expected/unclean" / variant / "producers.json").items():
        found = [
            {
                "producer_id": producer.producer_id,
                "producer_epoch": producer.producer_epoch,
                "last_sequence": producer.last_sequence,
                "last_timestamp": producer.last_timestamp,
            }
            for producer in sorted(log_of(manager, name).active_producers())
        ]
        assert found == [{key: entry[key] for key in found[0]} if found else entry for entry in wanted], name
    manager.shutdown()


def test_a_recovered_directory_needs_no_second_recovery(kafka_unclean: Path, tmp_path: Path) -> None:
    manager = recovered(kafka_unclean, "garbage-tail", tmp_path)
    before = {log.topic_partition: log.log_end_offset for log in manager.all_logs()}
    manager.shutdown()
    again = LogManager(
        LogSettings(log_dirs=(str(tmp_path / "garbage-tail"),)),
        node_id=1,
        clock=VirtualClock(RUN_TIME),
        chance=SystemChance(1),
    )
    again.load(config_of)
    assert again.storages[0].last_broker_epoch is not None
    assert {log.topic_partition: log.log_end_offset for log in again.all_logs()} == before
    again.shutdown()
