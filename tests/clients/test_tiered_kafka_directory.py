"""Directories that a tiered Apache Kafka wrote, local and remote: we start on them and give its answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.broker import BrokerProcess, running_broker
from tests.clients.drivers import Sent
from tests.clients.test_kafka_directory import LEVELS, split, visible_records, wrong_offsets
from tests.clients.tiering import QUICK, produce, wait_tiered
from tests.golden import copy_of, kafka_tiered, matches, read_json

__all__ = ["kafka_tiered"]

TRANSACTIONS = "fx-tiered-txn"
NEW = [Sent(b"x" * 100)] * 40  # several segments
SETTINGS = {**QUICK, "node.id": "1", "offsets.topic.num.partitions": "2", "auto.create.topics.enable": "false"}


@contextmanager
def adopted(kafka_tiered: Path, home: Path) -> Iterator[BrokerProcess]:
    """A broker on copies of both directories."""
    logs = copy_of(kafka_tiered / "tiered/local", home / "data/logs")
    remote = copy_of(kafka_tiered / "tiered/remote/kafka-tiered-storage", home / "remote")
    settings = {**SETTINGS, "log.dirs": str(logs), "rsm.config.url": f"file://{remote}"}
    with running_broker(home / "data", settings) as broker:
        yield broker


@pytest.fixture(scope="module")
def own(kafka_tiered: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with adopted(kafka_tiered, tmp_path_factory.mktemp("adopted")) as broker:
        yield broker


@pytest.fixture(scope="module")
def expected(kafka_tiered: Path) -> Path:
    return kafka_tiered / "expected/tiered"


def visible_offsets(expected: Path, isolation: str) -> dict[str, list[int]]:
    """What Kafka's own consumers got, by partition."""
    return {
        name: [offset for first, last in answer[isolation]["offsets"] for offset in range(first, last + 1)]
        for name, answer in read_json(expected / "visible_offsets.json").items()
        if name.startswith("fx-")
    }


def records_of(expected: Path, name: str) -> dict[int, Any]:
    """What Kafka says is in the remote segments of a partition, by offset."""
    files = sorted((expected / "remote_records").glob(f"{name}*.json"))
    segments = [segment for file in files for segment in read_json(file)["segments"]]
    return {record["offset"]: record for one in segments for batch in one["batches"] for record in batch["records"]}


@pytest.mark.parametrize("isolation", LEVELS)
def test_consumers_see_what_kafkas_consumers_saw(own: BrokerProcess, expected: Path, isolation: str) -> None:
    wanted = visible_offsets(expected, isolation)
    found = visible_records(own, list(wanted), isolation)
    assert {name: [message.offset() for message in found[name]] for name in wanted} == wanted
    compared = 0
    for name in wanted:
        records = records_of(expected, name)
        for message in found[name]:
            record = records.get(message.offset() or 0)
            if record is not None:
                assert matches(message.key(), record["key"]), name
                assert matches(message.value(), record["value"]), name
                compared += 1
    assert compared > 1000


def test_offsets_by_time_are_kafkas(own: BrokerProcess, expected: Path) -> None:
    answers = read_json(expected / "list_offsets.json")
    stays = (" earliest", " latest", " max_timestamp")  # the other special ones move while segments are copied
    own_answers = {name: answers[name] for name in visible_offsets(expected, LEVELS[0])}
    assert list(wrong_offsets(own, own_answers, is_asked=lambda a: not a.startswith("-") or a.endswith(stays))) == []


def test_aborted_transactions_stay_aborted_when_kafkas_local_segments_are_copied_by_us(
    kafka_tiered: Path, expected: Path, tmp_path: Path
) -> None:
    """Kafka copied the older ones, we copy the rest; then nothing of Kafka's is on the disk."""
    ends = {name: offsets["read_uncommitted"]["end"] for name, offsets in _txn_partitions(expected)}
    with adopted(kafka_tiered, tmp_path) as broker:
        for name, end in ends.items():
            offsets = produce(broker, TRANSACTIONS, NEW, partition=split(name)[1])
            assert offsets == list(range(end, end + len(NEW)))
        for name, end in ends.items():
            assert wait_tiered(broker, *split(name)) >= end
        broker.kill()
        broker.start()
        for isolation in LEVELS:
            found = visible_records(broker, list(ends), isolation)
            for name, end in ends.items():
                wanted = [*visible_offsets(expected, isolation)[name], *range(end, end + len(NEW))]
                assert [message.offset() for message in found[name]] == wanted, (name, isolation)


def _txn_partitions(expected: Path) -> list[tuple[str, Any]]:
    answers = read_json(expected / "visible_offsets.json").items()
    return [(name, answer) for name, answer in answers if name.startswith(TRANSACTIONS)]
