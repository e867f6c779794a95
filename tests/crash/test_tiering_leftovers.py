"""Split files that a stopped run had written and not recorded go when its claims are given up, without a search."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from strandline.conversion_api.values import ReleaseFiles
from strandline.pipeline.client import TieringClient
from tests.broker import BrokerProcess, running_broker
from tests.clients.tiering import create, numbered, produce
from tests.crash.converting import (
    DISKLESS,
    SECONDS,
    SETTINGS,
    SIGKILLED,
    objects,
    read_logs,
    rows_left,
    running_driver,
    unreferenced,
)
from tests.pipeline.world import Pipeline
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """It never searches for orphans."""
    assert SETTINGS["strandline.objects.orphan.scan.interval.ms"] == "0"
    with running_broker(tmp_path_factory.mktemp("leftovers") / "data", SETTINGS) as running:
        yield running


def new_topic(broker: BrokerProcess, name: str) -> str:
    create(AdminClient({"bootstrap.servers": broker.bootstrap}), name, DISKLESS)
    produce(broker, name, numbered(0, 30))
    return name


def split_files(broker: BrokerProcess) -> list[str]:
    return sorted(key for key in objects(broker) if key.startswith("split/"))


@pytest.mark.parametrize("point", ["tiering.split.after_write", "tiering.driver.before_record"])
def test_a_driver_is_killed_between_writing_and_recording(broker: BrokerProcess, point: str) -> None:
    """The broker that knows of its claims is restarted before they expire."""
    topic = new_topic(broker, f"killed-{point}")
    before, kept = read_logs(broker.bootstrap, [(topic, 0)]), split_files(broker)
    with running_driver(broker.bootstrap, topic, crash_at=point) as driver:
        assert driver.wait() == SIGKILLED, driver.said
    assert unreferenced(broker) != []
    broker.kill()
    broker.start()
    wait_until(lambda: split_files(broker) == kept, within=SECONDS, what="the split files to go")
    assert read_logs(broker.bootstrap, before) == before


def test_a_driver_that_is_stopped_gives_its_claims_back(broker: BrokerProcess) -> None:
    """As after SIGTERM: what it has recorded stays."""
    topic = new_topic(broker, "stopped")
    before = split_files(broker)
    with TieringClient(broker.bootstrap) as client:
        pipeline = Pipeline(client, (topic,))
        first, *others = pipeline.claim()
        recorded = pipeline.write_together([first])
        pipeline.record([first], recorded.splits)
        lost = pipeline.write_together(others).splits
        assert {split.file.object_key for split in lost} <= set(split_files(broker))
        keys = tuple(file.object_key for file in others)
        client.release_files(ReleaseFiles(claimant=pipeline.claimant, object_keys=keys))
        kept = sorted([*before, *(split.file.object_key for split in recorded.splits)])
        wait_until(lambda: split_files(broker) == kept, within=SECONDS, what="the split files to go")
        assert rows_left(broker, "inkless_split_batch") == {"inkless_split_batch": len(kept)}
