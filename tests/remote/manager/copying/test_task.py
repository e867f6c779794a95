"""What is finished goes to remote storage, oldest first, with all that belongs to it; failures leave nothing behind."""

from __future__ import annotations

from dataclasses import replace

from strandline.log import AppendOrigin, LoadedOffsets
from strandline.remote.manager import ManagerLimits
from strandline.remote.values import IndexType, RemoteLogSegmentState
from strandline.testing.objects import ALWAYS
from tests.log.harness import batch, marker
from tests.remote.manager.world import FINISHED, LIMITS, SIZE, TIERED, World, settings


async def test_finished_segments_are_copied_oldest_first_and_the_active_one_stays(world: World) -> None:
    world.append(7)
    async with world.running():
        await world.until_copied()
        assert world.ranges() == [(0, 1), (2, 3), (4, 5)]
        assert world.log.remote.highest_offset == 5
        puts = [call.keys[0] for call in world.store.calls if call.keys[0].endswith(".log")]
        assert puts == sorted(puts)
        await world.check_nothing_leaked()


async def test_a_copy_has_log_indexes_epochs_and_the_producers_at_its_end(world: World) -> None:
    world.append(2)
    world.epoch = 3
    world.append(3)
    async with world.running():
        await world.until_copied()
        first, second = world.segments(FINISHED)
        assert dict(first.segment_leader_epochs) == {0: 0}
        assert dict(second.segment_leader_epochs) == {3: 2}
        assert first.txn_index_empty
        assert first.segment_size_in_bytes == 2 * SIZE
        assert await world.storage.fetch_index(second, IndexType.LEADER_EPOCH) == b"0\n2\n0 0\n3 2\n"
        snapshot = world.harness.directory / f"{first.end_offset + 1:020d}.snapshot"
        assert await world.storage.fetch_index(first, IndexType.PRODUCER_SNAPSHOT) == snapshot.read_bytes()
        for kind, suffix in ((IndexType.OFFSET, "index"), (IndexType.TIMESTAMP, "timeindex")):
            local = world.harness.directory / f"{2:020d}.{suffix}"
            assert await world.storage.fetch_index(second, kind) == local.read_bytes()


async def test_a_transaction_index_goes_along_if_there_is_one(world: World) -> None:
    world.harness.append(batch(producer_id=5, sequence=0, is_transactional=True))
    world.harness.append(marker(5, commits=False), origin=AppendOrigin.COORDINATOR)
    world.log.roll()
    world.append(1)
    async with world.running():
        await world.until_copied()
        plain, aborting = world.segments(FINISHED)
        assert plain.txn_index_empty
        assert not aborting.txn_index_empty
        assert await world.storage.fetch_index(aborting, IndexType.TRANSACTION)
        await world.check_nothing_leaked()


async def test_nothing_at_or_above_the_last_stable_offset_is_copied(world: World) -> None:
    world.append(2)
    world.harness.append(batch(producer_id=5, sequence=0, is_transactional=True))
    world.append(4)
    async with world.running():
        await world.until(lambda: world.ranges() == [(0, 1)])
        await world.pass_time(5)
        assert world.ranges() == [(0, 1)]
        assert "a transaction has been open since offset 2" in world.status().local_because
        world.harness.end_transaction(5, commits=True)
        await world.until_copied()
        assert world.ranges() == [(0, 1), (2, 3), (4, 5), (6, 6)]


async def test_nothing_above_the_high_watermark_is_copied(world: World) -> None:
    for _ in range(5):
        world.log.append(batch(), leader_epoch=0)
    world.log.update_high_watermark(3)
    async with world.running():
        await world.until(lambda: world.ranges() == [(0, 1)])
        await world.pass_time(3)
        assert world.ranges() == [(0, 1)]
        assert "the high watermark is 3" in world.status().local_because


async def test_a_restart_goes_on_where_the_last_one_ended(world: World) -> None:
    world.append(5)
    async with world.running():
        await world.until_copied()
    world.harness.reopen()
    world.epoch = 2
    world.append(4)
    async with world.running():
        await world.until_copied()
        assert world.ranges() == [(0, 1), (2, 3), (4, 5), (6, 7)]
        assert len(world.segments()) == 4
        await world.check_nothing_leaked()


async def test_a_gap_before_the_local_log_does_not_stop_copying(world: World) -> None:
    """Segments that were never copied have expired, and an old checkpoint sets the log start back to before them."""
    world.append(5)
    async with world.running():
        await world.until_copied()
        world.configure(remote_log_copy_disable=True, retention_bytes=2 * SIZE)
        world.append(6)
        assert world.log.retention.delete_old_segments(world.clock.now_ms()) == 2  # those that were copied
        assert world.log.log_start_offset == 8
        world.harness.checkpoint()
        assert world.log.retention.delete_old_segments(world.clock.now_ms()) == 2
    world.harness.config = replace(world.harness.config, remote_log_copy_disable=False, retention_bytes=-1)
    world.harness.open(LoadedOffsets(log_start=0), is_clean=False)
    world.log.update_high_watermark(world.log.log_end_offset)
    assert (world.log.log_start_offset, world.log.local_log_start_offset) == (0, 8)
    async with world.running():
        await world.until(lambda: (8, 9) in world.ranges())


async def test_local_segments_go_only_after_they_were_copied(world: World) -> None:
    world.append(7)
    world.harness.config = replace(world.harness.config, local_retention_bytes=1)
    world.log.update_config(world.harness.config)
    world.store.fail("put_file", times=ALWAYS)
    async with world.running():
        await world.pass_time(3)
        assert world.log.retention.delete_old_segments(world.clock.now_ms()) == 0
        world.store.heal()
        await world.until_copied()
        assert world.log.retention.delete_old_segments(world.clock.now_ms()) == 3
        assert world.log.local_log_start_offset == 6
        assert world.log.log_start_offset == 0


async def test_a_failed_copy_is_deleted_at_once_and_tried_again(world: World) -> None:
    world.append(3)
    world.store.fail("put_file", times=1, skip=3)  # indexes and epochs are there, the log is not
    async with world.running():
        await world.until(lambda: world.status().last_error is not None)
        assert [call.operation for call in world.store.calls].count("delete") == 2
        assert await world.keys() == set()
        await world.until(lambda: world.ranges() == [(0, 1)])
        await world.until_copied()
        assert world.manager.status().topics["orders"].copy_errors == 1
        await world.check_nothing_leaked()


async def test_what_arrives_after_its_copy_was_given_up_is_deleted_too(world: World) -> None:
    world.append(3)
    world.store.fail("put_file", times=1, skip=3)
    async with world.running():
        await world.until(lambda: world.segments(RemoteLogSegmentState.DELETE_SEGMENT_STARTED))
        (failed,) = world.segments(RemoteLogSegmentState.DELETE_SEGMENT_STARTED)
        assert (world.status().remote_segments, world.status().deleting_segments) == (0, 1)
        await world.store.put(world.objects.log_key(failed), [b"late"])
        await world.until(lambda: world.ranges() == [(0, 1)])
        await world.until_copied()
        assert (world.status().remote_segments, world.status().deleting_segments) == (1, 0)
        await world.check_nothing_leaked()


async def test_what_a_failed_copy_left_is_deleted_later_if_it_cannot_be_deleted_at_once(world: World) -> None:
    world.append(3)
    world.store.fail("put_file", times=1, skip=3)
    world.store.fail("delete", times=2)
    async with world.running():
        await world.until(lambda: world.ranges() == [(0, 1)])
        await world.until_copied()
        await world.check_nothing_leaked()
        assert len(world.deleted) == 1


async def test_a_lost_answer_of_the_store_costs_one_more_copy_and_leaves_nothing(world: World) -> None:
    world.append(3)
    world.store.lose_answer("put_file", skip=3)
    async with world.running():
        await world.until(lambda: world.ranges() == [(0, 1)])
        await world.until_copied()
        await world.check_nothing_leaked()


async def test_a_lost_answer_of_the_metadata_manager_does_not_copy_twice(world: World) -> None:
    world.append(3)
    gate = world.store.block("put_file", times=1, skip=3)
    async with world.running():
        await world.until(lambda: world.segments(RemoteLogSegmentState.COPY_SEGMENT_STARTED))
        world.topic.lose_next = 1
        gate.release()
        await world.until(lambda: world.ranges() == [(0, 1)])
        await world.until_copied()
        await world.check_nothing_leaked()


async def test_a_copy_that_never_got_beyond_its_start_is_deleted(world: World) -> None:
    world.append(3)
    world.topic.lose_next = 1  # COPY_SEGMENT_STARTED is written, but its answer is lost
    async with world.running():
        await world.until(lambda: world.ranges() == [(0, 1)])
        await world.until_copied()
        assert len(world.segments()) == 1


async def test_backoff_grows_and_jitters_within_the_settings(world: World) -> None:
    world.append(3)
    world.store.fail("put_file", times=ALWAYS)
    async with world.running():
        await world.pass_time(40)
        errors = world.manager.status().topics["orders"].copy_errors
        # 0.5, 1, 2, 4, 8, 16 seconds, each up to a fifth longer or shorter
        assert 6 <= errors <= 8
        assert "the last attempt failed" in world.status().local_because
        assert world.status().failures_in_a_row == errors
        assert "A test lets put_file fail" in str(world.status().last_error)


async def test_copying_stops_with_remote_log_copy_disable_and_goes_on_without_it(world: World) -> None:
    async with world.running():
        world.configure(remote_log_copy_disable=True)
        world.append(5)
        await world.pass_time(5)
        assert world.segments() == []
        assert world.status().local_because == "remote.log.copy.disable is true"
        world.configure()
        await world.until_copied()
        assert world.ranges() == [(0, 1), (2, 3)]


async def test_a_broker_that_stops_leading_ends_the_copy_under_way_and_begins_no_other(world: World) -> None:
    world.append(7)
    gate = world.store.block("put_file", times=1, skip=3)
    async with world.running():
        await world.until(lambda: world.segments(RemoteLogSegmentState.COPY_SEGMENT_STARTED))
        world.manager.stop(TIERED)
        assert await world.manager.partition_status(TIERED) is None
        gate.release()
        await world.pass_time(5)
        assert world.ranges() == [(0, 1)]
        assert world.log.remote.highest_offset == -1
        world.epoch = 1
        world.lead()
        await world.until_copied()
        assert world.ranges() == [(0, 1), (2, 3), (4, 5)]
        await world.check_nothing_leaked()


async def test_a_broker_that_leads_again_during_a_copy_does_not_copy_the_segment_twice(world: World) -> None:
    world.append(3)
    gate = world.store.block("put_file", times=1, skip=3)
    async with world.running():
        await world.until(lambda: world.segments(RemoteLogSegmentState.COPY_SEGMENT_STARTED))
        world.manager.stop(TIERED)
        world.lead()
        await world.pass_time(3)
        assert len(world.segments()) == 1
        gate.release()
        await world.until_copied()
        assert world.ranges() == [(0, 1)]
        assert world.log.remote.highest_offset == 1


async def test_the_copy_quota_holds_over_time(world: World) -> None:
    world.limits = ManagerLimits(
        task_interval_ms=1000,
        copy_max_bytes_per_second=SIZE,
        copy_quota_window_num=11,
        copy_quota_window_size_seconds=1,
    )
    world.append(2 * 30 + 1)
    async with world.running():
        await world.pass_time(20)
        copied = 2 * SIZE * len(world.ranges())
        # The average over ten seconds is one batch a second; before that a burst is allowed.
        assert 20 * SIZE <= copied <= 34 * SIZE
        assert "copy.max.bytes.per.second" in world.status().local_because
        await world.until_copied()


async def test_custom_metadata_that_is_too_large_stops_copying_with_a_reason(world: World) -> None:
    class Talkative(type(world.objects)):  # type: ignore[misc]
        async def copy_log_segment_data(self, metadata: object, data: object) -> bytes:
            await super().copy_log_segment_data(metadata, data)
            return bytes(200)

    world.storage._storage = Talkative(world.store)
    world.append(5)
    async with world.running():
        await world.until(lambda: "copying has stopped" in world.status().local_because)
        assert "remote.log.metadata.custom.metadata.max.bytes is 128" in world.status().local_because
        await world.until(lambda: not world.segments())
        assert await world.keys() == set()
        assert world.manager.status().topics["orders"].copy_requests == 1


async def test_an_upload_that_never_returns_ends_and_is_tried_again(world: World) -> None:
    world.append(3)
    world.store.block("put_file", times=1)
    async with world.running():
        await world.until(lambda: world.status().copying_seconds is not None)
        await world.pass_time(60)
        assert world.manager.status().oldest_copy_seconds > 30
        assert world.storage.status().oldest_pending_seconds > 30
        assert "it has been copying for" in world.status().local_because
        await world.until(lambda: world.ranges() == [(0, 1)], step=10)
        await world.until_copied()
        await world.check_nothing_leaked()


async def test_a_metadata_write_that_never_returns_ends_and_is_tried_again(world: World) -> None:
    world.limits = replace(LIMITS, metadata_deadline_ms=5000)
    world.append(3)
    world.log.update_config(settings(remote_log_copy_disable=True))  # nothing is copied before the silence begins
    async with world.running():
        await world.until_ready()
        world.topic.hold_reads = True
        world.configure(remote_log_copy_disable=False)
        await world.until(lambda: world.status().last_error is not None)
        world.topic.hold_reads = False
        world.topic.wake()
        await world.until_copied()
        assert world.ranges() == [(0, 1)]
        await world.check_nothing_leaked()
