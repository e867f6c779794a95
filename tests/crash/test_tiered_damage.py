"""An object of a tiered topic is damaged or missing: its consumers get an error, everything else goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from strandline.model import REMOTE_LOG_METADATA_TOPIC, uuid_from_text
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.admin.commands.conftest import Command, command
from tests.broker import BrokerProcess, running_broker
from tests.clients.tiering import (
    QUICK,
    SECONDS,
    create,
    first_local_offset,
    numbered,
    produce,
    read,
    remote_logs,
    values,
    wait_tiered,
)
from tests.waiting import wait_until

__all__ = ["command"]

COUNT = 200
TOPIC, OTHER = "numbers", "others"
CACHE = "remote-log-index-cache"

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker with two topics that have left its disk."""
    with running_broker(tmp_path / "data", QUICK) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        for topic in (TOPIC, OTHER):
            create(admin, topic)
            produce(running, topic, numbered(0, COUNT))
        for topic in (TOPIC, OTHER):
            wait_tiered(running, topic)
        yield running


def fetch_error(broker: BrokerProcess, topic: str, offset: int) -> int:
    """The error of one Fetch request."""
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(max_bytes=1 << 20, max_wait_ms=5000, topics=[FetchTopic(topic=topic, partitions=[wanted])])
    with Client.connect("127.0.0.1", broker.port, timeout_s=SECONDS) as client:
        answer = client.request(ApiKey.FETCH, request, version=12)
    return int(answer.responses[0].partitions[0].error_code)


def everything_is_there(broker: BrokerProcess, *topics: str) -> None:
    for topic in topics:
        assert values(read(broker, topic, COUNT)) == list(range(COUNT))


def segments_of(broker: BrokerProcess, command: Command, topic: str) -> Any:
    """What `topics tiers` says; a broker that has just started serves clients before it answers that."""

    def answer() -> Any:
        outcome = command("topics", "tiers", topic, "--segments", "--json", "-b", broker.bootstrap)
        return outcome.json["partitions"] if outcome.status == 0 else None

    return wait_until(answer, within=SECONDS, what="the tiers of a topic")


def test_a_missing_object_harms_readers_of_its_offsets_alone(broker: BrokerProcess) -> None:
    lost = remote_logs(broker, TOPIC)[3]
    first = int(lost.name[:20])
    data = lost.read_bytes()
    lost.unlink()
    assert fetch_error(broker, TOPIC, first) == ErrorCode.KAFKA_STORAGE_ERROR
    assert values(read(broker, TOPIC, first)) == list(range(first))
    assert values(read(broker, TOPIC, COUNT - first - 20, offset=first + 20)) == list(range(first + 20, COUNT))
    everything_is_there(broker, OTHER)
    name = lost.stem[21:]
    assert f"Remote segment {name} of {TOPIC}-0 (offsets {first} to {first + 19})" in broker.log_text
    lost.write_bytes(data)
    everything_is_there(broker, TOPIC)


@pytest.mark.parametrize("suffix", [".index", ".log"])
def test_a_truncated_object_harms_readers_of_its_offsets_alone(broker: BrokerProcess, suffix: str) -> None:
    log = remote_logs(broker, TOPIC)[3]
    damaged, first = log.with_suffix(suffix), int(log.name[:20])
    data = damaged.read_bytes()
    damaged.write_bytes(data[: len(data) // 2 - 1])
    assert fetch_error(broker, TOPIC, first + 15) == ErrorCode.KAFKA_STORAGE_ERROR
    assert values(read(broker, TOPIC, 20, offset=first + 20)) == list(range(first + 20, first + 40))
    everything_is_there(broker, OTHER)
    assert damaged.name in broker.log_text or log.stem[21:] in broker.log_text
    damaged.write_bytes(data)
    everything_is_there(broker, TOPIC)


def damage(broker: BrokerProcess) -> int:
    """Spoil every file of the index cache, each in another way; how many there are."""
    ways: list[Callable[[bytes], bytes]] = [
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: bytes(255 - byte for byte in data),
        lambda data: data + b"more",
    ]
    files = sorted(path for path in (broker.data_dir / "logs" / CACHE).iterdir() if path.is_file())
    for number, path in enumerate(files):
        path.write_bytes(ways[number % len(ways)](path.read_bytes()))
    return len(files)


def test_a_damaged_index_cache_is_fetched_again(broker: BrokerProcess) -> None:
    everything_is_there(broker, TOPIC, OTHER)
    assert damage(broker)
    everything_is_there(broker, TOPIC, OTHER)
    broker.stop()
    assert damage(broker)
    broker.start()
    everything_is_there(broker, TOPIC, OTHER)
    assert "a cached remote index is damaged and will be fetched again" in broker.log_text
    broker.kill()
    for path in (broker.data_dir / "logs" / CACHE).iterdir():
        path.unlink()
    broker.start()
    everything_is_there(broker, TOPIC)


def test_everything_is_known_again_without_snapshots(broker: BrokerProcess, command: Command) -> None:
    before = [segments_of(broker, command, topic) for topic in (TOPIC, OTHER)]
    broker.restart()  # with snapshots
    wait_until(lambda: [segments_of(broker, command, topic) for topic in (TOPIC, OTHER)] == before, "the same segments")
    broker.kill()
    gone = list((broker.data_dir / "logs").glob("_rlmm_*"))
    assert len(gone) > 1
    for path in gone:
        path.unlink()
    broker.start()
    wait_until(lambda: [segments_of(broker, command, topic) for topic in (TOPIC, OTHER)] == before, "the same segments")
    everything_is_there(broker, TOPIC, OTHER)


def test_records_of_the_metadata_topic_that_make_no_sense_are_passed_over(
    broker: BrokerProcess, command: Command
) -> None:
    before = segments_of(broker, command, TOPIC)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for partition in range(3):
        for value in (b"", b"nonsense", bytes(60), None):
            producer.produce(REMOTE_LOG_METADATA_TOPIC, value, partition=partition)
    assert producer.flush(SECONDS) == 0
    line = f"{REMOTE_LOG_METADATA_TOPIC}-0: the record at offset"
    wait_until(lambda: line in broker.log_text, "a line in the log")
    assert segments_of(broker, command, TOPIC) == before
    produce(broker, TOPIC, numbered(COUNT, 40))
    wait_until(lambda: first_local_offset(broker, TOPIC) > COUNT, "copies to go on")
    broker.kill()
    for path in (broker.data_dir / "logs").glob("_rlmm_*"):
        path.unlink()
    broker.start()
    everything_is_there(broker, TOPIC, OTHER)


def test_damage_in_the_metadata_topic_hides_no_other_partition(broker: BrokerProcess, command: Command) -> None:
    rows = command("remote", "dump", str(broker.data_dir / "logs"), "--json").out.splitlines()
    row = next(row for row in map(json.loads, rows) if row["topic"] == TOPIC and row.get("start_offset") == 60)
    broker.stop()
    for path in (broker.data_dir / "logs").glob("_rlmm_*"):
        path.unlink()
    (log,) = (broker.data_dir / "logs" / f"{REMOTE_LOG_METADATA_TOPIC}-{row['metadata_partition']}").glob("*.log")
    data = bytearray(log.read_bytes())
    place = data.index(uuid_from_text(row["segment_id"]).bytes)
    data[place + 3] ^= 0xFF
    log.write_bytes(data)
    broker.start()
    everything_is_there(broker, OTHER)
    assert values(read(broker, TOPIC, 60)) == list(range(60))
    assert values(read(broker, TOPIC, COUNT - 80, offset=80)) == list(range(80, COUNT))
    assert fetch_error(broker, TOPIC, 60) == ErrorCode.NOT_LEADER_OR_FOLLOWER, "no consumer jumps over records"
    assert f"{log.parent.name}: the record at offset {row['offset']} is skipped" in broker.log_text
