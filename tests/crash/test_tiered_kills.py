"""SIGKILL at one place after the other while producers write to a tiered topic: nothing is lost or left over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from strandline.crash import ENVIRONMENT_VARIABLE
from tests.broker import BrokerProcess, running_broker
from tests.clients.tiering import QUICK, SECONDS, TIERED, create, earliest, first_local_offset
from tests.crash.tiered_store import Listing, described, list_bucket, list_directory, s3_settings, wait_tidy
from tests.crash.writers import Writer, judge, read_all, wait_for_more
from tests.s3 import S3, s3, s3_url
from tests.waiting import wait_until

__all__ = ["s3", "s3_url"]

SIGKILLED = -9
KEPT, EXPIRING, DELETED = "kept", "expiring", "deleted"
PARTITIONS = 2
SETTINGS = {**TIERED, "internal.segment.bytes": "55000"}
COPYING = (
    "remote.storage.after_indexes:3",
    "remote.storage.after_log:2",
    "remote.copy.after_data:3",
    "remote.metadata.after_append:5",
    "log.retention.removed_segment:2",
)
EXPIRY = (
    "remote.delete.after_log_start:2",
    "remote.delete.after_started:2",
    "remote.storage.after_log_deleted:3",
)
DELETION = (
    "remote.partition_delete.after_marked",
    "remote.partition_delete.after_started",
    "remote.partition_delete.after_segments",
)

pytestmark = pytest.mark.timeout(300)


def die_at(broker: BrokerProcess, place: str, act: Callable[[], object] | None) -> None:
    """Kill the broker, and start it so that it dies again, by `act` or by what goes on anyway. It is down then."""
    broker.kill()
    broker.environment = {ENVIRONMENT_VARIABLE: place}
    if act is None:
        broker.spawn()
    else:
        broker.start()
        act()
    assert broker.wait(within=60) == SIGKILLED, place
    broker.environment = {}


def delete_topic(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    with suppress(KafkaException):  # the broker may die before it answers
        admin.delete_topics([DELETED])[DELETED].result(SECONDS)


@contextmanager
def writing(broker: BrokerProcess, topic: str, partitions: int) -> Iterator[Writer]:
    """A producer of a hundred kilobytes per second."""
    writer = Writer(broker.bootstrap, topic, topic, partitions, record_size=1000, pause=0.004)
    writer.start()
    try:
        yield writer
    finally:
        writer.stop()


def is_tiered(broker: BrokerProcess, topic: str) -> bool:
    return first_local_offset(broker, topic) > 0


def survive(broker: BrokerProcess, listing: Listing, places: tuple[str, ...]) -> None:
    """Die at these places and at those of a deletion, and then judge."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    create(admin, KEPT, SETTINGS, partitions=PARTITIONS)
    create(admin, EXPIRING, {**SETTINGS, "retention.bytes": "120000"})
    create(admin, DELETED, SETTINGS)
    with writing(broker, DELETED, 1):
        wait_until(partial(is_tiered, broker, DELETED), "segments of the topic that will be deleted")
    with writing(broker, KEPT, PARTITIONS) as writer, writing(broker, EXPIRING, 1):
        for place in places:
            die_at(broker, place, None)
        die_at(broker, DELETION[0], partial(delete_topic, broker))
        for place in DELETION[1:]:
            die_at(broker, place, None)  # it goes on with the deletion
        broker.start()
        wait_for_more([writer], 100)
    assert writer.failures == []
    verdict = judge([writer], read_all(broker.bootstrap, KEPT, PARTITIONS))
    assert verdict.is_clean, verdict
    wait_tidy(broker, listing)
    assert is_tiered(broker, KEPT)
    verdict = judge([writer], read_all(broker.bootstrap, KEPT, PARTITIONS))
    assert verdict.is_clean, verdict
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    assert earliest(admin, EXPIRING) > 0
    assert not [row for row in described(broker).values() if row["topic"] == DELETED]


def test_deaths_on_a_directory(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data", QUICK) as broker:
        survive(broker, partial(list_directory, broker.data_dir / "remote"), (*COPYING, *EXPIRY))


def test_deaths_on_s3(tmp_path: Path, s3: S3, s3_url: str) -> None:
    with running_broker(tmp_path / "data", {**QUICK, **s3_settings(s3, s3_url)}) as broker:
        survive(broker, partial(list_bucket, s3, s3_url), (COPYING[1], EXPIRY[2]))
