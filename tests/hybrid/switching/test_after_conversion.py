"""What a leader shows of a switched partition goes on when its diskless part is converted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strandline.controlplane.values import MigrationState
from tests.hybrid.switching.world import SwitchingBroker, switching_broker
from tests.pipeline.world import Pipeline, calls_of

CONVERTING = {
    "inkless_tiering_min_segment_bytes": "1",
    "remote_log_manager_task_interval_ms": "50",
    "log_retention_check_interval_ms": "50",
    "log_initial_task_delay_ms": "0",
}


@pytest.fixture(autouse=True)
def nothing_is_copied() -> None:
    """Prefixes are copied here."""


async def convert(world: SwitchingBroker, topic: str) -> None:
    await world.broker.tiering.trigger(topic)
    pipeline = Pipeline(calls_of(world.broker.tiering, asyncio.get_running_loop()), (topic,))
    assert len((await asyncio.to_thread(pipeline.run)).segments) == 1


@pytest.mark.parametrize("below", [0, 3])
async def test_the_state_and_the_offsets_follow_a_conversion(tmp_path: Path, below: int) -> None:
    """Also of a partition with nothing below its boundary, which nobody looked at any more."""
    async with switching_broker(tmp_path, **CONVERTING) as world:
        await world.create("t", records=below)
        await world.flag("t", is_diskless=True)
        await world.switched("t")
        await world.finished("t")
        for _ in range(2):
            await world.append("t")
        await convert(world, "t")
        end = below + 2

        def is_shown() -> bool:
            known = world.known("t")
            assert known is not None
            offsets = (known.tiered_high, known.diskless_start, known.high_watermark)
            return known.state is MigrationState.HYBRID and offsets == (end - 1, end, end)

        await world.until(is_shown)
