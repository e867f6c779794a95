"""A leader that lost records copies its own history; readers are never sent to the other one, which goes in the end."""

from __future__ import annotations

from uuid import UUID

from strandline.remote.values import RemoteLogSegmentId, RemoteLogSegmentMetadata
from tests.remote.manager.world import FINISHED, TIERED, World


async def test_after_an_unclean_election_the_new_history_is_copied_and_the_old_one_goes_with_its_epochs(
    world: World,
) -> None:
    world.append(5)
    async with world.running():
        await world.until_copied()
        old = {segment.segment_id for segment in world.segments(FINISHED)}
    world.log.truncate_to(1)
    world.epoch = 1
    world.append(6)
    stored = [world.log.read(offset, 1).records for offset in range(7)]
    batches = [batch.read() for batch in stored if batch is not None]
    async with world.running():
        await world.until(lambda: world.log.remote.highest_offset == 5)
        assert old < {segment.segment_id for segment in world.segments(FINISHED)}
        await world.check_nothing_leaked()
        world.configure(local_retention_bytes=1)
        world.log.retention.delete_old_segments(world.clock.now_ms())
        assert world.log.local_log_start_offset == 6
        await world.check_nothing_lost(batches)
        for offset in range(1, 6):
            served = world.metadata.remote_log_segment_metadata(TIERED, 1, offset)
            assert served is not None
            assert served.segment_id not in old
        world.log.delete_records(2)
        await world.until(lambda: not any(is_of_the_old_history(segment) for segment in world.segments()))
        await world.until_copied()
        assert world.ranges() == [(2, 3), (4, 5)]
        await world.check_nothing_leaked()
        await world.check_nothing_lost(batches)


async def test_an_old_leader_that_comes_back_goes_on_with_its_own_history(world: World) -> None:
    """Scenario 5 of KIP-405: the other leader's segments stay out of the way."""
    world.append(5)
    async with world.running():
        await world.until_copied()
        mine = world.ranges()
        divergent = world.segments(FINISHED)[1]
        other = RemoteLogSegmentMetadata(
            segment_id=RemoteLogSegmentId(TIERED, UUID(int=99)),
            start_offset=2,
            end_offset=5,
            max_timestamp_ms=divergent.max_timestamp_ms,
            broker_id=2,
            event_timestamp_ms=divergent.event_timestamp_ms,
            segment_size_in_bytes=10_000,
            segment_leader_epochs={1: 2},
        )
        await world.metadata.add_remote_log_segment_metadata(other)
    world.epoch = 2
    world.append(4)
    async with world.running():
        world.configure(retention_bytes=world.log.size)
        await world.until(lambda: world.log.remote.highest_offset == 7)
        await world.pass_time(5)
        assert world.ranges() == [*mine, (4, 5), (6, 7)]
        assert world.log.log_start_offset == 0


def is_of_the_old_history(segment: RemoteLogSegmentMetadata) -> bool:
    return 0 in segment.segment_leader_epochs
