"""The log start of a switched partition, which its log and the control plane know at different times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from strandline.controlplane.switches import SqlMigrations
from strandline.controlplane.values import BoundarySet, MigrationState, NewBoundary
from strandline.hybrid.reading import PendingRead
from strandline.reads import FetchIsolation, ReadResult
from tests.hybrid.switching.world import SwitchingBroker, switching_broker
from tests.switched import prefix_of

EAGER = {"log_retention_check_interval_ms": "50", "log_initial_task_delay_ms": "0"}


async def test_a_log_that_expires_while_its_boundary_is_set_comes_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    initialize = SqlMigrations.initialize_diskless_migration
    async with switching_broker(tmp_path, **EAGER) as broker:
        await broker.create("t", records=3)
        log = broker.broker.replicas.find("t", 0).log

        async def expiring(migrations: SqlMigrations, boundaries: Sequence[NewBoundary]) -> Sequence[BoundarySet]:
            answers = await initialize(migrations, boundaries)
            log.start.increment(3)
            return answers

        monkeypatch.setattr(SqlMigrations, "initialize_diskless_migration", expiring)
        await broker.flag("t", is_diskless=True)
        partition = await broker.switched("t")
        assert prefix_of(partition).end == 3
        assert await broker.ends("t") == (3, 3)
        await broker.finished("t")  # as HYBRID, if the segment was not deleted by then
        await broker.until(lambda: is_diskless_only(broker))


def is_diskless_only(broker: SwitchingBroker) -> bool:
    led = broker.broker.migrations.figures().led.values()
    return {partition.state for partition in led} == {MigrationState.DISKLESS_ONLY}


@pytest.mark.parametrize("cache_bytes", ["0", "1000000"])
async def test_reads_behind_the_boundary_tell_where_the_whole_log_starts(tmp_path: Path, cache_bytes: str) -> None:
    """Its older part expires here, and the control plane hears of it seconds later."""
    async with switching_broker(tmp_path, inkless_consume_cache_max_bytes=cache_bytes) as broker:
        await broker.create("t", records=3)
        await broker.flag("t", is_diskless=True)
        partition = await broker.switched("t")
        assert [await broker.append("t"), await broker.append("t")] == [3, 4]
        broker.replica("t").log.start.increment(2)
        assert (await broker.ends("t"))[0] == 2
        for offset in (3, 4, 5):
            found = partition.read_now(offset, 1 << 20, isolation=FetchIsolation.HIGH_WATERMARK, min_one_message=True)
            if isinstance(found, PendingRead):
                (answer,) = await found.reader.read(
                    [found.request], max_bytes=1 << 20, min_one_message=True, is_wanted=lambda: True
                )
            else:
                assert isinstance(found, ReadResult)
                answer = found
            assert isinstance(answer, ReadResult)
            assert (answer.log_start_offset, answer.high_watermark) == (2, 5)
