"""Whole runs of the comparison, short ones, over brokers of the working tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from differential.deeds import settle, write
from differential.findings import Findings
from differential.run import Wanted, run
from differential.sides import Through, directly
from differential.topics import TOPICS, Topic

from strandline.wire.api import ApiKey
from tests.proxy import Fate, Proxy

pytestmark = pytest.mark.timeout(120)

SMALL = {"internal.segment.bytes": "2000", "retention.ms": "-1"}
FEW = (
    Topic("classic-few", SMALL, ([write(3)], [], [])),
    Topic("tiered-few", {"remote.storage.enable": "true", **SMALL}, ([write(4), settle], [], [])),
    Topic("diskless-few", {"diskless.enable": "true", "retention.ms": "-1"}, ([write(3)], [], [])),
)


def compare(directory: Path, *, steps: int, restart_every: int = 0, through: Through = directly) -> Findings:
    said: list[str] = []
    wanted = Wanted(
        against=None,
        seed=2,
        kinds=["classic", "tiered", "diskless"],
        directory=directory,
        steps=steps,
        restart_every=restart_every,
        through=through,
        topics=FEW,
    )
    return run(wanted, said.append)


def test_two_brokers_of_one_tree_are_not_different(tmp_path: Path) -> None:
    findings = compare(tmp_path, steps=36, restart_every=20)
    assert [line for one in findings.differences for line in one.lines()] == []
    assert findings.batches.keys() >= {"classic", "tiered", "diskless"}
    assert findings.answers["PRODUCE", 0] > 10


def test_an_altered_answer_is_a_difference_if_it_stays(tmp_path: Path) -> None:
    """One bit of every answer to DeleteRecords is another one, and of every second one about leader epochs: those are
    right when the request is repeated."""

    def policy(api_key: int, count: int) -> Fate:
        is_altered = api_key == ApiKey.DELETE_RECORDS or (api_key == ApiKey.OFFSET_FOR_LEADER_EPOCH and count % 2)
        return Fate.CHANGE_RESPONSE if is_altered else Fate.PASS

    with Proxy(policy) as proxy:

        def through(side: str, port: int) -> int:
            if side == "old":
                return port
            proxy.forward_to(port)
            return proxy.port

        findings = compare(tmp_path, steps=30, through=through)
    assert any(": OFFSET_FOR_LEADER_EPOCH v" in one for one in findings.passing)
    assert {one.request.split()[0] for one in findings.differences} == {"DELETE_RECORDS"}
    step, field, *_ = findings.differences[0].lines()
    assert step.startswith("step ")
    assert "old " in field
    assert "new " in field


def test_topics_are_named_after_their_kinds() -> None:
    assert {topic.kind for topic in TOPICS} == {"classic", "tiered", "switched", "converted", "diskless"}
    assert len({topic.name for topic in TOPICS}) == len(TOPICS)
