"""A storage for segments that is cut off or hangs under load: producers and local readers do not notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from strandline.wire.errors import ErrorCode
from tests.broker import BrokerProcess, running_broker
from tests.clients.tiering import QUICK, TIERED, create, first_local_offset, read
from tests.crash.test_tiered_damage import fetch_error
from tests.crash.tiered_store import list_bucket, s3_settings, wait_tidy
from tests.crash.writers import Writer, judge, read_all, wait_for_more
from tests.link import Link
from tests.s3 import S3, s3, s3_link, s3_url
from tests.waiting import wait_until

__all__ = ["s3", "s3_link", "s3_url"]

TOPIC = "numbers"
WAIT = {"remote.fetch.max.wait.ms": "1000"}

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def broker(tmp_path: Path, s3: S3, s3_url: str, s3_link: Link) -> Iterator[BrokerProcess]:
    settings = {**QUICK, **WAIT, **s3_settings(s3, s3_url, port=s3_link.port)}
    with running_broker(tmp_path / "data", settings) as running:
        create(
            AdminClient({"bootstrap.servers": running.bootstrap}), TOPIC, {**TIERED, "internal.segment.bytes": "55000"}
        )
        yield running


@pytest.fixture
def writer(broker: BrokerProcess) -> Iterator[Writer]:
    writer = Writer(broker.bootstrap, TOPIC, "writer", 1, record_size=1000, pause=0.004)
    writer.start()
    yield writer
    writer.stop()


def is_refused(broker: BrokerProcess) -> bool:
    """Whether a remote read ends in an error after which clients ask again, or in nothing for now."""
    return fetch_error(broker, TOPIC, 0) in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.REQUEST_TIMED_OUT)


@pytest.mark.parametrize("trouble", [Link.go_down, Link.hang], ids=["cut", "hangs"])
def test_only_what_needs_the_storage_waits_for_it(
    broker: BrokerProcess, s3_link: Link, s3: S3, s3_url: str, writer: Writer, trouble: Callable[[Link], None]
) -> None:
    wait_until(lambda: first_local_offset(broker, TOPIC) > 0, "the first segment to leave the disk")
    trouble(s3_link)
    before = first_local_offset(broker, TOPIC)
    wait_for_more([writer], 300)
    local = first_local_offset(broker, TOPIC)
    assert local <= before + 55 * 2, "nothing leaves the disk that is not copied"
    assert len(read(broker, TOPIC, 200, offset=local)) == 200
    wait_until(partial(is_refused, broker), "an error for a reader of what is remote")
    wait_for_more([writer], 100)
    s3_link.come_back()
    wait_until(lambda: first_local_offset(broker, TOPIC) > local + 200, "copies to go on")
    writer.stop()
    assert writer.failures == []
    verdict = judge([writer], read_all(broker.bootstrap, TOPIC, 1))
    assert verdict.is_clean, verdict
    wait_tidy(broker, partial(list_bucket, s3, s3_url))
