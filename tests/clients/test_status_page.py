"""The status page of a real broker."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
from confluent_kafka import Consumer, TopicPartition

from tests.broker import BrokerProcess, running_broker
from tests.waiting import wait_until
from tests.wirelevel.raw import batch, connected, create_topic, produce

_GROUP = re.compile(r'<td data-label="group">(.*?)</td>.*?data-label="lag">(.*?)</td>')


def lags(broker: BrokerProcess) -> dict[str, str]:
    """The lag of each group on the page."""
    try:
        answer = httpx.get(f"{broker.http}/", timeout=20)
    except httpx.ConnectError:
        return {}  # HTTP is served a moment after Kafka clients are
    assert answer.status_code == 200
    return dict(_GROUP.findall(answer.text))


def test_the_lag_of_a_group_is_shown_after_a_restart_whether_or_not_somebody_has_read_since(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data") as broker:
        with connected(broker.bootstrap) as connection:
            create_topic(connection, "classic")
            create_topic(connection, "diskless", diskless_enable="true")
            for topic in ("classic", "diskless"):
                assert produce(connection, topic, batch(b"1", b"2", b"3"))[0] == 0
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"})
        read = [TopicPartition("classic", 0, 1), TopicPartition("diskless", 0, 1)]
        consumer.commit(offsets=read, asynchronous=False)
        consumer.close()
        wait_until(lambda: lags(broker) == {"g": "4"}, what="the group and its lag")
        broker.restart()
        wait_until(lambda: lags(broker) == {"g": "4"}, what="the group and its lag")
