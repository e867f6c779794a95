"""Metrics of what clients write and read, by topic, for topics of every kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from strandline.admin.http.metrics.families import Family, counters
from strandline.admin.status import BrokerStatus
from strandline.hybrid.traffic import TrafficTotals

# Kafka has a series without a topic for all topics together. To Prometheus, an empty label is none.
ALL_TOPICS: Final = ""


def _by_topic(value: Callable[[TrafficTotals], int]) -> Callable[[BrokerStatus], Mapping[str, float]]:
    return lambda status: {
        ALL_TOPICS: value(status.traffic),
        **{row.name: value(row.traffic) for row in status.topic_rows},
    }


def _traffic(name: str, text: str, value: Callable[[TrafficTotals], int]) -> Family[BrokerStatus]:
    return counters("kafka_server_brokertopicmetrics_" + name, text, "topic", _by_topic(value))


TRAFFIC: Final[tuple[Family[BrokerStatus], ...]] = (
    _traffic("messagesin", "Records appended through this broker.", lambda t: t.messages_in),
    _traffic("bytesin", "Bytes of record batches appended through this broker.", lambda t: t.bytes_in),
    _traffic("bytesout", "Bytes of record batches given to consumers.", lambda t: t.bytes_out),
    _traffic("bytesrejected", "Bytes of batches larger than the topic allows.", lambda t: t.bytes_rejected),
    _traffic("totalproducerequests", "Partitions in Produce requests.", lambda t: t.produce_requests),
    _traffic("totalfetchrequests", "Partitions read for Fetch requests of consumers.", lambda t: t.fetch_requests),
    _traffic(
        "failedproducerequests",
        "Partitions in Produce requests that failed, and not because of the producer.",
        lambda t: t.produce_failures,
    ),
    _traffic(
        "failedfetchrequests",
        "Partitions in Fetch requests that failed, and not because of the consumer.",
        lambda t: t.fetch_failures,
    ),
)
