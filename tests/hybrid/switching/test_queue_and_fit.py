"""Which topics are switched, and how a log fits its boundary: for any requests, and any offsets."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from strandline.controlplane.values import DisklessLog, MigrationState, TopicMigration
from strandline.hybrid.switching.queue import admitted, holds_place
from strandline.hybrid.switching.reconciling import Fit, compare
from strandline.model import NO_EPOCH, TopicIdPartition, TopicPartition

NOW = 1_000_000
COPYING_MS = 1000

sealed_times = st.none() | st.integers(NOW - 3 * COPYING_MS, NOW)


def requests(sealed: list[int | None]) -> list[TopicMigration]:
    """Requests in their order, with gaps between their positions."""
    return [
        TopicMigration(
            position=3 * number + 1,
            topic_id=UUID(int=number + 1),
            topic=f"topic-{number}",
            partitions=1,
            requested_at_ms=0,
            sealed_at_ms=sealed_at,
            now_ms=NOW,
        )
        for number, sealed_at in enumerate(sealed)
    ]


@given(st.lists(sealed_times, max_size=30), st.integers(1, 8))
def test_the_queue_admits_no_more_than_are_allowed_and_nobody_out_of_turn(
    sealed: list[int | None], parallel: int
) -> None:
    migrations = requests(sealed)
    found = admitted(migrations, parallel=parallel, copying_ms=COPYING_MS)
    assert found == {one.topic_id: one.position for one in migrations if one.topic_id in found}
    holding = [one for one in migrations if holds_place(one, copying_ms=COPYING_MS)]
    inside = [one for one in holding if one.topic_id in found]
    assert inside == holding[:parallel], "the oldest requests come first, and a free place is not left empty"
    others = [one for one in migrations if one not in holding]
    assert all(one.topic_id in found for one in others), "one that only copies waits for nobody"


@given(st.lists(sealed_times, min_size=1, max_size=12), st.integers(1, 4), st.data())
def test_the_queue_takes_nobody_back_when_another_goes_on(
    sealed: list[int | None], parallel: int, data: st.DataObject
) -> None:
    """A topic that was admitted stays so whatever becomes of the others: it may have begun."""
    before = admitted(requests(sealed), parallel=parallel, copying_ms=COPYING_MS)
    changed = data.draw(st.integers(0, len(sealed) - 1))
    later = requests([NOW if index == changed and at is None else at for index, at in enumerate(sealed)])
    if data.draw(st.booleans()):
        later.pop(changed)  # finished, or aborted
    after = admitted(later, parallel=parallel, copying_ms=COPYING_MS)
    assert before.keys() - after.keys() <= {UUID(int=changed + 1)}


@st.composite
def logs(draw: st.DrawFn) -> tuple[Any, DisklessLog | None]:
    """A local log and what the control plane has of it, in any relation to each other."""
    start = draw(st.integers(0, 20))
    end = draw(st.integers(start, 30))
    local = SimpleNamespace(
        log_start_offset=start,
        log_end_offset=end,
        topic_partition=TopicPartition("topic", 0),
        directory=Path("logs/topic-0"),
    )
    if draw(st.booleans()) and draw(st.booleans()):
        return local, None
    boundary = draw(st.integers(-1, 30))
    epoch = draw(st.sampled_from([NO_EPOCH, 0, 3]))
    plane = DisklessLog(
        partition=TopicIdPartition(UUID(int=1), TopicPartition("topic", 0)),
        log_start_offset=min(start, max(boundary, 0)),
        high_watermark=max(boundary, 0) + draw(st.integers(0, 3)),
        diskless_start_offset=boundary,
        diskless_log_start_offset=boundary,
        diskless_log_start_epoch=epoch,
        migration_state=MigrationState.MIGRATING,
        last_epoch=epoch,
    )
    return local, plane


@given(logs())
def test_a_log_is_cut_or_served_only_where_that_loses_nothing(found: tuple[Any, DisklessLog | None]) -> None:
    local, plane = found
    fit = compare(local, plane)
    start, end = local.log_start_offset, local.log_end_offset
    boundary = -1 if plane is None else plane.diskless_log_start_offset
    if plane is None or boundary < 0:
        assert fit is Fit.NO_BOUNDARY
    elif fit is Fit.NOT_ITS_LOG:
        assert plane.high_watermark == boundary == 0
        assert end > 0, "a switch of a log with records has another boundary"
    else:
        assert (fit is Fit.BOUNDARY_BELOW_START) == (start > boundary)
        assert (fit is Fit.ENDS_ABOVE) == (start <= boundary < end)
        assert (fit is Fit.ENDS_BELOW) == (end < boundary)
        assert (fit is Fit.FITS) == (end == boundary)
    is_quiet = fit in (Fit.NO_BOUNDARY, Fit.FITS)
    assert bool(fit.sentence(local, plane)) != is_quiet, "whatever does not fit is said"
