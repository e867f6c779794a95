"""Log directories that Apache Kafka 4.3.1 wrote: we see in them what Kafka sees."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strandline.clock import SystemChance
from strandline.config.log import LogSettings
from strandline.config.topic import TopicConfig
from strandline.log import LogManager, UnifiedLog
from strandline.log.producer_snapshot import format_snapshot, parse_snapshot
from strandline.reads import FetchIsolation
from strandline.records.batch import iter_headers
from strandline.records.record import read_records
from strandline.testing.clock import VirtualClock
from tests.golden import copy_of, read_json
from tests.log.harness import headers_in

RUN_TIME = 1_794_771_100_000
ISOLATIONS = {
    "read_uncommitted": FetchIsolation.HIGH_WATERMARK,
    "read_committed": FetchIsolation.TXN_COMMITTED,
}


def managed(directory: Path) -> LogManager:
    manager = LogManager(
        LogSettings(log_dirs=(str(directory),)), node_id=1, clock=VirtualClock(RUN_TIME), chance=SystemChance(1)
    )
    manager.load(lambda topic: TopicConfig())
    return manager


@pytest.fixture(scope="module")
def manager(kafka_classic: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogManager]:
    """A manager of a copy of the whole directory, `__cluster_metadata-0` included. Only for reading."""
    manager = managed(copy_of(kafka_classic / "classic", tmp_path_factory.mktemp("log") / "classic"))
    yield manager
    manager.shutdown()


def expected(kafka_classic: Path, name: str) -> Any:
    return read_json(kafka_classic / "expected" / "classic" / name)


def expected_records(kafka_classic: Path, log: UnifiedLog) -> Any:
    return expected(kafka_classic, f"records/{log.topic_partition}.json")


def live_segments(description: Any) -> list[Any]:
    return [segment for segment in description["segments"] if segment["file"].endswith(".log")]


def test_every_partition_but_kafkas_own_metadata_log_is_served(manager: LogManager, kafka_classic: Path) -> None:
    names = {path.stem for path in (kafka_classic / "expected/classic/records").glob("*.json")}
    served = {str(log.topic_partition) for log in manager.all_logs()}
    assert served == {name for name in names if not name.startswith("__cluster_metadata") and "delete" not in name[-7:]}
    assert (manager.directories[0].path + "/__cluster_metadata-0") in {
        entry.path for entry in os.scandir(manager.directories[0].path)
    }


def test_segments_indexes_and_batches_are_those_kafka_sees(manager: LogManager, kafka_classic: Path) -> None:
    for log in manager.all_logs():
        description = live_segments(expected_records(kafka_classic, log))
        assert log.segments.bases == [segment["base_offset"] for segment in description]
        for segment, wanted in zip(log.segments, description, strict=True):
            assert segment.size == wanted["size"]
            assert [list(entry) for entry in segment.offset_index.entries] == wanted["offset_index"]
            assert [list(entry) for entry in segment.time_index.entries] == wanted["time_index"]
            assert [entry._asdict() for entry in segment.txn_index] == [
                {key: value for key, value in entry.items() if key != "version"}
                for entry in wanted.get("txn_index", [])
            ]
            assert segment.offset_index.is_sane()
            assert segment.time_index.is_sane()
            found = [(position, header.base_offset, header.crc) for position, header in segment.headers()]
            assert found == [(b["position"], b["base_offset"], b["crc"]) for b in wanted["batches"]]


def test_a_reader_gets_every_batch_from_the_log_start_on(manager: LogManager, kafka_classic: Path) -> None:
    for log in manager.all_logs():
        wanted = [
            batch["base_offset"]
            for segment in live_segments(expected_records(kafka_classic, log))
            for batch in segment["batches"]
            if batch["last_offset"] >= log.log_start_offset
        ]
        assert [header.base_offset for header in headers_in(log)] == wanted


def test_every_offset_is_found_in_the_batch_that_holds_it(manager: LogManager) -> None:
    for log in manager.all_logs():
        headers = headers_in(log)
        for offset in range(log.log_start_offset, log.log_end_offset):
            wanted = next((h.base_offset for h in headers if h.last_offset >= offset), None)
            records = log.read(offset, 1, isolation=FetchIsolation.LOG_END).records
            if wanted is None:  # compaction left nothing behind this offset
                assert records is None
            else:
                assert records is not None
                assert next(iter_headers(records.read()))[1].base_offset == wanted


def test_snapshots_are_read_and_written_byte_for_byte(kafka_classic: Path) -> None:
    paths = sorted((kafka_classic / "classic").glob("*/*.snapshot*"))
    assert len(paths) >= 90
    for path in paths:
        content = path.read_bytes()
        entries = parse_snapshot(content)
        assert format_snapshot(reversed(entries)) == content
        wanted = expected(kafka_classic, f"records/{path.parent.name}.json")["producer_snapshots"].get(path.name)
        if wanted is not None:
            assert [e.producer_id for e in entries] == [w["producer_id"] for w in wanted]
            assert [e.last_sequence for e in entries] == [w["last_sequence"] for w in wanted]
            assert [e.last_offset for e in entries] == [w["last_offset"] for w in wanted]


def test_ends_of_the_log_are_those_kafka_answers(manager: LogManager, kafka_classic: Path) -> None:
    offsets = expected(kafka_classic, "list_offsets.json")
    for log in manager.all_logs():
        answers = offsets[str(log.topic_partition)]
        assert log.log_start_offset == answers["read_uncommitted"]["-2 earliest"]["offset"]
        assert log.high_watermark == answers["read_uncommitted"]["-1 latest"]["offset"]
        assert log.last_stable_offset == answers["read_committed"]["-1 latest"]["offset"]


def test_offsets_by_time_are_those_kafka_answers(manager: LogManager, kafka_classic: Path) -> None:
    offsets = expected(kafka_classic, "list_offsets.json")
    compared = 0
    for log in manager.all_logs():
        for isolation, answers in offsets[str(log.topic_partition)].items():
            last_fetchable = (
                log.high_watermark if ISOLATIONS[isolation] is FetchIsolation.HIGH_WATERMARK else log.last_stable_offset
            )
            for question, answer in answers.items():
                if question == "-3 max_timestamp":
                    found = log.offset_of_max_timestamp()
                elif question.isdigit():
                    found = log.offset_by_timestamp(int(question))
                else:
                    continue
                if found is not None and found.offset >= last_fetchable:
                    found = None
                got = (found.offset, found.timestamp, found.leader_epoch) if found else (-1, -1, None)
                assert got == (answer["offset"], answer["timestamp"], answer["leader_epoch"]), (log, question)
                compared += 1
    assert compared > 800


def test_epochs_are_those_of_the_checkpoints(manager: LogManager, kafka_classic: Path) -> None:
    for log in manager.all_logs():
        path = kafka_classic / "classic" / str(log.topic_partition) / "leader-epoch-checkpoint"
        lines = path.read_text().splitlines()[2:]
        entries = [tuple(map(int, line.split())) for line in lines]
        # The last restart began an epoch that has no record; such an entry does not outlive a start.
        assert list(log.epochs.entries) == [entry for entry in entries if entry[1] < log.log_end_offset]


def test_aborted_transactions_hide_what_a_consumer_did_not_get(manager: LogManager, kafka_classic: Path) -> None:
    visible = expected(kafka_classic, "visible_offsets.json")
    for log in manager.all_logs():
        ranges = visible.get(str(log.topic_partition), {}).get("read_committed")
        if ranges is None:
            continue
        wanted = [offset for first, last in ranges["offsets"] for offset in range(first, last + 1)]
        assert committed_offsets(log) == wanted, log


def committed_offsets(log: UnifiedLog) -> list[int]:
    """What a read_committed consumer passes on: no control records, nothing between an abort's begin and marker."""
    offsets: list[int] = []
    offset = log.log_start_offset
    while True:
        result = log.read(offset, 700, isolation=FetchIsolation.TXN_COMMITTED)
        if result.records is None:
            return offsets
        data = result.records.read()
        assert result.aborted_transactions is not None
        begins = sorted((txn.first_offset, txn.producer_id) for txn in result.aborted_transactions)
        aborted: set[int] = set()
        for position, header in iter_headers(data):
            while begins and begins[0][0] <= header.last_offset:
                aborted.add(begins.pop(0)[1])
            if header.is_control:
                aborted.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborted):
                records = read_records(data[position : position + header.size])
                offsets += [record.offset for record in records if record.offset >= offset]
            next_offset = header.next_offset
        offset = next_offset


def test_a_clean_stop_leaves_the_same_files(kafka_classic: Path, tmp_path: Path) -> None:
    manager = managed(copy_of(kafka_classic / "classic", tmp_path / "classic"))
    manager.shutdown()
    root = Path(manager.directories[0].path)
    for log in manager.all_logs():
        kept = {path.name for path in (root / str(log.topic_partition)).iterdir()}
        for path in (kafka_classic / "classic" / str(log.topic_partition)).iterdir():
            if path.name.endswith(".deleted") or path.name not in kept:
                # Waiting for deletion, or a snapshot of an earlier stop that belongs to no segment.
                assert path.name.endswith((".deleted", ".snapshot")), path
            else:
                assert (root / str(log.topic_partition) / path.name).read_bytes() == path.read_bytes(), path
