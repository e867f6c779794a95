"""Whether all that lies below the boundary of a log on another broker is in remote storage, by its metadata."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from strandline.clock import SystemIds
from strandline.controlplane.values import DisklessLog, MigrationState
from strandline.hybrid.diskless.remote_prefix import RemotePrefix, lineage
from strandline.remote.values import RemoteLogSegmentId, RemoteLogSegmentMetadata, RemoteLogSegmentState
from tests.controlplane.switching import P, switched
from tests.hybrid.diskless.converting import ConvertingWorld, ReadingBroker, open_converting
from tests.waiting import until

B0 = 100
LOG = DisklessLog(
    partition=P,
    log_start_offset=20,
    high_watermark=B0,
    diskless_start_offset=B0,
    diskless_log_start_offset=B0,
    diskless_log_start_epoch=3,
    tiered_high_offset=B0 - 1,
    migration_state=MigrationState.HYBRID,
)


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[ConvertingWorld]:
    async with open_converting(tmp_path, create=False) as world:
        await switched(world.plane, B0, log_start=20)
        yield world


async def copied(
    world: ConvertingWorld, start: int, end: int, epochs: Mapping[int, int], *, is_finished: bool = True
) -> RemoteLogSegmentMetadata:
    """The metadata of a segment from `start` up to and without `end`."""
    segment = RemoteLogSegmentMetadata(
        segment_id=RemoteLogSegmentId(P, SystemIds().uuid()),
        start_offset=start,
        end_offset=end - 1,
        max_timestamp_ms=0,
        broker_id=1,
        event_timestamp_ms=0,
        segment_size_in_bytes=1,
        segment_leader_epochs=epochs,
        txn_index_empty=True,
    )
    await world.leader.add_remote_log_segment_metadata(segment)
    if is_finished:
        await world.set_state(segment, RemoteLogSegmentState.COPY_SEGMENT_FINISHED)
    return segment


async def prefix_of(world: ConvertingWorld) -> tuple[RemotePrefix, ReadingBroker]:
    """As another broker sees it that has read the metadata."""
    broker = await world.broker()
    broker.reader.learn(LOG)
    prefix = RemotePrefix(P, B0, 3, broker.reader, broker.tiered)
    assert not prefix.look(LOG)
    assert prefix.is_proving, "the metadata is not read yet"
    await until(lambda: broker.metadata.is_ready(P))
    return prefix, broker


async def test_segments_without_a_gap_up_to_the_boundary_are_proof(world: ConvertingWorld) -> None:
    await copied(world, 0, 30, {0: 0})
    await copied(world, 30, 70, {0: 30, 1: 50})
    await copied(world, 70, 100, {1: 70, 2: 90})
    await copied(world, 100, 120, {3: 100})
    prefix, _ = await prefix_of(world)
    assert prefix.look(LOG)
    assert prefix.epochs.entries == [(0, 0), (1, 50), (2, 90)]
    assert [prefix.epoch_for_offset(offset) for offset in (20, 49, 50, 99)] == [0, 0, 1, 2]
    assert [prefix.end_of_epoch(epoch) for epoch in (0, 1, 2)] == [(0, 50), (1, 90), (2, 100)]
    assert prefix.end_of_epoch(3) is None, "it goes on behind the boundary"


@pytest.mark.parametrize("missing", [0, 1, 2])
async def test_a_gap_is_none(world: ConvertingWorld, missing: int) -> None:
    for number, start in enumerate((20, 50, 80)):
        await copied(world, start, min(start + 30, B0), {0: start}, is_finished=number != missing)
    prefix, _ = await prefix_of(world)
    assert not prefix.look(LOG)
    assert not prefix.look(LOG)
    assert not prefix.is_proving, "a look now and then is enough"


async def test_what_its_leader_still_copies_is_not_proven_whatever_is_there(world: ConvertingWorld) -> None:
    await copied(world, 0, 100, {0: 0})
    prefix, _ = await prefix_of(world)
    assert not prefix.look(replace(LOG, migration_state=MigrationState.MIGRATING))
    assert not prefix.look(replace(LOG, tiered_high_offset=50)), "its switch was completed by force"
    assert prefix.look(LOG)


async def test_segments_that_retention_deletes_below_the_log_start_are_not_missed(world: ConvertingWorld) -> None:
    first = await copied(world, 0, 50, {0: 0})
    await copied(world, 50, 100, {0: 50})
    prefix, broker = await prefix_of(world)
    assert prefix.look(LOG)
    await world.set_state(first, RemoteLogSegmentState.DELETE_SEGMENT_STARTED)
    await until(lambda: broker.metadata.remote_log_segment_metadata(P, 0, 20) is None)
    assert not prefix.look(LOG)
    later = replace(LOG, log_start_offset=50)
    broker.reader.learn(later)
    assert prefix.look(later)


async def test_segments_whose_end_a_later_leader_has_replaced_are_not_of_the_log(world: ConvertingWorld) -> None:
    lost = await copied(world, 0, 60, {0: 0})
    own = await copied(world, 20, 100, {0: 20, 1: 50})
    behind = await copied(world, 100, 120, {3: 100})
    prefix, _ = await prefix_of(world)
    assert prefix.look(LOG)
    assert [prefix.is_of_log(segment) for segment in (lost, own, behind)] == [False, True, True]


async def test_without_remote_storage_nothing_is_proven(world: ConvertingWorld) -> None:
    broker = await world.broker(has_remote=False)
    prefix = RemotePrefix(P, B0, 3, broker.reader, broker.tiered)
    assert not prefix.look(LOG)
    assert not prefix.is_proving


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 8)), min_size=1, max_size=8))
def test_the_history_of_a_log_is_found_among_copies_of_what_leaders_have_lost(
    leaders: list[tuple[int, int]],
) -> None:
    """Each leader loses some records of those before it, and writes some."""
    owners: list[int] = []
    first: list[tuple[int, int]] = []
    for epoch, (lost, written) in enumerate(leaders):
        del owners[max(len(owners) - lost, 0) :]
        first.append((epoch, len(owners)))
        owners += [epoch] * written
    history = lineage(first, len(owners))
    found = [max(epoch for epoch, start in history if start <= offset) for offset in range(len(owners))]
    assert found == owners
    assert [start for _, start in history] == sorted({start for _, start in history})
