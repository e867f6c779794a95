"""Counts what Fetch requests read from each topic, and their errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from strandline.hybrid.traffic import TrafficByTopic
from strandline.server.exchange import Exchange
from strandline.wire.errors import ErrorCode
from strandline.wire.fetch_codec import FetchAnswer

# As in Kafka these do not count as failed requests: a consumer that knows an old leader or asks for deleted records.
_EXPECTED_ERRORS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_OUT_OF_RANGE,
    }
)


def count_errors(exchange: Exchange, answers: Iterable[FetchAnswer]) -> None:
    """Count the errors of an answer by their codes."""
    for answer in answers:
        if answer.error_code:
            exchange.count_error(answer.error_code)


def count_reads(traffic: TrafficByTopic, answers: Iterable[FetchAnswer]) -> None:
    """Count the answers of a consumer's Fetch. Partitions of its session that have nothing new are not among them."""
    for answer in answers:
        if answer.error_code:
            known = traffic.get(answer.topic)
            if known is not None:
                known.fetch_requests += 1
                known.fetch_failures += answer.error_code not in _EXPECTED_ERRORS
            continue
        topic = traffic[answer.topic]
        topic.fetch_requests += 1
        if answer.records is not None:
            topic.bytes_out += answer.records.length
