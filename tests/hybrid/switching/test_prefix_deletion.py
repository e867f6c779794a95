"""DeleteRecords on a switched partition while the only copy of its prefix is on the disk."""

from __future__ import annotations

from pathlib import Path

from strandline.controlplane.values import MigrationState
from tests.hybrid.switching.world import switching_broker


async def test_a_prefix_that_is_deleted_before_it_was_copied(tmp_path: Path) -> None:
    eager = {"log_retention_check_interval_ms": "50", "log_initial_task_delay_ms": "0"}
    async with switching_broker(tmp_path, **eager) as one:
        await one.create("t", records=3)
        await one.flag("t", is_diskless=True)
        partition = await one.switched("t")
        assert [await one.append("t") for _ in range(3)] == [3, 4, 5]
        assert await partition.newest.delete_records(4) == 4
        await one.until(lambda: (known := one.known("t")) is not None and known.state is MigrationState.DISKLESS_ONLY)
        assert await one.ends("t") == (4, 6)
