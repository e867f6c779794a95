"""Other brokers know where a switched partition starts before remote storage loses what is below."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.controlplane.switches import SqlMigrations
from strandline.controlplane.values import MigrationState, PrefixProgress
from strandline.hybrid.remote.topics import is_open_tier
from strandline.remote.storage.objects import ObjectRemoteStorage
from strandline.remote.values import RemoteLogSegmentMetadata, RemoteLogSegmentMetadataUpdate, RemoteLogSegmentState
from strandline.sql import StoreUnavailable
from tests.hybrid.switching.world import SwitchingBroker, switching_broker


@pytest.fixture
def nothing_is_copied() -> None:
    """These tests are about copies."""


async def switch_with_two_segments(one: SwitchingBroker) -> None:
    """Offsets 0 and 1 in remote storage, in a segment each, below the boundary."""
    await one.create("orders", records=1)
    one.replica("orders").log.roll()
    await one.append("orders")
    await one.flag("orders", is_diskless=True)
    await one.until(lambda: (known := one.known("orders")) is not None and known.state is MigrationState.HYBRID)


def expire_first(one: SwitchingBroker) -> None:
    """Offset 0 is below the log start now."""
    tier, replica = one.broker.tiered.storage, one.replica("orders")
    assert is_open_tier(tier)
    replica.log.start.increment(1)
    tier.manager.reconsider(replica.id)


async def start_in_control_plane(one: SwitchingBroker) -> int:
    (partition,) = (await one.broker.migrations.topic_status("orders")).partitions
    return partition.log_start


async def test_the_control_plane_knows_the_log_start_before_a_segment_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    deleted: list[tuple[int, int]] = []
    record, delete = SqlMigrations.record_prefix, ObjectRemoteStorage.delete_log_segment_data

    async def recording(migrations: SqlMigrations, progress: list[PrefixProgress]) -> None:
        await record(migrations, progress)
        told.extend(one.log_start_offset for one in progress)

    async def deleting(storage: ObjectRemoteStorage, metadata: RemoteLogSegmentMetadata) -> None:
        deleted.append((metadata.start_offset, max(told, default=0)))
        await delete(storage, metadata)

    async with switching_broker(tmp_path) as one:
        await switch_with_two_segments(one)
        monkeypatch.setattr(SqlMigrations, "record_prefix", recording)
        monkeypatch.setattr(ObjectRemoteStorage, "delete_log_segment_data", deleting)
        expire_first(one)
        await one.until(lambda: bool(deleted))
        assert deleted == [(0, 1)], "if the broker died before it told the log start, others would find a gap"


async def test_nothing_is_deleted_while_the_control_plane_cannot_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted: list[int] = []
    tries: list[int] = []

    async def failing(migrations: SqlMigrations, progress: list[PrefixProgress]) -> None:
        tries.append(len(progress))
        raise StoreUnavailable("The database is away.")

    async def deleting(storage: ObjectRemoteStorage, metadata: RemoteLogSegmentMetadata) -> None:
        deleted.append(metadata.start_offset)

    async with switching_broker(tmp_path) as one:
        await switch_with_two_segments(one)
        monkeypatch.setattr(ObjectRemoteStorage, "delete_log_segment_data", deleting)
        with monkeypatch.context() as away:
            away.setattr(SqlMigrations, "record_prefix", failing)
            expire_first(one)
            await one.until(lambda: bool(tries))
            assert deleted == []
        await one.until(lambda: bool(deleted))
        assert await start_in_control_plane(one) == 1


async def test_a_segment_that_is_missing_at_the_log_start_ends_tiering_complete(tmp_path: Path) -> None:
    async with switching_broker(tmp_path) as one:
        await switch_with_two_segments(one)
        tier, replica = one.broker.tiered.storage, one.replica("orders")
        assert is_open_tier(tier)
        first = tier.metadata.remote_log_segment_metadata(replica.id, replica.leader_epoch, 0)
        assert first is not None
        is_shown = [(await one.broker.migrations.topic_status("orders")).partitions[0].tiering_complete]
        for state in (RemoteLogSegmentState.DELETE_SEGMENT_STARTED, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED):
            await tier.metadata.update_remote_log_segment_metadata(
                RemoteLogSegmentMetadataUpdate(
                    segment_id=first.segment_id, event_timestamp_ms=1, state=state, broker_id=1
                )
            )
        await one.until(lambda: (known := one.known("orders")) is not None and not known.tiering_complete)
        is_shown.append((await one.broker.migrations.topic_status("orders")).partitions[0].tiering_complete)
        assert is_shown == [True, False]
