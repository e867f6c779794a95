"""Brokers whose settings name another store than the one that holds their objects."""

from __future__ import annotations

import json
import shutil
import sqlite3
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from strandline.objects.marker import MARKER_KEY, STORE_ID_KEY
from strandline.wire.errors import ErrorCode
from tests.broker import BrokerProcess, running_broker
from tests.clients.two_brokers import running_cluster
from tests.hybrid.test_starting import create, ready, write
from tests.postgres import postgres, postgres_url
from tests.waiting import wait_until

__all__ = ["postgres", "postgres_url"]


def place(path: Path) -> dict[str, str]:
    return {"strandline.objects.url": f"file://{path}"}


def not_ready(broker: BrokerProcess, *words: str) -> str:
    """What `/readyz` says, once it refuses with all these words."""

    def ask() -> str | None:
        try:
            urllib.request.urlopen(f"{broker.http}/readyz", timeout=10).close()
        except urllib.error.HTTPError as error:
            with error:
                text = error.read().decode()
            return text if error.code == 503 and all(word in text for word in words) else None
        except urllib.error.URLError:
            return None
        return None

    return wait_until(ask, what=f"/readyz to refuse with {words}")


def refuses(broker: BrokerProcess) -> bool:
    try:
        urllib.request.urlopen(f"{broker.http}/readyz", timeout=10).close()
    except urllib.error.HTTPError as error:
        error.close()
        return True
    except urllib.error.URLError:
        return False
    return False


def restart(broker: BrokerProcess, settings: dict[str, str]) -> None:
    if broker.is_running:
        broker.stop()
    broker.settings = settings
    broker.start()


def refused(broker: BrokerProcess, settings: dict[str, str]) -> str:
    """What a broker says that ends at its start with these settings."""
    if broker.is_running:
        broker.stop()
    broker.settings = settings
    said_before = len(broker.log_text)
    broker.spawn()
    assert broker.wait() == 1
    return broker.log_text[said_before:]


def read(broker: BrokerProcess, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes | None] = []
    try:
        while len(found) < count:
            message = consumer.poll(30)
            assert message is not None
            assert message.error() is None
            found.append(message.value())
    finally:
        consumer.close()
    return found


def test_a_broker_with_another_store_does_not_start_and_the_old_one_goes_on(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    with running_broker(tmp_path / "data", place(right)) as broker:
        create(broker, "t", diskless_enable="true")
        assert write(broker, "t") is None
        store_id = json.loads((right / STORE_ID_KEY).read_text())["store_id"]
        told = refused(broker, place(wrong))
        for word in (f"strandline.objects.url=file://{wrong}", f"file://{right}", store_id, STORE_ID_KEY):
            assert word in told
        assert "strandline stores accept diskless" in told
        assert "Traceback" not in told
        assert not (wrong / MARKER_KEY).exists()
        assert not (wrong / STORE_ID_KEY).exists()
        restart(broker, place(right))
        assert write(broker, "t") is None
        assert ready(broker).startswith("ready")
        assert read(broker, "t", 2) == [b"x", b"x"]


def test_a_store_that_nothing_was_written_to_may_be_left_for_another(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data", place(tmp_path / "first")) as broker:
        create(broker, "t", diskless_enable="true")
        wait_until((tmp_path / "first" / STORE_ID_KEY).exists, what="the store to be opened")
        restart(broker, place(tmp_path / "second"))
        assert write(broker, "t") is None
        assert (tmp_path / "second" / MARKER_KEY).exists()


def test_an_empty_directory_in_place_of_the_store_stops_writes_until_the_store_is_back(tmp_path: Path) -> None:
    objects, aside = tmp_path / "objects", tmp_path / "aside"
    with running_broker(tmp_path / "data", place(objects)) as broker:
        create(broker, "t", diskless_enable="true")
        assert write(broker, "t") is None
        objects.rename(aside)
        objects.mkdir()
        not_ready(broker, STORE_ID_KEY, "mounted")
        error = write(broker, "t", message_timeout_ms=1500)
        assert error is not None
        assert not list(objects.rglob("wal/*/*"))
        objects.rename(tmp_path / "empty")
        aside.rename(objects)
        wait_until(lambda: write(broker, "t", message_timeout_ms=1500) is None, what="writes to go on")
        assert ready(broker).startswith("ready")
        assert not list((tmp_path / "empty").rglob("wal/*/*"))


def test_a_copy_in_place_of_the_store_is_the_store(tmp_path: Path) -> None:
    objects, copy = tmp_path / "objects", tmp_path / "copy"
    with running_broker(tmp_path / "data", place(objects)) as broker:
        create(broker, "t", diskless_enable="true")
        assert write(broker, "t") is None
        shutil.copytree(objects, copy)
        objects.rename(tmp_path / "aside")
        copy.rename(objects)
        assert write(broker, "t") is None
        restart(broker, place(objects))
        assert read(broker, "t", 2) == [b"x", b"x"]


def test_another_name_of_the_store_is_fine_also_when_only_deletions_are_left(tmp_path: Path) -> None:
    objects, link = tmp_path / "objects", tmp_path / "link"
    link.symlink_to(objects)
    with running_broker(tmp_path / "data", place(objects)) as broker:
        create(broker, "t", diskless_enable="true")
        assert write(broker, "t") is None
        restart(broker, place(link))
        assert write(broker, "t") is None
        assert ready(broker) == "ready\n"
        with AdminClient({"bootstrap.servers": broker.bootstrap}) as admin:
            admin.delete_topics(["t"])["t"].result(30)
        wait_until(lambda: only_deletions(tmp_path / "data"), what="the objects to be marked")
        restart(broker, place(link))
        create(broker, "u", diskless_enable="true")
        assert write(broker, "u") is None
        assert ready(broker) == "ready\n"


def only_deletions(data: Path) -> bool:
    database = sqlite3.connect(f"file:{data}/metadata.db?mode=ro", uri=True)
    states = {state for (state,) in database.execute("SELECT DISTINCT state FROM inkless_file")}
    database.close()
    return states == {"deleting"}


def test_an_id_that_was_deleted_is_written_again_and_writes_go_on(tmp_path: Path) -> None:
    objects = tmp_path / "objects"
    with running_broker(tmp_path / "data", place(objects)) as broker:
        create(broker, "t", diskless_enable="true")
        assert write(broker, "t") is None
        before = (objects / STORE_ID_KEY).read_bytes()
        (objects / STORE_ID_KEY).unlink()
        assert write(broker, "t") is None
        assert (objects / STORE_ID_KEY).read_bytes() == before
        assert read(broker, "t", 2) == [b"x", b"x"]


def forget(data: Path, *objects: Path) -> None:
    """Make a database and stores what they were before stores had ids."""
    with sqlite3.connect(data / "metadata.db") as database:
        database.execute("DELETE FROM strandline_store")
    database.close()
    for store in objects:
        (store / STORE_ID_KEY).unlink(missing_ok=True)


def test_a_store_from_before_stores_had_ids_is_recorded_if_its_objects_are_there(tmp_path: Path) -> None:
    right, wrong, data = tmp_path / "right", tmp_path / "wrong", tmp_path / "data"
    with running_broker(data, place(right)) as broker:
        create(broker, "t", diskless_enable="true")
        assert write(broker, "t") is None
        broker.stop()
        forget(data, right)
        assert "the objects that the database names are not there" in refused(broker, place(wrong))
        restart(broker, place(right))
        assert write(broker, "t") is None
        assert (right / STORE_ID_KEY).exists()
        assert "the database expects the store" in refused(broker, place(wrong))


@pytest.mark.timeout(240)
def test_one_of_two_brokers_with_another_prefix_does_not_start(tmp_path: Path, postgres_url: str) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    with running_cluster(tmp_path, postgres_url, settings=place(right)) as cluster:
        cluster.create("t", partitions=1, via=1, config={"diskless.enable": "true"})
        one, two = cluster.brokers[1], cluster.brokers[2]
        assert write(one, "t") is None
        told = refused(two, {**two.settings, **place(wrong)})
        assert f"strandline.objects.url=file://{wrong}" in told
        assert str(right) in told
        assert not list(wrong.rglob("wal/*/*"))
        assert not (wrong / MARKER_KEY).exists()
        wait_until(lambda: ready(one).startswith("ready"), what="the other broker to be ready")


@pytest.mark.timeout(240)
def test_of_two_brokers_that_name_different_stores_before_the_first_topic_one_is_not_ready(
    tmp_path: Path, postgres_url: str
) -> None:
    with running_cluster(tmp_path, postgres_url, settings=place(tmp_path / "1")) as cluster:
        one, two = cluster.brokers[1], cluster.brokers[2]
        restart(two, {**two.settings, **place(tmp_path / "2")})
        cluster.wait_alive(1, 2)
        assert cluster.create_straight("t", partitions=2, via=1, config={"diskless.enable": "true"}) is ErrorCode.NONE
        loser = wait_until(lambda: next(filter(refuses, (one, two)), None), within=30.0, what="one to be refused")
        winner, wrong = (one, tmp_path / "2") if loser is two else (two, tmp_path / "1")
        not_ready(loser, f"strandline.objects.url=file://{wrong}")
        write(one, "t", message_timeout_ms=1500)
        assert not list(wrong.rglob("wal/*/*"))
        assert ready(winner).startswith("ready")
