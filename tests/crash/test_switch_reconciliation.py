"""A broker starts with a log, or with a database, that does not fit the boundary at which its topic became diskless.

A broker that has switched a topic is stopped at three moments. Each test takes one of these directories, makes it what
a lost disk, an old copy of a log or a restored database would have left, and starts a broker on it.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from strandline.model import INT64_MAX
from strandline.wire.errors import ErrorCode
from tests.broker import EXTERNAL_BOOTSTRAP, BrokerProcess, running_broker
from tests.clients import tiering
from tests.clients.test_two_brokers_diskless_reads import Asking
from tests.clients.tiering import (
    QUICK,
    SECONDS,
    create,
    earliest,
    kafka_admin,
    numbered,
    offset_of,
    produce,
    read,
    remote_logs,
    values,
)
from tests.clients.two_brokers import BrokerCluster
from tests.crash.switching import administrator, boundaries, partitions_of, problems, request_switch, wait_switched
from tests.crash.test_switch_crash_points import dies_at
from tests.waiting import wait_until

TOPIC = "numbers"
START, EARLY, B0, END = 20, 40, 60, 80
"""Where the log starts; its end at the first moment; its boundary; the end of its diskless part at the last moment."""
KEPT = {"remote.storage.enable": "true", "internal.segment.bytes": "21000"}  # two batches of ten fill a segment
LOG = f"logs/{TOPIC}-0"
DATABASE = "metadata.db"
RETENTION = {"inkless.retention.enforcement.interval.ms": "200"}

pytestmark = pytest.mark.timeout(240)


class Moments(NamedTuple):
    """Data directories of a broker that is stopped."""

    before: Path
    """Before the switch was requested: the log ends at EARLY."""
    switched: Path
    """The topic is HYBRID, and nothing was written since."""
    written: Path
    """There are diskless records."""


@pytest.fixture(scope="module")
def moments(tmp_path_factory: pytest.TempPathFactory) -> Moments:
    if EXTERNAL_BOOTSTRAP:
        pytest.skip("needs a broker process of its own")
    directory = tmp_path_factory.mktemp("moments")
    found = Moments(*(directory / name for name in Moments._fields))
    data = directory / "data"
    with running_broker(data, QUICK) as broker:
        admin = administrator(broker)
        create(admin, TOPIC, KEPT)
        create(admin, "classic", {})
        produce(broker, "classic", numbered(0, 10))
        produce(broker, TOPIC, numbered(0, EARLY))
        delete_records(admin, START)
        leave(broker, found.before)
        produce(broker, TOPIC, numbered(EARLY, B0 - EARLY))
        request_switch(broker)
        assert wait_switched(broker, TOPIC, states=("HYBRID",)) == [B0]
        leave(broker, found.switched)
        assert produce(broker, TOPIC, numbered(B0, END - B0)) == list(range(B0, END))
        leave(broker, found.written)
        assert broker.stop() == 0
    return found


def leave(broker: BrokerProcess, copy: Path) -> None:
    """Stop the broker, copy its directory, and start it again."""
    assert broker.stop() == 0
    shutil.copytree(broker.data_dir, copy)
    broker.start()


def delete_records(admin: AdminClient, before: int) -> None:
    key = TopicPartition(TOPIC, 0, before)
    kafka_admin.AdminClient.delete_records(admin, [key])[key].result(SECONDS)


@contextmanager
def started(
    data: Path, settings: dict[str, str] | None = None, *, classic: int = 10
) -> Iterator[tuple[BrokerProcess, Asking]]:
    """A broker on the directory. It serves the classic topic, with so many records, whatever became of the other."""
    with running_broker(data, {**QUICK, **(settings or {})}) as broker:
        yield broker, Asking(BrokerCluster({1: broker}), TOPIC)
        assert values(read(broker, "classic", classic)) == list(range(classic))
        assert "Traceback" not in broker.log_text
        assert broker.stop() == 0


def taken(moment: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(moment, tmp_path / "data"))


def put_log(data: Path, moment: Path) -> None:
    """The log of another moment, as a restored disk has it."""
    shutil.rmtree(data / LOG)
    shutil.copytree(moment / LOG, data / LOG)
    for checkpoint in (moment / "logs").glob("*-checkpoint"):
        shutil.copy(checkpoint, data / "logs" / checkpoint.name)


def change(data: Path, *statements: str) -> None:
    """What a restored or repaired control plane has."""
    with closing(sqlite3.connect(data / DATABASE)) as database, database:
        for statement in statements:
            assert database.execute(statement).rowcount > 0, statement


def set_boundary(boundary: int) -> str:
    return (
        f"UPDATE inkless_log SET diskless_log_start_offset = {boundary}, diskless_start_offset = {boundary}, "
        f"high_watermark = {boundary}, log_start_offset = min(log_start_offset, {boundary}), "
        f"tiered_high_offset = min(tiered_high_offset, {boundary} - 1) WHERE topic_name = '{TOPIC}'"
    )


def latest(broker: BrokerProcess) -> int:
    return offset_of(administrator(broker), TOPIC, kafka_admin.OffsetSpec.latest())


def numbers(broker: BrokerProcess, first: int, end: int) -> list[int]:
    """The records from an offset on, which say their offsets if all is well."""
    return values(read(broker, TOPIC, end - first, offset=first))


def refusal(topic: Asking, offset: int) -> ErrorCode:
    return topic.fetch(1, offset).error


# Lessons 1 and 10: above the boundary


def test_a_log_that_is_longer_than_its_boundary_is_cut_at_the_start(moments: Moments, tmp_path: Path) -> None:
    data = taken(moments.switched, tmp_path)
    change(data, set_boundary(EARLY))
    dies_at(BrokerProcess(data, QUICK), "switch.after_cut")
    with started(data) as (broker, _):
        assert wait_switched(broker, TOPIC) == [EARLY]
        assert latest(broker) == EARLY
        assert broker.log_text.count("the records above the boundary are removed") == 1
        assert produce(broker, TOPIC, numbered(EARLY, 20)) == list(range(EARLY, EARLY + 20))
        assert numbers(broker, START, EARLY + 20) == list(range(START, EARLY + 20))
        wait_until(lambda: partitions_of(broker, TOPIC)[0]["tiering_complete"], what="the prefix to be known as remote")
        assert problems(broker, TOPIC) == []
        broker.restart()
        assert numbers(broker, START, EARLY + 20) == list(range(START, EARLY + 20))


def test_a_log_with_a_batch_across_its_boundary_is_not_served_and_does_not_stop_the_broker(
    moments: Moments, tmp_path: Path
) -> None:
    data = taken(moments.switched, tmp_path)
    change(data, set_boundary(EARLY + 5))
    with started(data) as (broker, topic):
        (problem,) = wait_until(lambda: problems(broker, TOPIC), what="the status to say what is wrong")
        assert "a batch of its local log reaches over it" in problem
        assert refusal(topic, START) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert produce(broker, TOPIC, numbered(EARLY + 5, 10)) == list(range(EARLY + 5, EARLY + 15))
        assert numbers(broker, EARLY + 5, EARLY + 15) == list(range(EARLY + 5, EARLY + 15))


# Lesson 2: below the boundary


def test_a_log_that_is_shorter_than_its_boundary_is_not_served_until_its_records_are_deleted(
    moments: Moments, tmp_path: Path
) -> None:
    data = taken(moments.written, tmp_path)
    put_log(data, moments.before)
    with started(data) as (broker, topic):
        (problem,) = wait_until(lambda: problems(broker, TOPIC), what="the status to say what is wrong")
        assert f"ends at {EARLY}" in problem
        for offset in (START, EARLY - 1, EARLY, B0 - 1):
            assert refusal(topic, offset) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert refusal(topic, INT64_MAX) is ErrorCode.OFFSET_OUT_OF_RANGE, "nothing of it would be below"
        assert numbers(broker, B0, END) == list(range(B0, END))
        assert produce(broker, TOPIC, numbered(END, 10)) == list(range(END, END + 10))
        assert latest(broker) == END + 10
        delete_records(administrator(broker), B0)
        assert earliest(administrator(broker), TOPIC) == B0
        assert numbers(broker, B0, END + 10) == list(range(B0, END + 10))
        wait_switched(broker, TOPIC, states=("DISKLESS_ONLY",))
        assert problems(broker, TOPIC) == []
        broker.restart()
        assert earliest(administrator(broker), TOPIC) == B0
        assert numbers(broker, B0, END + 10) == list(range(B0, END + 10))


def test_a_lost_log_is_served_from_remote_storage_and_its_records_expire_there(
    moments: Moments, tmp_path: Path
) -> None:
    data = taken(moments.written, tmp_path)
    shutil.rmtree(data / LOG)
    with started(data, RETENTION) as (broker, topic):
        wait_until(lambda: refusal(topic, START) is ErrorCode.NONE, within=30, what="the prefix to be served")
        assert numbers(broker, START, END) == list(range(START, END))
        assert earliest(administrator(broker), TOPIC) == START
        assert produce(broker, TOPIC, numbered(END, 10)) == list(range(END, END + 10))
        assert problems(broker, TOPIC) == []
        assert "does not have its log" in broker.log_text
        assert remote_logs(broker, TOPIC), "the prefix is there"
        tiering.alter(administrator(broker), TOPIC, {"retention.bytes": "1000"})
        wait_until(lambda: earliest(administrator(broker), TOPIC) > B0, within=60, what="the log start to move")
        wait_switched(broker, TOPIC, states=("DISKLESS_ONLY",))
        assert remote_logs(broker, TOPIC) == []


def test_a_lost_disk_does_not_stop_the_diskless_part_and_the_operator_is_told(moments: Moments, tmp_path: Path) -> None:
    """The remote log metadata is lost with it: nobody knows what remote storage has."""
    data = taken(moments.written, tmp_path)
    shutil.rmtree(data / "logs")
    with started(data, RETENTION, classic=0) as (broker, topic):
        wait_until(lambda: refusal(topic, B0) is ErrorCode.NONE, what="the diskless part to be served")
        assert refusal(topic, START) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert numbers(broker, B0, END) == list(range(B0, END))
        assert produce(broker, TOPIC, numbered(END, 10)) == list(range(END, END + 10))
        (problem,) = wait_until(lambda: problems(broker, TOPIC), what="the status to say what is wrong")
        assert f"does not have its log, which has the offsets from {START} to {B0 - 1}," in problem
        assert "DeleteRecords" in problem
        delete_records(administrator(broker), B0)
        assert earliest(administrator(broker), TOPIC) == B0
        wait_switched(broker, TOPIC, states=("DISKLESS_ONLY",))
        assert problems(broker, TOPIC) == []
        tiering.alter(administrator(broker), TOPIC, {"retention.bytes": "1000"})
        wait_until(lambda: earliest(administrator(broker), TOPIC) > B0, within=60, what="rows to expire")


# The boundary is below the log start


def test_a_boundary_below_the_log_start_is_taken_back_and_the_topic_switched_again(
    moments: Moments, tmp_path: Path
) -> None:
    data = taken(moments.switched, tmp_path)
    change(data, set_boundary(START - 10))
    with started(data) as (broker, _):
        wait_until(lambda: boundaries(broker, TOPIC) == [B0], within=30, what="the boundary to be set again")
        wait_switched(broker, TOPIC)
        assert produce(broker, TOPIC, numbered(B0, 10)) == list(range(B0, B0 + 10))
        assert numbers(broker, START, B0 + 10) == list(range(START, B0 + 10))


def test_a_log_that_starts_above_its_boundary_is_not_served_if_there_are_diskless_records(
    moments: Moments, tmp_path: Path
) -> None:
    """The log was replaced by one that begins later. What is behind the boundary counts."""
    data = taken(moments.written, tmp_path)
    for path in (data / LOG).glob("0*"):
        path.unlink()
    (data / LOG / "leader-epoch-checkpoint").unlink()
    (data / LOG / f"{B0 + 10:020}.log").touch()
    for checkpoint in (data / "logs").glob("*-checkpoint"):
        checkpoint.write_text(re.sub(rf"{TOPIC} 0 \d+", f"{TOPIC} 0 {B0 + 10}", checkpoint.read_text()))
    with started(data) as (broker, topic):
        (problem,) = wait_until(lambda: problems(broker, TOPIC), what="the status to say what is wrong")
        assert f"starts at {B0 + 10}" in problem
        assert boundaries(broker, TOPIC) == [B0]
        assert refusal(topic, START) is not ErrorCode.NONE
        assert numbers(broker, B0, END) == list(range(B0, END))
        assert produce(broker, TOPIC, numbered(END, 10)) == list(range(END, END + 10))
        delete_records(administrator(broker), B0)
        assert earliest(administrator(broker), TOPIC) == B0
        assert numbers(broker, B0, END + 10) == list(range(B0, END + 10))
        wait_switched(broker, TOPIC, states=("DISKLESS_ONLY",))
        assert problems(broker, TOPIC) == []


# The control plane has lost its newest commits


def test_a_database_from_before_the_switch_makes_the_topic_a_classic_one(moments: Moments, tmp_path: Path) -> None:
    """The diskless records are gone with it; the log goes on where it ends, and can be switched again."""
    data = taken(moments.written, tmp_path)
    replace_database(data, moments.before)
    with started(data) as (broker, topic):
        assert latest(broker) == B0
        assert numbers(broker, START, B0) == list(range(START, B0))
        topic.write(1, b"%d " % B0)  # not idempotent: the database gives ids of producers away again
        request_switch(broker)
        assert wait_switched(broker, TOPIC) == [B0 + 1]
        topic.write(1, b"%d " % (B0 + 1))
        assert numbers(broker, START, B0 + 2) == list(range(START, B0 + 2))


def test_a_database_that_has_lost_the_boundary_gets_it_again(moments: Moments, tmp_path: Path) -> None:
    data = taken(moments.written, tmp_path)
    replace_database(data, moments.switched)
    change(data, *lost_boundary())
    with started(data) as (broker, _):
        assert wait_switched(broker, TOPIC) == [B0]
        assert produce(broker, TOPIC, numbered(B0, 10)) == list(range(B0, B0 + 10))
        assert numbers(broker, START, B0 + 10) == list(range(START, B0 + 10))


def lost_boundary() -> list[str]:
    """The switch is requested, and no partition has its boundary."""
    return [
        "INSERT INTO inkless_migration (topic_id, topic_name, partitions, requested_at_ms) "
        f"SELECT topic_id, topic_name, 1, 0 FROM inkless_log WHERE topic_name = '{TOPIC}'",
        f"DELETE FROM inkless_log WHERE topic_name = '{TOPIC}'",
    ]


def test_a_running_broker_notices_that_the_boundary_is_lost(moments: Moments, tmp_path: Path) -> None:
    """A database that fails over to a standby which lacks the newest commits: nothing is served that is not there."""
    data = taken(moments.written, tmp_path)
    with started(data) as (broker, topic):
        assert numbers(broker, START, END) == list(range(START, END))
        change(data, *lost_boundary())
        wait_until(lambda: "lost the boundary" in broker.log_text, within=30, what="the broker to notice")
        assert wait_switched(broker, TOPIC) == [B0]
        wait_until(lambda: latest(broker) == B0, what="the end of the log to be the boundary")
        assert refusal(topic, B0 + 5) is ErrorCode.OFFSET_OUT_OF_RANGE, "it is still in memory"
        assert produce(broker, TOPIC, numbered(B0, 10)) == list(range(B0, B0 + 10))
        assert numbers(broker, START, B0 + 10) == list(range(START, B0 + 10))


def replace_database(data: Path, moment: Path) -> None:
    for path in data.glob(f"{DATABASE}*"):
        path.unlink()
    for path in moment.glob(f"{DATABASE}*"):
        shutil.copy(path, data / path.name)


# Settings


def test_a_switched_topic_waits_on_a_broker_whose_diskless_system_is_off(moments: Moments, tmp_path: Path) -> None:
    data = taken(moments.written, tmp_path)
    with started(data, {"diskless.storage.system.enable": "false"}) as (_, topic):
        for offset in (START, B0):
            assert refusal(topic, offset) is ErrorCode.KAFKA_STORAGE_ERROR
    with started(data) as (broker, _):
        assert numbers(broker, START, END) == list(range(START, END))
        assert produce(broker, TOPIC, numbered(END, 10)) == list(range(END, END + 10))


# Lesson 9


def test_the_log_start_is_right_after_records_of_both_parts_were_deleted(moments: Moments, tmp_path: Path) -> None:
    data = taken(moments.written, tmp_path)
    with started(data) as (broker, _):
        for start in (START + 10, B0, B0 + 10):
            delete_records(administrator(broker), start)
            assert earliest(administrator(broker), TOPIC) == start
            broker.restart()
            assert earliest(administrator(broker), TOPIC) == start
            assert numbers(broker, start, END) == list(range(start, END))
        wait_switched(broker, TOPIC, states=("DISKLESS_ONLY",))
