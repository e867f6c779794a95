"""Consumer groups of KIP-848: how long a large group takes to become stable, and what it costs when nothing happens."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from bench.consumer_group import BareGroup
from bench.measures import Bench, Measured, Step, wait_gone
from bench.topics import Topics

_MEMBERS: Final = 100
_LEAVERS: Final = 10
_TOPICS: Final = 10
_PARTITIONS_PER_TOPIC: Final = 100


def steps() -> list[Step]:
    return [Step(f"a group of {_MEMBERS} members over {_TOPICS * _PARTITIONS_PER_TOPIC:,} partitions", _rebalances)]


def _rebalances(bench: Bench) -> Measured:
    """A group joins, some members leave, and the others stay. Another group has done so before, to warm up."""
    topics = Topics(bench.broker.bootstrap)
    names = [f"bench-group-{number}" for number in range(_TOPICS)]
    topics.create(dict.fromkeys(names, _PARTITIONS_PER_TOPIC))
    try:
        asyncio.run(_measured(bench, names, "warm-up"))
        return asyncio.run(_measured(bench, names, "measured"))
    finally:
        topics.delete(names)
        wait_gone(bench.broker.data_dir, "bench-group")


async def _measured(bench: Bench, topics: list[str], group_id: str) -> Measured:
    loop = asyncio.get_running_loop()
    measured: Measured = {}
    where = bench.broker.bootstrap
    async with BareGroup.running(where, f"bench-{group_id}", topics, _TOPICS * _PARTITIONS_PER_TOPIC) as group:
        for name, change, count in (("join", group.join, _MEMBERS), ("leave", group.leave, _LEAVERS)):
            await group.wait_round()
            started, spent = loop.time(), _cpu_seconds(bench)
            await change(count)
            measured[f"groups.{name}"] = await group.wait_stable() - started
            measured[f"groups.{name}.p99"] = group.answer_seconds(0.99) * 1000
            measured[f"groups.{name}.cpu"] = _cpu_seconds(bench) - spent
        if group_id == "measured":
            started, spent = time.perf_counter(), _cpu_seconds(bench)
            await asyncio.sleep(bench.scale.idle_seconds)
            used = (_cpu_seconds(bench) - spent) / (time.perf_counter() - started)
            measured["groups.rest.cpu"] = used * 100
    return measured


def _cpu_seconds(bench: Bench) -> float:
    return bench.broker.process.usage().cpu_seconds
