"""A real broker, its objects, and their end: deleted topics, restarts, crashes between upload and commit."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from strandline.admin.commands.main import run
from strandline.crash import ENVIRONMENT_VARIABLE
from tests.broker import BrokerProcess, running_broker
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(120)

DISKLESS = {"log.diskless.enable": "true", "diskless.storage.system.enable": "true"}
AT_ONCE = {
    "inkless.file.cleaner.interval.ms": "100",
    "inkless.file.cleaner.retention.period.ms": "0",
    "strandline.objects.orphan.scan.interval.ms": "500",
}
NEVER = {
    "inkless.file.cleaner.interval.ms": "100000000",
    "strandline.objects.orphan.scan.interval.ms": "0",
}


def wal_objects(data: Path) -> set[str]:
    return {path.name for path in (data / "objects" / "wal").glob("*/*")}


def produce(broker: BrokerProcess, *values: str) -> None:
    """One object for each value."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce("tides", value, partition=0)
        assert producer.flush(30) == 0
    producer.close()


def consume(broker: BrokerProcess, count: int) -> list[tuple[int | None, bytes | None]]:
    """Offset and value of the first records."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition("tides", 0, 0)])
    found = consumer.consume(count, timeout=30)
    consumer.close()
    return [(record.offset(), record.value()) for record in found]


def delete_topic(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics(["tides"])["tides"].result(30)


def fsck(data: Path, settings: Mapping[str, str], capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    capsys.readouterr()
    options = [f"--set={name}={value}" for name, value in settings.items()]
    assert run(["fsck", "--deep", "--json", "--grace", "0", "--data-dir", str(data), *options]) == 0
    report: dict[str, object] = json.loads(capsys.readouterr().out)
    return report


def test_no_object_outlives_the_last_topic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    with running_broker(data, {**DISKLESS, **AT_ONCE}) as broker:
        produce(broker, *"abc")
        assert len(wal_objects(data)) == 3
        path = next((data / "objects" / "wal").glob("*/*"))
        assert run(["wal", "dump", str(path), "--bootstrap", broker.bootstrap]) == 0
        assert "  tides-0  bytes 0.." in capsys.readouterr().out
        delete_topic(broker)
        wait_until(lambda: not wal_objects(data), within=30, what="the objects to go")
        wait_until(lambda: fsck(data, DISKLESS, capsys)["files"] == 0, within=30, what="their rows to go")


def test_objects_of_the_last_topic_go_even_if_the_broker_stops_in_between(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running_broker(data, {**DISKLESS, **NEVER}) as broker:
        produce(broker, *"abc")
        delete_topic(broker)
        broker.stop()
    assert len(wal_objects(data)) == 3
    with running_broker(data, AT_ONCE):  # there is no diskless topic any more
        wait_until(lambda: not wal_objects(data), within=30, what="the objects to go")


def test_an_upload_that_a_crash_kept_from_its_commit_is_deleted_after_the_restart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = "diskless.writer.after_upload"
    data = tmp_path / "data"
    with running_broker(data, {**DISKLESS, **NEVER}) as broker:
        produce(broker, "a", "b")
    committed = wal_objects(data)

    with running_broker(data, {**DISKLESS, **NEVER}, environment={ENVIRONMENT_VARIABLE: place}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "message.timeout.ms": 3000})
        producer.produce("tides", "c", partition=0)
        wait_until(lambda: producer.flush(0.1) >= 0 and not broker.is_running, within=60, what="the crash")
        assert broker.wait() == -signal.SIGKILL
        producer.purge()
        producer.close()
    assert wal_objects(data) > committed

    with running_broker(data, {**DISKLESS, **AT_ONCE}) as broker:
        wait_until(lambda: wal_objects(data) == committed, within=60, what="the orphan to go")
        produce(broker, "d")
        assert consume(broker, 3) == [(0, b"a"), (1, b"b"), (2, b"d")]
    assert fsck(data, DISKLESS, capsys)["files"] == 3
