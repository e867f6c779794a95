"""Remote segments go when retention, DeleteRecords or the settings say so; what crashes left goes at once."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from strandline.clock import Clock
from strandline.remote import turns
from strandline.remote.manager.deleting import expiration, plan, segment
from strandline.remote.manager.deleting.plan import Deletion, ExpiryPlan
from strandline.remote.topic_based.records import serialize
from strandline.remote.values import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentState,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
)
from strandline.testing.objects import ALWAYS
from tests.log.harness import NOW
from tests.remote.manager.world import BROKER, SIZE, TIERED, World

STARTED = RemoteLogSegmentState.COPY_SEGMENT_STARTED
DELETING = RemoteLogSegmentState.DELETE_SEGMENT_STARTED


async def test_old_segments_expire_and_the_log_start_follows(world: World) -> None:
    world.append(4, timestamp=NOW - 100_000)
    world.append(3, timestamp=NOW)
    async with world.running():
        await world.until_copied()
        world.configure(retention_ms=60_000)
        await world.until(lambda: world.ranges() == [(4, 5)])
        assert world.log.log_start_offset == 4
        await world.check_nothing_leaked()
        assert len(world.deleted) == 2


async def test_time_alone_lets_the_next_segment_expire_when_it_is_due(world: World) -> None:
    world.append(2, timestamp=NOW)
    world.append(3, timestamp=NOW + 20_000)
    world.harness.config = replace(world.harness.config, retention_ms=60_000)
    world.log.update_config(world.harness.config)
    async with world.running():
        await world.until_copied()
        await world.pass_time(50)
        assert world.log.log_start_offset == 0
        await world.pass_time(12)
        assert world.log.log_start_offset == 2
        assert world.ranges() == [(2, 3)]


@pytest.mark.parametrize("policy", [(), ("compact",)])
async def test_without_the_policy_delete_nothing_expires(world: World, policy: tuple[str, ...]) -> None:
    """An empty cleanup.policy keeps everything; compaction may be the broker's default, tiered topics have none."""
    world.append(7)
    async with world.running():
        await world.until_copied()
        before = world.ranges()
        world.configure(cleanup_policy=policy, retention_ms=0, retention_bytes=0)
        await world.pass_time(5)
        assert (world.ranges(), world.log.log_start_offset) == (before, 0)
        world.configure(retention_ms=0)
        await world.until(lambda: not world.ranges())


async def test_size_is_that_of_both_tiers(world: World) -> None:
    world.append(9)
    async with world.running():
        await world.until_copied()
        world.configure(retention_bytes=5 * SIZE)
        await world.until(lambda: world.log.log_start_offset == 4)
        world.append(2)
        await world.until(lambda: world.log.log_start_offset == 6)
        await world.until_copied()
        assert world.ranges() == [(6, 7), (8, 9)]
        await world.check_nothing_leaked()


async def test_size_counts_what_follows_the_log_elsewhere_and_the_log_goes_first(world: World) -> None:
    world.append(6)
    world.log.roll()
    async with world.running():
        await world.until_copied()
        world.configure(retention_bytes=6 * SIZE)
        await world.pass_time(5)
        assert world.log.log_start_offset == 0
        for suffix, start in ((SIZE, 0), (2 * SIZE, 2), (3 * SIZE, 2), (5 * SIZE, 4), (100 * SIZE, 6)):
            world.suffix_bytes = suffix
            await world.pass_time(3)
            assert world.log.log_start_offset == start, "its growth alone has to lead to a new plan"
        await world.until(lambda: not world.ranges())
        world.suffix_bytes *= 2
        await world.pass_time(5)
        assert (world.log.log_start_offset, world.log.log_end_offset) == (6, 6)
        await world.check_nothing_leaked()


async def test_a_suffix_that_stays_as_it_is_leads_to_no_new_plan(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[int] = []

    async def counted(clock: Clock, steps: Generator[None, None, ExpiryPlan]) -> ExpiryPlan:
        made = await turns.in_turns(clock, steps)
        planned.append(len(made.deletions))
        return made

    monkeypatch.setattr(expiration, "in_turns", counted)
    world.append(6)
    world.log.roll()
    world.suffix_bytes = SIZE
    async with world.running():
        await world.until_copied()
        world.configure(retention_bytes=7 * SIZE)
        await world.pass_time(3)
        plans = len(planned)
        await world.pass_time(5)
        assert len(planned) == plans
        world.suffix_bytes += 1  # not enough for the next segment to go
        await world.pass_time(5)
        assert len(planned) == plans


async def test_time_takes_the_last_segment_of_a_log_that_is_empty_at_its_end_and_the_start_stops_there(
    world: World,
) -> None:
    world.append(6, timestamp=NOW)
    world.log.roll()
    async with world.running():
        await world.until_copied()
        world.configure(retention_ms=60_000, local_retention_bytes=0)
        world.log.retention.delete_old_segments(world.clock.now_ms())
        assert world.log.segments.bases == [6]
        await world.pass_time(50)
        assert world.log.log_start_offset == 0
        await world.pass_time(15)
        assert (world.log.log_start_offset, world.log.log_end_offset, world.log.high_watermark) == (6, 6, 6)
        assert world.ranges(None) == []
        await world.pass_time(100)
        assert (world.log.log_start_offset, world.log.log_end_offset) == (6, 6)
        await world.check_nothing_leaked()


async def test_failed_copies_never_let_good_data_go(world: World) -> None:
    world.append(5)
    async with world.running():
        await world.until_copied()
        world.configure(retention_bytes=9 * SIZE)
        world.store.fail("put_file", times=ALWAYS)
        world.store.fail("delete", times=ALWAYS)
        world.append(4)
        await world.pass_time(60)
        assert len(world.segments()) > 4, "failed copies pile up as long as they cannot be deleted"
        assert world.log.log_start_offset == 0
        assert world.ranges() == [(0, 1), (2, 3)]
        world.store.heal()
        await world.until_copied()
        assert world.log.log_start_offset == 0
        await world.check_nothing_leaked()


async def test_delete_records_into_the_remote_range_lets_whole_segments_go(world: World) -> None:
    world.append(7)
    async with world.running():
        await world.until_copied()
        world.log.delete_records(3)
        await world.until(lambda: world.ranges() == [(2, 3), (4, 5)])
        assert world.log.log_start_offset == 3
        await world.check_nothing_leaked()


async def test_the_log_start_moves_before_anything_is_deleted(world: World) -> None:
    world.append(4, timestamp=NOW - 100_000)
    world.append(1, timestamp=NOW)
    async with world.running():
        await world.until_copied()
        gate = world.store.block("delete")
        world.configure(retention_ms=60_000)
        await world.until(lambda: world.log.log_start_offset == 4)
        assert len(await world.keys()) == 10
        gate.release()
        await world.until_copied()
        assert await world.keys() == set()


async def test_a_deletion_that_fails_is_repeated_until_it_is_done(world: World) -> None:
    world.append(5, timestamp=NOW - 100_000)
    async with world.running():
        await world.until_copied()
        world.store.fail("delete", times=7)
        world.configure(retention_ms=60_000)
        await world.until_copied()
        await world.until(lambda: not world.segments())
        assert await world.keys() == set()
        assert world.manager.status().topics["orders"].delete_errors >= 3


async def test_one_segment_that_cannot_be_deleted_does_not_keep_the_others(world: World) -> None:
    world.append(9, timestamp=NOW - 100_000)
    async with world.running():
        await world.until_copied()
        stubborn = world.segments()[0]

        class Stubborn(type(world.objects)):  # type: ignore[misc]
            async def delete_log_segment_data(self, metadata: RemoteLogSegmentMetadata) -> None:
                if metadata.segment_id == stubborn.segment_id:
                    raise RuntimeError("access denied")
                await super().delete_log_segment_data(metadata)

        world.storage._storage = Stubborn(world.store)
        world.configure(retention_ms=60_000)
        await world.until(lambda: len(world.segments()) == 1)
        await world.until(lambda: world.status().last_error is not None)
        assert "access denied" in str(world.status().last_error)
        assert world.log.log_start_offset == 8


async def test_a_copy_that_a_crash_broke_off_is_deleted_at_the_next_start(world: World) -> None:
    world.append(3)
    world.store.block("put_file", times=1, skip=3)
    async with world.running():
        await world.until(lambda: world.segments(STARTED))
        await world.pass_time(1)
        (broken,) = world.segments(STARTED)
    world.store.heal()
    world.harness.crash()
    async with world.running():
        await world.until_copied()
        assert world.ranges() == [(0, 1)]
        assert broken.segment_id in world.deleted
        await world.check_nothing_leaked()


async def test_a_copy_of_another_broker_is_left_alone_until_it_is_certainly_dead(world: World) -> None:
    world.append(1)
    other = RemoteLogSegmentMetadata(
        segment_id=RemoteLogSegmentId(TIERED, UUID(int=77)),
        start_offset=0,
        end_offset=1,
        max_timestamp_ms=NOW,
        broker_id=2,
        event_timestamp_ms=world.clock.now_ms(),
        segment_size_in_bytes=100,
        segment_leader_epochs={0: 0},
    )
    async with world.running():
        await world.until_ready()
        await world.metadata.add_remote_log_segment_metadata(other)
        await world.pass_time(60)
        assert world.segments() == [other]
        world.clock.move(7 * 3600)
        await world.until(lambda: not world.segments())


async def test_duplicates_of_two_leaders_are_cleaned_up(world: World) -> None:
    world.append(3)
    async with world.running():
        await world.until_copied()
    # Another broker led meanwhile, did not know of this copy, and made its own.
    lost, world.topic.values[0] = world.topic.values[0], []
    async with world.running():
        await world.until_copied()
    world.topic.values[0][:0] = lost
    world.forget_snapshots()
    async with world.running():
        await world.until(lambda: len(world.deleted) == 1)
        await world.until_copied()
        assert world.ranges() == [(0, 1)]
        await world.check_nothing_leaked()
        batches = [bytes(world.log.read(offset, 1).records.read()) for offset in range(3)]  # type: ignore[union-attr]
        await world.check_nothing_lost(batches)


async def test_a_plan_that_was_made_under_other_settings_is_not_carried_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "AT_ONCE", 1)
    world.append(13, timestamp=NOW - 100_000)
    async with world.running():
        await world.until_copied()
        planned: list[bool] = []

        async def change_meanwhile(clock: Clock, steps: Generator[None, None, ExpiryPlan]) -> ExpiryPlan:
            made = await turns.in_turns(clock, steps)
            planned.append(True)
            world.configure(retention_ms=10_000_000)
            return made

        monkeypatch.setattr(expiration, "in_turns", change_meanwhile)
        world.configure(retention_ms=60_000)
        await world.until(lambda: planned)
        await world.pass_time(3)
        assert world.log.log_start_offset == 0
        assert len(world.ranges()) == 6
        assert len(planned) == 2


async def test_a_broker_that_lost_the_leadership_while_it_planned_does_not_move_the_log_start(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.append(13, timestamp=NOW - 100_000)
    async with world.running():
        await world.until_copied()
        planned: list[bool] = []

        async def lose_leadership(clock: Clock, steps: Generator[None, None, ExpiryPlan]) -> ExpiryPlan:
            made = await turns.in_turns(clock, steps)
            planned.append(True)
            world.manager.stop(TIERED)
            return made

        monkeypatch.setattr(expiration, "in_turns", lose_leadership)
        world.configure(retention_ms=60_000)
        await world.until(lambda: planned)
        await world.pass_time(3)
        assert world.log.log_start_offset == 0


async def test_segments_that_expire_are_planned_for_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan looks at all segments, of which there may be very many."""
    world.append(6, timestamp=NOW - 100_000)
    world.append(7)
    async with world.running():
        await world.until_copied()
        planned: list[int] = []

        async def counted(clock: Clock, steps: Generator[None, None, ExpiryPlan]) -> ExpiryPlan:
            made = await turns.in_turns(clock, steps)
            planned.append(len(made.deletions))
            return made

        monkeypatch.setattr(expiration, "in_turns", counted)
        world.configure(retention_ms=60_000)
        await world.until(lambda: len(world.ranges()) == 3)
        await world.pass_time(3)
        assert planned == [3]


async def test_more_segments_than_a_plan_has_room_for_expire_in_several(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "MOST_DELETIONS", 2)
    world.append(11, timestamp=NOW - 100_000)
    world.append(2)
    async with world.running():
        await world.until_copied()
        planned: list[int] = []

        async def counted(clock: Clock, steps: Generator[None, None, ExpiryPlan]) -> ExpiryPlan:
            made = await turns.in_turns(clock, steps)
            planned.append(len(made.deletions))
            return made

        monkeypatch.setattr(expiration, "in_turns", counted)
        world.configure(retention_ms=60_000)
        await world.until(lambda: world.log.log_start_offset == 10 and world.ranges() == [(10, 11)])
        await world.pass_time(3)
        assert planned == [2, 2, 1]
        await world.check_nothing_leaked()


async def test_switching_tiering_off_with_delete_moves_the_log_start_and_deletes_everything(world: World) -> None:
    world.append(7)
    async with world.running():
        await world.until_copied()
        world.configure(local_retention_bytes=1)
        world.log.retention.delete_old_segments(world.clock.now_ms())
        assert (world.log.log_start_offset, world.log.local_log_start_offset) == (0, 6)
        world.configure(remote_storage_enable=False, remote_log_delete_on_disable=True)
        await world.until(lambda: not world.segments())
        assert world.log.log_start_offset == 6
        assert await world.keys() == set()
        assert world.delete_state() is None
        world.append(4)
        await world.pass_time(5)
        assert world.segments() == []


async def test_tiering_switched_off_and_on_again_begins_anew_without_a_gap(world: World) -> None:
    world.append(7)
    async with world.running():
        await world.until_copied()
        world.configure(remote_storage_enable=False, remote_log_delete_on_disable=True)
        await world.until(lambda: not world.segments())
        world.configure()
        await world.until_copied()
        # The metadata still has 5 as the highest copied offset. Nothing may be deleted locally because of that.
        assert world.ranges() == [(0, 1), (2, 3), (4, 5)]
        await world.check_nothing_leaked()


async def test_switching_off_waits_for_the_copy_under_way(world: World) -> None:
    world.append(3)
    gate = world.store.block("put_file", times=1, skip=3)
    async with world.running():
        await world.until(lambda: world.segments(STARTED))
        world.configure(remote_storage_enable=False, remote_log_delete_on_disable=True)
        await world.pass_time(3)
        gate.release()
        await world.until(lambda: not world.segments())
        assert await world.keys() == set()


async def test_a_deleted_topic_leaves_nothing_and_says_so_step_by_step(world: World) -> None:
    world.append(7)
    async with world.running():
        await world.until_copied()
        gate = world.store.block("delete", times=1)
        world.manager.delete(TIERED)
        await world.until(lambda: world.delete_state() is not None)
        await gate.wait_reached()
        state = world.delete_state()
        assert state is RemotePartitionDeleteState.DELETE_PARTITION_STARTED
        assert world.manager.status().deletions == 1
        gate.release()
        await world.until(world.is_forgotten)
        assert world.segments() == []
        assert await world.keys() == set()
        await world.until(lambda: world.manager.status().deletions == 0)


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many segments are deleted or marked at a time, where two are the most."""
    found: list[int] = []
    each = segment.DeletionTurn.each

    async def counted(turn: segment.DeletionTurn, deletions: Sequence[Deletion], *others: Any) -> bool:
        found.append(len(deletions))
        return await each(turn, deletions, *others)

    monkeypatch.setattr(segment, "MOST_DELETIONS", 2)
    monkeypatch.setattr(segment.DeletionTurn, "each", counted)
    return found


async def test_a_deleted_topic_with_very_many_segments_loses_them_in_batches(world: World, batches: list[int]) -> None:
    world.append(7)
    async with world.running():
        await world.until_copied()
        world.manager.stop(TIERED)
        batches.clear()
        world.manager.delete(TIERED)
        await world.until(world.is_forgotten)
        assert (batches, await world.keys()) == ([2, 1], set())


async def test_very_many_segments_are_withdrawn_in_batches(world: World, batches: list[int]) -> None:
    world.append(7)
    async with world.running():
        await world.until_copied()
        await world.pass_time(3)
        batches.clear()
        world.configure(remote_storage_enable=False, remote_log_delete_on_disable=True)
        await world.until(lambda: not world.segments())
        assert (batches, await world.keys()) == ([2, 1, 2, 1], set()), "all are marked before one is deleted"


async def test_a_topic_that_is_deleted_during_a_copy_leaves_nothing(world: World) -> None:
    world.append(7)
    gate = world.store.block("put_file", times=1, skip=3)
    async with world.running():
        await world.until(lambda: world.segments(STARTED))
        world.manager.delete(TIERED)
        await world.pass_time(3)
        assert world.delete_state() is None
        gate.release()
        await world.until(world.is_forgotten)
        assert await world.keys() == set()


async def test_an_interrupted_deletion_is_resumed_by_the_broker_that_reads_the_metadata(world: World) -> None:
    world.append(7)
    async with world.running():
        await world.until_copied()
        world.store.fail("delete", times=ALWAYS)
        world.manager.delete(TIERED)
        await world.pass_time(5)
    world.store.heal()
    async with world.running(lead=False):
        await world.until(world.is_forgotten)
        assert await world.keys() == set()
        await world.until(lambda: world.manager.status().deletions == 0)


async def test_a_copy_that_begins_after_the_deletion_of_its_topic_is_over_is_deleted_too(world: World) -> None:
    world.append(7)
    async with world.running():
        await world.until_copied()
        known = world.segments()
        world.manager.delete(TIERED)
        await world.until(world.is_forgotten)
        late = replace(
            known[0], segment_id=known[0].segment_id._replace(id=UUID(int=99)), state=STARTED, custom_metadata=None
        )
        await world.metadata.add_remote_log_segment_metadata(late)  # its leader has not heard of it
        assert not world.is_forgotten()
        world.manager.delete(TIERED)  # the comparison of metadata and topics calls it again
        await world.until(world.is_forgotten)
    async with world.running(lead=False):
        await world.until(world.is_forgotten)


async def test_a_deleted_topic_is_forgotten_although_its_segments_were_gone_before(world: World) -> None:
    world.append(7, timestamp=NOW - 100_000)
    async with world.running():
        await world.until_copied()
        world.configure(retention_ms=60_000)
        await world.until(lambda: not world.segments())
        assert not world.is_forgotten()
        world.manager.delete(TIERED)
        await world.until(world.is_forgotten)


async def test_a_segment_that_the_end_of_a_deletion_has_missed_is_deleted(world: World) -> None:
    world.append(7)
    async with world.running():
        await world.until_copied()
        for state in RemotePartitionDeleteState:
            world.topic.values[0].append(
                serialize(
                    RemotePartitionDeleteMetadata(
                        partition=TIERED, state=state, event_timestamp_ms=world.clock.now_ms(), broker_id=BROKER
                    )
                )
            )
    async with world.running(lead=False):
        await world.until(world.is_forgotten)
        assert await world.keys() == set()


async def test_deleting_a_topic_without_remote_segments_writes_nothing(world: World) -> None:
    world.append(1)
    async with world.running():
        await world.until_ready()
        world.manager.delete(TIERED)
        await world.until(lambda: world.manager.status().deletions == 0)
        assert world.topic.values == [[]]


async def test_the_status_shows_what_is_where_and_what_is_pending(world: World) -> None:
    world.append(5)
    async with world.running():
        await world.until_copied()
        world.configure(local_retention_bytes=3 * SIZE)
        world.log.retention.delete_old_segments(world.clock.now_ms())
        world.store.fail("put_file", times=ALWAYS)
        world.append(2)
        await world.until(lambda: world.status().failures_in_a_row)
        status = world.status()
        tiers = [
            (row.start_offset, row.end_offset, row.tier.value)
            for row in status.segments
            if row.state == "COPY_SEGMENT_FINISHED"
        ]
        assert tiers == [(0, 1, "remote"), (2, 3, "both")]
        assert (status.pending_segments, status.pending_bytes) == (1, 2 * SIZE)
        assert status.remote_bytes == 4 * SIZE
        assert status.local_from == 4
        topic = world.manager.status().topics["orders"]
        assert (topic.copy_lag_segments, topic.copy_lag_bytes) == (1, 2 * SIZE)
        assert topic.copy_bytes == topic.remote_bytes == 4 * SIZE
        assert topic.copy_errors >= 1


async def test_what_delete_records_has_taken_is_not_pending_any_more(world: World) -> None:
    world.harness.config = replace(world.harness.config, remote_log_copy_disable=True)
    world.log.update_config(world.harness.config)
    world.append(5)
    async with world.running():
        await world.until_ready()
        assert world.status().pending_segments == 2
        world.log.delete_records(3)
        assert world.status().pending_segments == 1
        assert world.status().local_from == 2
        world.configure()
        await world.until_copied()
        assert world.ranges() == [(2, 3)]


async def test_an_upload_that_arrives_after_its_copy_was_given_up_leaves_no_object(world: World) -> None:
    """A storage that hung carries out what it was sent when it comes back, perhaps behind the deletion."""
    world.objects.late_seconds = 10.0
    world.append(3)
    gate = world.store.block("delete")
    world.store.fail("put_file", times=1, skip=2)
    async with world.running():
        await world.until(lambda: world.ranges(DELETING) == [(0, 1)])
        (failed,) = world.segments(DELETING)
        await world.pass_time(100)  # longer than the pause: it begins when the storage carries out the deletion
        world.store.heal()
        gate.release()
        await world.until(lambda: world.ranges() == [(0, 1)])
        await world.pass_time(5)
        await world.store.put(world.objects.log_key(failed), [b"late"])
        await world.until_copied()
        await world.check_nothing_leaked()
