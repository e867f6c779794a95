"""Brokers that start before their database does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker import BrokerProcess
from tests.link import Link
from tests.postgres import postgres, postgres_url
from tests.waiting import wait_until

__all__ = ["postgres", "postgres_url"]

WAITING = r"waiting for the database, for \d+ more seconds at most: PostgreSQL at 127\.0\.0\.1:{port} "


@pytest.fixture
def link(postgres_url: str) -> Iterator[Link]:
    """The way to the database, which is down at first."""
    directory = postgres_url.rpartition("host=")[2]
    with Link(f"{directory}/.s.PGSQL.5432") as link:
        link.go_down()
        yield link


def broker_behind(link: Link, tmp_path: Path, postgres_url: str, **settings: str) -> BrokerProcess:
    address = postgres_url.partition("?")[0].replace("@", f"@127.0.0.1:{link.port}")
    given = {"strandline.metadata.url": address, **{name.replace("_", "."): text for name, text in settings.items()}}
    return BrokerProcess(tmp_path / "data", settings=given)


def wait_waiting(broker: BrokerProcess, link: Link) -> None:
    pattern = re.compile(WAITING.format(port=link.port))
    wait_until(lambda: pattern.search(broker.log_text), within=30.0, what="the broker to say that it waits")


def test_a_broker_waits_for_its_database_and_says_so(tmp_path: Path, postgres_url: str, link: Link) -> None:
    broker = broker_behind(link, tmp_path, postgres_url)
    try:
        broker.spawn()
        wait_waiting(broker, link)
        link.come_back()
        wait_until(lambda: "serves clients on" in broker.log_text, within=30.0, what="the broker to serve")
        assert broker.stop() == 0
    finally:
        broker.close()


def test_a_broker_that_has_waited_for_long_enough_ends(tmp_path: Path, postgres_url: str, link: Link) -> None:
    broker = broker_behind(link, tmp_path, postgres_url, strandline_metadata_wait_ms="300")
    broker.spawn()
    assert broker.wait() == 1
    last = broker.log_text.splitlines()[-1]
    assert last.startswith(f"strandline: PostgreSQL at 127.0.0.1:{link.port} ")
    assert "(strandline.metadata.wait.ms)" in last
    assert "Traceback" not in broker.log_text


def test_a_broker_that_waits_can_be_stopped(tmp_path: Path, postgres_url: str, link: Link) -> None:
    broker = broker_behind(link, tmp_path, postgres_url, strandline_metadata_wait_ms="600000")
    broker.spawn()
    try:
        wait_waiting(broker, link)
        assert broker.stop() == 0
        assert "Traceback" not in broker.log_text
    finally:
        broker.close()
