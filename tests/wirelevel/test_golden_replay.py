"""The requests of five real clients, in every version we offer, get the error codes that Kafka gave them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.broker import EXTERNAL_BOOTSTRAP, running_broker
from tests.wirelevel.replay import EXPECTED, SETTINGS, replay, replayable

# Kafka has no answer to ShareFetch for a topic id that it does not know; we say so.
DEVIATIONS = {
    "java-ShareFetch-v2-request-528": [
        "error_code=NONE",
        "responses.partitions.acknowledge_error_code=NONE",
        "responses.partitions.error_code=UNKNOWN_TOPIC_ID",
    ],
}
# Whether a share group has offsets yet depends on how quickly its state is created.
TIMED = {"java-DescribeShareGroupOffsets-v1-request-534"}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[str]]]:
    if EXTERNAL_BOOTSTRAP:
        yield replay(EXTERNAL_BOOTSTRAP)
        return
    with running_broker(tmp_path_factory.mktemp("broker") / "data", SETTINGS) as broker:
        yield replay(broker.bootstrap)


@pytest.mark.parametrize("frame", sorted({str(frame) for frame in replayable()} - TIMED))
def test_a_recorded_request_gets_kafkas_error_codes(answers: dict[str, list[str]], frame: str) -> None:
    kafkas: list[str] = json.loads(EXPECTED.read_text())[frame]
    assert answers[frame] == DEVIATIONS.get(frame, kafkas)
