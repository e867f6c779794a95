"""Every client reads what every client wrote: codecs, keys, headers, timestamps, nulls."""

from __future__ import annotations

import pytest

from tests.broker import Broker
from tests.clients.conftest import TopicMaker
from tests.clients.drivers import CODECS, DRIVERS, Driver, Received, Sent, driver_name
from tests.moments import T0

each_driver = pytest.mark.parametrize("driver", DRIVERS, ids=driver_name)
each_writer = pytest.mark.parametrize("writer", DRIVERS, ids=driver_name)


def interesting_records(writer: Driver) -> list[Sent]:
    """Records that differ in everything a record can differ in; create times out of order."""
    null_header = (("none", None),) if writer.writes_null_headers else ()
    return [
        Sent(b"plain", b"key", (("h", b"v"),), T0 + 5000),
        Sent(b"", b"", (("empty", b""), *null_header), T0 + 1000),
        Sent(None, b"tombstone", (), T0 + 9000),
        Sent(b"no key", None, (), T0),
        Sent(
            bytes(range(256)) * 20, bytes(range(256)), (("twice", b"1"), ("twice", b"2"), ("ünï", b"\xff")), T0 + 7000
        ),
        Sent("æøå 漢字".encode(), "é".encode(), (), T0 + 7000),
        *(Sent(b"x" * 200, b"%d" % number, (), T0 + 10_000 + number) for number in range(50)),
    ]


def as_received(records: list[Sent], first_offset: int = 0, partition: int = 0) -> list[Received]:
    return [
        Received(partition, first_offset + index, sent.timestamp or -1, sent.key, sent.value, sent.headers)
        for index, sent in enumerate(records)
    ]


@each_writer
@pytest.mark.parametrize("codec", CODECS)
def test_every_client_reads_what_every_client_wrote(
    broker: Broker, new_topic: TopicMaker, writer: Driver, codec: str
) -> None:
    topic = new_topic(partitions=2)
    records = interesting_records(writer)

    offsets = writer.produce(broker.bootstrap, topic, records, partition=1, codec=codec)

    assert offsets == list(range(len(records)))
    for reader in DRIVERS:
        received = reader.consume(broker.bootstrap, topic, len(records), partition=1)
        assert received == as_received(records, partition=1), f"read by {reader.name}"


def test_codecs_mixed_in_one_partition_are_read_in_order(broker: Broker, new_topic: TopicMaker) -> None:
    topic = new_topic()
    expected: list[Received] = []
    for writer in DRIVERS:
        for codec in CODECS:
            records = [Sent(f"{writer.name} {codec} {n}".encode(), timestamp=T0 + n) for n in range(3)]
            assert writer.produce(broker.bootstrap, topic, records, codec=codec)[0] == len(expected)
            expected += as_received(records, first_offset=len(expected))

    for reader in DRIVERS:
        assert reader.consume(broker.bootstrap, topic, len(expected)) == expected, f"read by {reader.name}"
        assert reader.consume(broker.bootstrap, topic, 2, offset=20) == expected[20:22], f"read by {reader.name}"


@each_driver
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_log_append_time_is_the_brokers(broker: Broker, new_topic: TopicMaker, driver: Driver, codec: str) -> None:
    topic = new_topic(configs={"message.timestamp.type": "LogAppendTime"})

    driver.produce(broker.bootstrap, topic, [Sent(b"a", timestamp=T0), Sent(b"b", timestamp=T0 + 1)], codec=codec)

    for reader in DRIVERS:
        first, second = reader.consume(broker.bootstrap, topic, 2)
        # Both records came in one batch, and a batch has one append time.
        assert first.timestamp == second.timestamp
        assert first.timestamp != T0


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_the_topic_decides_the_codec(broker: Broker, new_topic: TopicMaker, codec: str) -> None:
    topic = new_topic(configs={"compression.type": codec})
    records = interesting_records(DRIVERS[0])

    DRIVERS[0].produce(broker.bootstrap, topic, records, codec="gzip")

    for reader in DRIVERS:
        assert reader.consume(broker.bootstrap, topic, len(records)) == as_received(records), f"read by {reader.name}"


@each_driver
def test_a_fetch_may_start_inside_a_batch(broker: Broker, new_topic: TopicMaker, driver: Driver) -> None:
    """In another system a fetch that starts inside the last batch returned nothing for ever."""
    topic = new_topic()
    records = [Sent(b"%d" % number, timestamp=T0) for number in range(10)]
    driver.produce(broker.bootstrap, topic, records)

    for offset in range(10):
        assert driver.consume(broker.bootstrap, topic, 1, offset=offset) == as_received(records)[offset : offset + 1]
