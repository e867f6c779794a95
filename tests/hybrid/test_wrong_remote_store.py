"""Brokers whose settings name another remote storage than the one that holds their segments."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from strandline.objects.marker import REMOTE_STORE_ID_KEY
from tests.broker import BrokerProcess, running_broker
from tests.clients.tiering import QUICK, create, numbered, produce, read, remote_logs, values, wait_tiered
from tests.clients.two_brokers import running_cluster
from tests.hybrid.test_starting import ready
from tests.hybrid.test_wrong_store import forget, not_ready, refused, restart
from tests.postgres import postgres, postgres_url
from tests.waiting import wait_until

__all__ = ["postgres", "postgres_url"]

COUNT = 60


def place(path: Path) -> dict[str, str]:
    return {**QUICK, "rsm.config.url": f"file://{path}"}


@contextmanager
def tiered_broker(data: Path) -> Iterator[BrokerProcess]:
    """A broker with a topic t, most of which is in remote storage alone."""
    with running_broker(data, place(data / "remote")) as broker:
        with AdminClient({"bootstrap.servers": broker.bootstrap}) as admin:
            create(admin, "t")
        produce(broker, "t", numbered(0, COUNT))
        wait_tiered(broker, "t")
        yield broker


def test_a_broker_with_another_storage_does_not_start_and_the_old_one_goes_on(tmp_path: Path) -> None:
    right, wrong = tmp_path / "data" / "remote", tmp_path / "wrong"
    with tiered_broker(tmp_path / "data") as broker:
        told = refused(broker, place(wrong))
        for word in (f"rsm.config.url=file://{wrong}", f"file://{right}", "strandline stores accept remote"):
            assert word in told
        assert "Traceback" not in told
        assert not (wrong / REMOTE_STORE_ID_KEY).exists()
        restart(broker, place(right))
        assert values(read(broker, "t", COUNT)) == list(range(COUNT))


def test_a_storage_from_before_storages_had_ids_is_recorded_if_it_has_segments(tmp_path: Path) -> None:
    right, wrong = tmp_path / "data" / "remote", tmp_path / "wrong"
    with tiered_broker(tmp_path / "data") as broker:
        broker.stop()
        forget(tmp_path / "data", right)
        (right / REMOTE_STORE_ID_KEY).unlink()
        assert f"rsm.config.url=file://{wrong}" in refused(broker, place(wrong))
        restart(broker, place(right))
        wait_until((right / REMOTE_STORE_ID_KEY).exists, what="the storage to be recorded")
        assert values(read(broker, "t", COUNT)) == list(range(COUNT))
        assert "the database expects the store" in refused(broker, place(wrong))


def test_an_empty_directory_in_place_of_the_storage_stops_copies_until_it_is_back(tmp_path: Path) -> None:
    right, aside = tmp_path / "data" / "remote", tmp_path / "aside"
    with tiered_broker(tmp_path / "data") as broker:
        copied = len(remote_logs(broker, "t"))
        right.rename(aside)
        right.mkdir()
        not_ready(broker, REMOTE_STORE_ID_KEY, "mounted")
        produce(broker, "t", numbered(COUNT, COUNT))
        assert not list(right.rglob("*.log"))
        shutil.rmtree(right)
        aside.rename(right)
        wait_until(lambda: ready(broker).startswith("ready"), what="the storage to be seen")
        wait_until(lambda: len(remote_logs(broker, "t")) > copied, what="copies to go on")
        wait_tiered(broker, "t")
        assert values(read(broker, "t", 2 * COUNT)) == list(range(2 * COUNT))


@pytest.mark.timeout(240)
def test_one_of_two_brokers_with_another_storage_does_not_start(tmp_path: Path, postgres_url: str) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    with running_cluster(tmp_path, postgres_url, settings=place(right)) as cluster:
        one, two = cluster.brokers[1], cluster.brokers[2]
        assert (right / REMOTE_STORE_ID_KEY).exists()
        assert f"rsm.config.url=file://{wrong}" in refused(two, {**two.settings, **place(wrong)})
        wait_until(lambda: ready(one).startswith("ready"), what="the other broker to be ready")


def test_a_copy_of_the_storage_at_another_address_is_refused_until_it_is_accepted(tmp_path: Path) -> None:
    """It has the id of the storage, but may lack the newest segments."""
    right, copy = tmp_path / "data" / "remote", tmp_path / "copy"
    with tiered_broker(tmp_path / "data") as broker:
        shutil.copytree(right, copy)
        copied = len(remote_logs(broker, "t"))
        produce(broker, "t", numbered(COUNT, COUNT))
        wait_until(lambda: len(remote_logs(broker, "t")) > copied, what="segments that the copy lacks")
        wait_tiered(broker, "t")
        told = refused(broker, place(copy))
        for word in (f"rsm.config.url=file://{copy}", f"file://{right}", "a copy", "strandline stores accept remote"):
            assert word in told
        restart(broker, place(right))
        assert values(read(broker, "t", 2 * COUNT)) == list(range(2 * COUNT))


def test_the_storage_of_a_data_directory_moves_with_it(tmp_path: Path) -> None:
    """The database is there, too: a copy of both is as old as the records that it knows."""
    with running_broker(tmp_path / "data", QUICK) as broker:
        with AdminClient({"bootstrap.servers": broker.bootstrap}) as admin:
            create(admin, "t")
        produce(broker, "t", numbered(0, COUNT))
        wait_tiered(broker, "t")
    shutil.move(tmp_path / "data", tmp_path / "moved")
    with running_broker(tmp_path / "moved", QUICK) as broker:
        assert values(read(broker, "t", COUNT)) == list(range(COUNT))
