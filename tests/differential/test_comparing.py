"""What of two answers is compared, and how a difference is told."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from bench.systems import StrandlineBroker
from bench.tree import SourceTree
from differential.__main__ import main
from differential.compare import Unequal, unequal
from differential.findings import Findings
from differential.normal import NOW, Normal
from differential.places import Place
from differential.sides import Side

from strandline.records import ControlType, EndTransactionMarker, Record, build_batch, build_marker
from strandline.wire.api import ApiKey
from strandline.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from strandline.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from strandline.wire.registry import encode_response
from tests.moments import T0

SINCE = T0 + 43_200_000
CLOCK = T0 + 86_400_000


@pytest.fixture
def side(tmp_path_factory: pytest.TempPathFactory) -> Side:
    """A broker that does not run."""
    directory = tmp_path_factory.mktemp("side")
    side = Side("new", StrandlineBroker("new", [], SourceTree(directory), directory, {}))
    side.topic_ids["classic-plain"] = UUID(int=7)
    return side


def fetched(side: Side, records: bytes, *, version: int = 16, number: int = 0) -> Any:
    data = PartitionData(partition_index=number, high_watermark=5, records=records)
    topic = FetchableTopicResponse(topic="classic-plain", topic_id=UUID(int=7), partitions=[data])
    response = FetchResponse(session_id=123, throttle_time_ms=4, responses=[topic])
    return Normal(SINCE).answer(side, ApiKey.FETCH, version, encode_response(ApiKey.FETCH, version, 9, response))[0]


def marker(time: int, *, coordinator_epoch: int = 0) -> bytes:
    end = EndTransactionMarker(ControlType.COMMIT, coordinator_epoch)
    return bytes(build_marker(end, producer_id=4, producer_epoch=1, timestamp_ms=time))


def test_every_byte_of_records_counts(side: Side) -> None:
    good = bytes(build_batch([Record(0, T0, b"k", b"value")]))
    other = bytes(build_batch([Record(0, T0, b"k", b"valuf")]))
    damaged = good[:-1] + bytes([good[-1] ^ 1])
    told = [fetched(side, data)["responses"]["classic-plain/0"]["records"] for data in (good, other, damaged)]
    assert len({line for lines in told for line in lines}) == 3
    assert "WRONG CHECKSUM" in told[2][0]
    assert fetched(side, good + b"rest")["responses"]["classic-plain/0"]["records"][1].startswith("4 bytes of a batch")


def test_the_time_of_a_marker_does_not_count_and_the_rest_of_it_does(side: Side) -> None:
    assert fetched(side, marker(CLOCK)) == fetched(side, marker(CLOCK + 1))
    assert fetched(side, marker(CLOCK)) != fetched(side, marker(CLOCK, coordinator_epoch=1))


def test_ids_that_a_broker_has_chosen_do_not_count(side: Side) -> None:
    plain = fetched(side, b"")
    assert plain["session_id"] == "a session"
    assert [*plain["responses"]] == ["classic-plain/0"]


@pytest.mark.parametrize(("time", "told"), [(T0 + 5, T0 + 5), (CLOCK, NOW), (-1, -1)])
def test_only_times_of_a_clock_are_left_out(side: Side, time: int, told: Any) -> None:
    one = ListOffsetsPartitionResponse(timestamp=time, offset=3)
    response = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="classic-plain", partitions=[one])])
    frame = encode_response(ApiKey.LIST_OFFSETS, 7, 1, response)
    plain, _ = Normal(SINCE).answer(side, ApiKey.LIST_OFFSETS, 7, frame)
    assert plain["topics"][0]["partitions"][0]["timestamp"] == told


def test_what_differs_is_named_with_its_place() -> None:
    old = {"a": [1, {"b": None}], "c": 0}
    new = {"a": [1, {"b": []}, 5], "c": False}
    assert [*unequal(old, new)] == [
        Unequal("a[1].b", None, []),
        Unequal("a[2]", "(nothing)", 5),
        Unequal("c", 0, False),
    ]
    assert [*unequal(old, old)] == []


def test_differences_that_are_alike_are_told_once() -> None:
    findings = Findings()
    place, other = Place("classic-plain", 0), Place("classic-plain", 1)
    findings.steps = 3
    findings.note([place], "SIGKILL")
    for number, where in ((5, place), (6, other)):
        field = Unequal(f"responses.{where}.error_code", 0, 1)
        findings.add(number, "FETCH v16 (...)", [where], [field])
    (difference,) = findings.differences
    assert difference.lines() == [
        "step 5: FETCH v16 (...)",
        "    responses.classic-plain/0.error_code: old 0, new 1",
        "  after these changes of classic-plain/0:",
        "    step 3: SIGKILL",
    ]
    assert [*findings.repeated.values()] == [2]


def test_the_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "python -m differential --against HEAD~20" in capsys.readouterr().out


def test_a_commit_that_is_not_there_is_no_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--against", "no-such-commit"]) == 2
    assert "no-such-commit is not a commit" in capsys.readouterr().err
