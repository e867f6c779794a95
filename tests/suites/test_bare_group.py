"""The group of bare members that the benchmark measures: it comes to an assignment, and says so only then."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.consumer_group import BareGroup
from bench.generator import LoadFailed
from bench.topics import Topics

from tests.broker import running_broker

QUICK = {"group.consumer.min.heartbeat.interval.ms": "50", "group.consumer.heartbeat.interval.ms": "50"}


async def test_members_come_to_a_stable_assignment_when_they_join_and_when_some_leave(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data", settings=QUICK) as broker:
        names = ["a", "b"]
        Topics(broker.bootstrap).create(dict.fromkeys(names, 6))
        async with BareGroup.running(broker.bootstrap, "group", names, 12) as group:
            await group.join(4)
            await group.wait_stable()
            assert [len(one) for one in group.owned()] == [3, 3, 3, 3]
            await group.wait_round()
            await group.leave(1)
            await group.wait_stable()
            assert [len(one) for one in group.owned()] == [4, 4, 4]
            assert len(frozenset().union(*group.owned())) == 12
            assert group.answer_seconds(0.99) > 0


async def test_a_member_that_is_refused_ends_the_measurement(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data", settings={**QUICK, "group.consumer.max.size": "1"}) as broker:
        Topics(broker.bootstrap).create({"a": 1})

        async def measure() -> None:
            async with BareGroup.running(broker.bootstrap, "group", ["a"], 1) as group:
                await group.join(2)
                await group.wait_stable()

        with pytest.raises(LoadFailed, match="refused"):
            await measure()
