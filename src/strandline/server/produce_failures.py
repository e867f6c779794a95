"""What a Produce request answers for a partition whose records are not acknowledged, and how that is counted."""

from __future__ import annotations

from typing import Final

from strandline.errors import InvalidRecord, InvalidTimestamp, StrandlineError
from strandline.hybrid.traffic import TopicTraffic
from strandline.wire.errors import ErrorCode, error_code_of, message_of
from strandline.wire.produce_codec import ProduceAnswer

TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
# As in Kafka these do not count as failed requests: a producer that knows an old leader, or sends what no broker takes.
_EXPECTED: Final = TOO_LARGE | {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.CORRUPT_MESSAGE,
}


def failure_of(error: StrandlineError) -> ProduceAnswer:
    """The answer for one partition."""
    return ProduceAnswer(
        error_code=int(error_code_of(error)),
        error_message=message_of(error),
        record_errors=error.record_errors if isinstance(error, InvalidRecord | InvalidTimestamp) else (),
    )


def count_failure(answer: ProduceAnswer, traffic: TopicTraffic) -> None:
    """A request to this topic has failed, unless the error is one that producers meet in good order."""
    if answer.error_code not in _EXPECTED:
        traffic.produce_failures += 1


def not_replicated_within(timeout_ms: int) -> str:
    """Of a request that has timed out. Records that are written stay written, but are not known to be replicated."""
    return f"The records were not replicated within {timeout_ms} ms."
