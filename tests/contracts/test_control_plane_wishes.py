"""The contract of TieringWishes: what operators ask for, and how far the conversion is."""

from __future__ import annotations

import asyncio

from strandline.controlplane import SqlControlPlane
from strandline.controlplane.conversion import TieringRule, TopicTiering
from strandline.controlplane.database import TIERING_CHANNEL
from tests.controlplane.converting import LATER, claim, fill, merge, record_of
from tests.controlplane.making import NOW, OTHER_TOPIC, TOPIC, A, B, C, HandSetClock, batch, commit


async def test_wishes_are_kept_apart(plane: SqlControlPlane, time: HandSetClock) -> None:
    assert await plane.wishes.tiering_wishes() == {}
    await plane.wishes.pause_tiering(TOPIC, is_paused=True)
    assert await plane.wishes.trigger_tiering(TOPIC) == NOW
    assert await plane.wishes.trigger_tiering(OTHER_TOPIC) == NOW
    assert await plane.wishes.tiering_wishes() == {
        TOPIC: TopicTiering(True, NOW),
        OTHER_TOPIC: TopicTiering(False, NOW),
    }
    time.now += 1
    await plane.wishes.trigger_tiering(TOPIC)
    await plane.wishes.pause_tiering(TOPIC, is_paused=False)
    assert (await plane.wishes.tiering_wishes())[TOPIC] == TopicTiering(False, NOW + 1)


async def test_a_trigger_wakes_whoever_waits(plane: SqlControlPlane) -> None:
    woken = asyncio.Event()
    stop = plane.store.listen(TIERING_CHANNEL, woken.set)
    try:
        async with asyncio.timeout(10):
            await plane.wishes.trigger_tiering(TOPIC)
            await woken.wait()
            woken.clear()
            await plane.wishes.pause_tiering(TOPIC, is_paused=True)
            await woken.wait()
    finally:
        stop()


async def test_progress_counts_what_is_eligible_split_or_neither(plane: SqlControlPlane, time: HandSetClock) -> None:
    await fill(plane, A, B, C)
    time.now = LATER
    await commit(plane, "young", batch(A, timestamp=LATER))
    rules = (TieringRule(TOPIC, 1), TieringRule(OTHER_TOPIC, -1))

    async def progress() -> list[tuple[int, int, int, int, int]]:
        return [
            (log.log.partition.partition, log.eligible_rows, log.eligible_bytes, log.split_rows, log.split_files)
            for log in await plane.wishes.tiering_progress(rules)
        ]

    assert await plane.wishes.tiering_progress([]) == []
    assert await progress() == [(0, 3, 300, 0, 0), (1, 3, 300, 0, 0), (0, 0, 0, 0, 0)]
    for file in (await claim(plane, rules=rules, max_files=2)).files:
        await plane.claims.record_splits(record_of(file))
    assert await progress() == [(0, 1, 100, 2, 2), (1, 1, 100, 2, 2), (0, 0, 0, 0, 0)]
    await merge(plane, A, 0, 9)
    assert await progress() == [(0, 1, 100, 1, 1), (1, 1, 100, 2, 2), (0, 0, 0, 0, 0)]
    await plane.trimming.delete_records({B: 15})
    assert await progress() == [(0, 1, 100, 1, 1), (1, 1, 100, 1, 1), (0, 0, 0, 0, 0)]
    await plane.wishes.trigger_tiering(OTHER_TOPIC)
    await plane.wishes.pause_tiering(TOPIC, is_paused=True)
    assert await progress() == [(0, 1, 100, 1, 1), (1, 1, 100, 1, 1), (0, 3, 300, 0, 0)]
    first, *_, last = await plane.wishes.tiering_progress(rules)
    assert (first.tiering, last.tiering) == (TopicTiering(True), TopicTiering(False, LATER))
    assert first.log.diskless_start_offset == 10
