"""The requests of five real clients, in every version we offer, get the error codes that Kafka gave them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.broker import EXTERNAL_BOOTSTRAP, running_broker
from tests.wirelevel.replay import EXPECTED, SETTINGS, replay, replayable

# Kafka's answer is another one until we have what it needs; each entry says what is missing.
DEVIATIONS: dict[str, tuple[str, list[str]]] = {}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[str]]]:
    if EXTERNAL_BOOTSTRAP:
        yield replay(EXTERNAL_BOOTSTRAP)
        return
    with running_broker(tmp_path_factory.mktemp("broker") / "data", SETTINGS) as broker:
        yield replay(broker.bootstrap)


@pytest.mark.parametrize("frame", [str(frame) for frame in replayable()])
def test_a_recorded_request_gets_kafkas_error_codes(answers: dict[str, list[str]], frame: str) -> None:
    expected: list[str] = json.loads(EXPECTED.read_text())[frame]
    if frame in DEVIATIONS:
        _, expected = DEVIATIONS[frame]
    assert answers[frame] == expected
