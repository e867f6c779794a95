"""A switch that is completed although its prefix is not copied: what is told of it."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from strandline.controlplane.values import DisklessLog, MigrationState
from strandline.model import TopicIdPartition, TopicPartition
from tests.hybrid.switching.world import switching_broker


async def test_the_leader_says_what_is_on_its_disk_only_and_what_waits_for_it(tmp_path: Path) -> None:
    async with switching_broker(tmp_path) as world:
        await world.create("t", records=3)
        await world.flag("t", is_diskless=True)
        await world.switched("t")
        await world.broker.migrations.complete("t")

        def is_told() -> bool:
            known = world.known("t")
            assert known is not None
            return known.state is MigrationState.HYBRID and "is converted until they are copied" in known.problem

        await world.until(is_told)
        known = world.known("t")
        assert known is not None
        assert not known.tiering_complete
        assert known.uncopied_bytes > 0


@pytest.mark.parametrize(
    ("log_start", "tiered_high", "is_tiered"), [(0, 99, True), (0, 98, False), (0, -1, False), (100, -1, True)]
)
def test_what_is_below_the_boundary_is_in_remote_storage_or_not_whatever_the_state(
    log_start: int, tiered_high: int, is_tiered: bool
) -> None:
    log = DisklessLog(
        partition=TopicIdPartition(UUID(int=7), TopicPartition("t", 0)),
        log_start_offset=log_start,
        high_watermark=120,
        tiered_high_offset=tiered_high,
        diskless_start_offset=100,
        diskless_log_start_offset=100,
        migration_state=MigrationState.HYBRID,
    )
    assert log.is_prefix_tiered is is_tiered
