"""The requests of five real clients, in every version we offer, get the error codes that Kafka gave them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.broker import EXTERNAL_BOOTSTRAP, running_broker
from tests.wirelevel.replay import EXPECTED, SETTINGS, replay, replayable

NO_TRANSACTIONS = "transactions are not offered yet"
NO_SUCH_RESOURCE = "share groups and client metrics, whose settings these are, are not offered"

NO_PRODUCER_IDS_YET = "a freshly started Kafka has no producer ids to give yet; we have"

_NOT_YET: dict[tuple[str, str], tuple[str, ...]] = {
    (NO_TRANSACTIONS, "error_code=TRANSACTIONAL_ID_AUTHORIZATION_FAILED"): (
        "confluent-InitProducerId-v4-request-88",
        "kafka-python-InitProducerId-v4-request-199",
        "aiokafka-FindCoordinator-v1-request-310",
        "aiokafka-InitProducerId-v0-request-311",
        "java-InitProducerId-v5-request-482",
        "raw-InitProducerId-v1-request-691",
        "raw-InitProducerId-v3-request-693",
        "raw-InitProducerId-v5-request-695",
    ),
    (NO_TRANSACTIONS, "coordinators.error_code=TRANSACTIONAL_ID_AUTHORIZATION_FAILED, error_code=NONE"): (
        "kafka-python-FindCoordinator-v6-request-198",
    ),
    (NO_SUCH_RESOURCE, "responses.error_code=INVALID_REQUEST"): (
        "java-IncrementalAlterConfigs-v1-request-523",
        "java-IncrementalAlterConfigs-v1-request-541",
    ),
    (NO_PRODUCER_IDS_YET, "error_code=NONE"): (
        "confluent-InitProducerId-v4-request-17",
        "confluent-InitProducerId-v4-request-18",
    ),
}

# Where our answer is another one than Kafka's.
DEVIATIONS = {frame: answer.split(", ") for (_, answer), frames in _NOT_YET.items() for frame in frames}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[str]]]:
    if EXTERNAL_BOOTSTRAP:
        yield replay(EXTERNAL_BOOTSTRAP)
        return
    with running_broker(tmp_path_factory.mktemp("broker") / "data", SETTINGS) as broker:
        yield replay(broker.bootstrap)


@pytest.mark.parametrize("frame", [str(frame) for frame in replayable()])
def test_a_recorded_request_gets_kafkas_error_codes(answers: dict[str, list[str]], frame: str) -> None:
    kafkas: list[str] = json.loads(EXPECTED.read_text())[frame]
    assert answers[frame] == DEVIATIONS.get(frame, kafkas)
