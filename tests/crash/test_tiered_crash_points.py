"""The broker dies at each step of copying segments to remote storage, and of deleting them there.

After the restart every record is there, and the storage has every segment once and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from strandline.crash import ENVIRONMENT_VARIABLE
from strandline.log.checkpoints import LOG_START_OFFSETS, read_offsets
from strandline.model import TopicPartition
from tests.broker import BrokerProcess, running_broker
from tests.clients.tiering import (
    QUICK,
    SECONDS,
    SMALL,
    TIERED,
    alter,
    create,
    earliest,
    numbered,
    produce,
    read,
    remote_files,
    values,
    wait_tiered,
)
from tests.waiting import wait_until

SIGKILLED = -9
TOPIC = "numbers"
COUNT, PER_SEGMENT = 120, 20
LOCAL = {"remote.storage.enable": "true", **SMALL, "remote.log.copy.disable": "true", "local.retention.bytes": "-2"}
COPIED = {"remote.log.copy.disable": "false", "local.retention.bytes": "1"}

pytestmark = pytest.mark.timeout(240)


@contextmanager
def broker_with(data: Path, configs: dict[str, str]) -> Iterator[BrokerProcess]:
    """A broker with COUNT records in a topic with these settings."""
    with running_broker(data, QUICK) as broker:
        create(administrator(broker), TOPIC, configs)
        produce(broker, TOPIC, numbered(0, COUNT))
        yield broker


def administrator(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def dies_at(place: str, broker: BrokerProcess, act: Callable[[AdminClient], object]) -> int:
    """Start the broker again so that it dies at a place, and once more after it has died there.

    Returns the log start that its disk had when it was dead.
    """
    broker.stop()
    broker.environment = {ENVIRONMENT_VARIABLE: place}
    broker.start()
    with suppress(KafkaException):  # it may die before it answers
        act(administrator(broker))
    assert broker.wait() == SIGKILLED
    stored = read_offsets(str(broker.data_dir / "logs" / LOG_START_OFFSETS))
    broker.environment = {}
    broker.start()
    return stored.get(TopicPartition(TOPIC, 0), 0)


def segments(broker: BrokerProcess) -> dict[str, set[str]]:
    """What the storage has of the topic: the files of each copy, by the name that they share."""
    found: dict[str, set[str]] = {}
    for path in remote_files(broker, TOPIC):
        found.setdefault(path.stem, set()).add(path.suffix)
    return found


def has_each_once(broker: BrokerProcess, bases: range) -> bool:
    found = segments(broker)
    whole = {".log", ".index", ".timeindex", ".snapshot", ".leader_epoch_checkpoint"}
    return sorted(int(name.partition("-")[0]) for name in found) == list(bases) and all(
        files >= whole for files in found.values()
    )


@pytest.mark.parametrize(
    "place",
    [
        "remote.copy.before_started:2",
        "remote.copy.after_started:2",
        "remote.storage.after_indexes:2",
        "remote.storage.after_log:2",
        "remote.copy.after_data:2",
        "remote.metadata.after_append:4",
        "remote.copy.after_finished:2",
    ],
)
def test_death_while_segments_are_copied(tmp_path: Path, place: str) -> None:
    with broker_with(tmp_path / "data", LOCAL) as broker:
        dies_at(place, broker, lambda admin: alter(admin, TOPIC, COPIED))
        assert values(read(broker, TOPIC, COUNT)) == list(range(COUNT))
        first_local = wait_tiered(broker, TOPIC)
        bases = range(0, first_local, PER_SEGMENT)
        wait_until(lambda: has_each_once(broker, bases), "each segment to be in the storage once, and nothing else")
        assert values(read(broker, TOPIC, COUNT)) == list(range(COUNT))


@pytest.mark.parametrize(
    "place",
    [
        "remote.delete.after_log_start",
        "remote.delete.before_started:2",
        "remote.delete.after_started:2",
        "remote.storage.after_log_deleted:2",
        "remote.delete.after_data:2",
        "remote.delete.after_finished:2",
    ],
)
def test_death_while_segments_expire(tmp_path: Path, place: str) -> None:
    with broker_with(tmp_path / "data", TIERED) as broker:
        first_local = wait_tiered(broker, TOPIC)
        dies_at(place, broker, lambda admin: alter(admin, TOPIC, {"retention.bytes": "50000"}))
        admin = administrator(broker)
        wait_until(lambda: earliest(admin, TOPIC) >= COUNT // 2, "the oldest segments to expire")
        start = earliest(admin, TOPIC)
        bases = range(start, first_local, PER_SEGMENT)
        wait_until(lambda: has_each_once(broker, bases), "the storage to have what is left, and nothing else")
        assert values(read(broker, TOPIC, COUNT - start, offset=start)) == list(range(start, COUNT))


@pytest.mark.parametrize("place", ["remote.delete.before_started", "remote.delete.after_finished:2"])
def test_the_log_start_is_stored_before_a_segment_is_deleted(tmp_path: Path, place: str) -> None:
    """Otherwise the earliest offset goes back, after a crash, to records that are nowhere any more."""
    with broker_with(tmp_path / "data", TIERED) as broker:
        wait_tiered(broker, TOPIC)
        stored = dies_at(place, broker, lambda admin: alter(admin, TOPIC, {"retention.bytes": "50000"}))
        assert stored >= COUNT // 2
        assert earliest(administrator(broker), TOPIC) >= stored


@pytest.mark.parametrize(
    "place",
    [
        "remote.partition_delete.before_marked",
        "remote.partition_delete.after_marked",
        "remote.partition_delete.after_started",
        "remote.delete.after_data:2",
        "remote.partition_delete.after_segments",
        "remote.partition_delete.after_finished",
    ],
)
def test_death_while_a_deleted_topic_leaves_the_storage(tmp_path: Path, place: str) -> None:
    with broker_with(tmp_path / "data", TIERED) as broker:
        wait_tiered(broker, TOPIC)
        dies_at(place, broker, lambda admin: admin.delete_topics([TOPIC])[TOPIC].result(SECONDS))
        wait_until(lambda: not remote_files(broker, TOPIC), "the storage to be empty")
        create(administrator(broker), TOPIC)
        produce(broker, TOPIC, numbered(0, COUNT))
        wait_tiered(broker, TOPIC)
        assert values(read(broker, TOPIC, COUNT)) == list(range(COUNT))


@pytest.mark.parametrize("place", ["remote.delete.before_started", "remote.delete.after_data:2"])
def test_death_while_tiering_is_switched_off(tmp_path: Path, place: str) -> None:
    off = {"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"}
    with broker_with(tmp_path / "data", TIERED) as broker:
        local = wait_tiered(broker, TOPIC)
        dies_at(place, broker, lambda admin: alter(admin, TOPIC, off))
        wait_until(lambda: not remote_files(broker, TOPIC), "the storage to be empty")
        admin = administrator(broker)
        wait_until(lambda: earliest(admin, TOPIC) == local, "the log to begin with what is local")
        assert values(read(broker, TOPIC, COUNT - local, offset=local)) == list(range(local, COUNT))
