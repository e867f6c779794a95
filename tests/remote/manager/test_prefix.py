"""Whether everything below a boundary is in remote storage, however many segments there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.model import LeaderEpoch, Offset
from strandline.remote.manager.prefix import PrefixCoverage, PrefixStatus, covered_until
from strandline.remote.topic_based.records import serialize
from strandline.remote.values import (
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
)
from tests.log.harness import batch
from tests.remote.manager.deleting.test_plan import ask, segment
from tests.remote.manager.world import BROKER, FINISHED, SIZE, TIERED, World, settings

STARTED = RemoteLogSegmentState.COPY_SEGMENT_STARTED
DELETING = RemoteLogSegmentState.DELETE_SEGMENT_STARTED


def until(
    segments: Sequence[RemoteLogSegmentMetadata],
    start: Offset,
    boundary: Offset,
    epochs: Sequence[tuple[LeaderEpoch, Offset]] = ((0, 0),),
) -> Offset:
    return covered_until(epochs, start, boundary, ask(segments).lookup, lookups=1000)


def seg(number: int, start: Offset, end: Offset, epochs: Mapping[int, int] | None = None) -> RemoteLogSegmentMetadata:
    return segment(number, start, end, epochs)


def test_segments_in_a_row_cover_what_they_hold() -> None:
    row = [seg(1, 0, 9), seg(2, 10, 19), seg(3, 20, 29)]
    assert until(row, 0, 30) == 30
    assert until(row, 0, 25) == 25
    assert until(row, 15, 40) == 30
    assert until(row[1:], 0, 30) == 0
    assert until([], 0, 30) == 0
    assert until([row[0], row[2]], 0, 30) == 10


def test_segments_may_overlap_and_begin_below_the_log_start() -> None:
    assert until([seg(1, 0, 12), seg(2, 10, 19), seg(3, 15, 29)], 5, 30) == 30


@pytest.mark.parametrize("state", [STARTED, DELETING])
def test_only_finished_segments_count(state: RemoteLogSegmentState) -> None:
    assert until([seg(1, 0, 9), segment(2, 10, 19, state=state)], 0, 20) == 10


def test_only_segments_of_the_log_count() -> None:
    """After an unclean election another leader may have copied other records with the same offsets."""
    epochs = ((0, 0), (2, 10), (3, 20))
    own = [seg(1, 0, 14, {0: 0, 2: 10}), seg(2, 15, 29, {2: 15, 3: 20})]
    assert until(own, 0, 30, epochs) == 30
    assert until([seg(1, 0, 14, {0: 0, 1: 10}), own[1]], 0, 30, epochs) == 10
    assert until([own[0], seg(3, 15, 29, {2: 15})], 0, 30, epochs) == 20


def test_offsets_without_a_known_epoch_are_not_covered() -> None:
    assert until([seg(1, 0, 9)], 0, 10, epochs=()) == 0
    assert until([seg(1, 0, 9)], 0, 10, epochs=((0, 5),)) == 0


def test_an_epoch_without_records_needs_no_segment() -> None:
    assert until([seg(1, 0, 9, {0: 0, 3: 5})], 0, 10, epochs=((0, 0), (2, 5), (3, 5), (4, 10))) == 10


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 15)), max_size=12),
    st.integers(0, 40),
    st.integers(0, 50),
    st.integers(1, 4),
)
def test_it_agrees_with_a_look_at_every_offset(
    spans: list[tuple[int, int]], start: int, boundary: int, lookups: int
) -> None:
    segments = [seg(number, first, first + length - 1) for number, (first, length) in enumerate(spans, 1)]
    lookup = ask(segments).lookup
    expected = start
    while expected < boundary and lookup(0, expected) is not None:
        expected += 1
    at = start
    for _ in range(60):  # in pieces of some lookups
        at = covered_until(((0, 0),), at, boundary, lookup, lookups=lookups)
    assert at == (expected if start < boundary else min(start, boundary))


class TestOnALog:
    def coverage(self, world: World) -> PrefixCoverage:
        return PrefixCoverage(world.metadata)

    def status(self, coverage: PrefixCoverage, world: World, boundary: Offset) -> PrefixStatus:
        status = coverage.status(TIERED, world.log, boundary)
        assert status is not None
        return status

    async def test_it_grows_with_the_copies_until_it_is_complete(self, world: World) -> None:
        world.append(6)
        world.log.roll()
        gate = world.store.block("put_file", times=1, skip=2 * 4)
        async with world.running():
            coverage = self.coverage(world)
            assert coverage.status(TIERED, world.log, 6) is None
            await world.until(lambda: world.ranges() == [(0, 1), (2, 3)])
            status = self.status(coverage, world, 6)
            assert status == PrefixStatus(
                is_complete=False,
                tiered_log_start=0,
                tiered_high=3,
                copied_bytes=4 * SIZE,
                total_bytes=6 * SIZE,
                has_remote_segments=True,
            )
            gate.release()
            await world.until_copied()
            status = self.status(coverage, world, 6)
            assert (status.is_complete, status.tiered_high, status.copied_bytes) == (True, 5, 6 * SIZE)

    async def test_nothing_is_copied_yet(self, world: World) -> None:
        world.append(1)
        async with world.running():
            await world.until_ready()
            status = self.status(self.coverage(world), world, 1)
            assert (status.is_complete, status.tiered_log_start, status.tiered_high) == (False, -1, -1)
            assert not status.has_remote_segments

    async def test_a_log_that_starts_at_the_boundary_is_complete(self, world: World) -> None:
        world.append(4)
        world.log.roll()
        async with world.running():
            await world.until_copied()
            coverage = self.coverage(world)
            world.log.delete_records(4)
            assert self.status(coverage, world, 4).is_complete
            await world.until(lambda: not world.segments())
            status = self.status(coverage, world, 4)
            assert (status.is_complete, status.has_remote_segments, status.copied_bytes) == (True, False, 0)

    async def test_it_stays_complete_while_retention_takes_segments(self, world: World) -> None:
        world.append(6)
        world.log.roll()
        async with world.running():
            await world.until_copied()
            coverage = self.coverage(world)
            assert self.status(coverage, world, 6).is_complete
            world.configure(retention_bytes=4 * SIZE)
            await world.until(lambda: world.ranges() == [(2, 3), (4, 5)])
            status = self.status(coverage, world, 6)
            assert (status.is_complete, status.tiered_log_start, status.tiered_high) == (True, 2, 5)

    async def test_it_is_not_complete_any_more_if_the_first_segment_begins_above_the_log_start(
        self, world: World
    ) -> None:
        world.append(6)
        world.log.roll()
        async with world.running():
            await world.until_copied()
            coverage = self.coverage(world)
            assert self.status(coverage, world, 6).is_complete
            await world.manager._states.update(world.segments()[0], DELETING)
            status = self.status(coverage, world, 6)
            assert (status.is_complete, status.tiered_log_start, status.tiered_high) == (False, -1, -1)

    async def test_another_boundary_and_a_log_that_was_cut_are_looked_at_again(self, world: World) -> None:
        world.append(6)
        world.log.roll()
        async with world.running():
            await world.until_copied()
            coverage = self.coverage(world)
            assert self.status(coverage, world, 6).is_complete
            world.append(2)
            assert not self.status(coverage, world, 8).is_complete
            assert self.status(coverage, world, 6).is_complete
            world.log.truncate_to(5)
            assert not self.status(coverage, world, 6).is_complete

    async def test_a_log_start_that_goes_back_is_looked_at_again(self, world: World) -> None:
        world.append(6)
        world.log.roll()
        async with world.running():
            await world.until_copied()
            first, second, *_ = world.segments()
            coverage = self.coverage(world)
            world.log.offsets.start = 4
            assert self.status(coverage, world, 6).is_complete
            await world.manager._states.update(second, DELETING)
            world.log.offsets.start = 0
            status = self.status(coverage, world, 6)
            assert (status.is_complete, status.tiered_high) == (False, first.end_offset)

    async def test_very_many_segments_are_looked_at_in_parts(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        count = 900
        world.log.update_config(settings(internal_segment_bytes=1 << 20))
        world.harness.append(batch(count))
        for number in range(count):
            made = seg(number + 1, number, number)
            end = RemoteLogSegmentMetadataUpdate(
                segment_id=made.segment_id, event_timestamp_ms=0, state=FINISHED, broker_id=BROKER
            )
            world.topic.values[0] += [serialize(replace(made, state=STARTED)), serialize(end)]
        async with world.running():
            await world.until_ready()
            lookups: list[Offset] = []
            lookup = world.metadata.remote_log_segment_metadata

            def counted(partition: object, epoch: int, offset: int) -> RemoteLogSegmentMetadata | None:
                lookups.append(offset)
                return lookup(TIERED, epoch, offset)

            monkeypatch.setattr(world.metadata, "remote_log_segment_metadata", counted)
            coverage = self.coverage(world)
            highs = []
            while not (status := self.status(coverage, world, count)).is_complete:
                highs.append(status.tiered_high)
                assert len(highs) < count, status
            assert highs == [199, 399, 599, 799]
            assert len(lookups) <= count + len(highs) + 2, "each segment is looked at once"
            lookups.clear()
            assert self.status(coverage, world, count).is_complete
            assert len(lookups) == 1
