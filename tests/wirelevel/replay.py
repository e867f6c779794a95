"""Sends the requests that real clients once sent to Kafka to a fresh broker, and notes the error codes it answers.

The expected codes come from a fresh Apache Kafka 4.3.1 asked the same things in the same order. To note them anew:

    python -m tests.wirelevel.replay 127.0.0.1:9092 tests/data/kafka-4.3.1-replayed-codes.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from strandline.wire.api import API_VERSIONS, ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.describe_transactions import DescribeTransactionsRequest
from strandline.wire.messages.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.heartbeat import HeartbeatRequest
from strandline.wire.messages.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.metadata import MetadataRequest
from strandline.wire.registry import decode_response
from tests.waiting import wait_until
from tests.wire.frames import Frame, golden_frames
from tests.wirelevel.raw import RawConnection, connected, create_topic, end_offset

# The same in both brokers. With auto-creation the answers would depend on how quickly a topic comes into being.
SETTINGS = {"auto.create.topics.enable": "false", "group.initial.rebalance.delay.ms": "0", "num.partitions": "4"}
_CHANGING = {ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS}
_RECORDED_IDS = 100
EXPECTED = Path(__file__).parent.parent / "data" / "kafka-4.3.1-replayed-codes.json"


def replayable() -> Iterator[Frame]:
    """Every recorded request of an API and version that we offer and that has an answer, in the order of recording."""
    frames = golden_frames()
    answered = {(frame.client, frame.exchange) for frame in frames if not frame.is_request}
    requests = [frame for frame in frames if frame.is_request and (frame.client, frame.exchange) in answered]
    for frame in sorted(requests, key=lambda one: one.exchange):
        versions = API_VERSIONS.get(ApiKey(frame.api_key)) if frame.api_key in set(ApiKey) else None
        if versions is not None and versions.min <= frame.api_version <= versions.max:
            yield frame


def replay(bootstrap: str) -> dict[str, list[str]]:
    """Send each request on a connection of its own; the error codes of each answer, or how it failed."""
    codes: dict[str, list[str]] = {}
    with connected(bootstrap) as observer:
        wait_until(lambda: has_coordinator(observer), what="the group coordinator")
        wait_until(lambda: _has_transactions(observer), what="the transaction coordinator")
        wait_until(lambda: _has_used_recorded_ids(observer), what="producer ids")
        create_topic(observer, "wire-raw", partitions=2)  # existed when the requests were recorded
        create_topic(observer, "fx-codecs", partitions=3)
        for frame in replayable():
            codes[str(frame)] = _answer(bootstrap, frame)
            if frame.api_key in _CHANGING:
                wait_until(lambda: _is_settled(observer), what="partitions to follow the metadata")
    return codes


def _answer(bootstrap: str, frame: Frame) -> list[str]:
    with connected(bootstrap) as connection:
        connection.send_frame(frame.data)
        answer = connection.receive_frame()
    assert answer[:4] == frame.data[4:8], "the answer has another correlation id"
    _, message = decode_response(ApiKey(frame.api_key), frame.api_version, memoryview(answer))
    return sorted(set(error_codes(message)))


def error_codes(message: Any, path: str = "") -> Iterator[str]:
    """Where in a message which error code is, as `topics.error_code=3`."""
    if isinstance(message, list):
        for item in message:
            yield from error_codes(item, path)
    elif is_dataclass(message):
        for one in fields(message):
            value = getattr(message, one.name)
            if one.name.endswith("error_code"):
                yield f"{path}{one.name}={ErrorCode(value).name}"
            else:
                yield from error_codes(value, f"{path}{one.name}.")


def has_coordinator(connection: RawConnection) -> bool:
    """Groups are spread over partitions that load one by one: all of them must answer before we begin."""
    names = [f"warm-up-{number}" for number in range(32)]
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=names)
    found = connection.call(ApiKey.FIND_COORDINATOR, 4, request).coordinators
    ready = all(one.error_code == 0 for one in found)
    for name in names if ready else []:
        heartbeat = HeartbeatRequest(group_id=name, generation_id=1, member_id="nobody")
        ready &= connection.call(ApiKey.HEARTBEAT, 4, heartbeat).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    return ready


def _has_transactions(connection: RawConnection) -> bool:
    names = [f"warm-up-{number}" for number in range(32)]
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=names)
    found = connection.call(ApiKey.FIND_COORDINATOR, 4, request).coordinators
    if any(one.error_code for one in found):
        return False
    described = connection.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest(transactional_ids=names))
    return all(one.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND for one in described.transaction_states)


def _has_used_recorded_ids(connection: RawConnection) -> bool:
    """Whether the next producer id is above those in the recorded requests: none of them is somebody's by chance."""
    answer = connection.call(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(transactional_id=None))
    return bool(answer.producer_id > _RECORDED_IDS)


def _is_settled(connection: RawConnection) -> bool:
    """Whether every partition in the metadata has a leader that answers for it."""
    topics = connection.call(ApiKey.METADATA, 12, MetadataRequest(topics=None)).topics
    return all(
        end_offset(connection, topic.name, one.partition_index)[0] == 0 for topic in topics for one in topic.partitions
    )


def main() -> None:
    bootstrap, target = sys.argv[1:]
    rows = (f"{json.dumps(name)}: {json.dumps(codes)}" for name, codes in replay(bootstrap).items())
    Path(target).write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
