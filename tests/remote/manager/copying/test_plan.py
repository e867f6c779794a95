"""Which segments are copied next. No I/O."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.log import ClosedSegment
from strandline.remote.manager.copying.plan import copy_from, to_copy
from tests.remote.manager.offsets import offsets


def finished(base: int, following: int) -> ClosedSegment:
    return ClosedSegment(
        base_offset=base,
        next_base_offset=following,
        size=1,
        max_timestamp=1,
        log=Path("log"),
        offset_index=Path("index"),
        time_index=Path("timeindex"),
        txn_index=None,
        producer_snapshot=Path("snapshot"),
        leader_epochs={0: base},
        epoch_history=b"",
    )


def test_what_neither_storage_has_is_not_waited_for() -> None:
    assert copy_from(offsets(log_start=0, local=60), 49) == 60
    assert copy_from(offsets(log_start=70, local=70, first_base=60), 49) == 70


@pytest.mark.parametrize(
    ("copied", "log_start", "active", "stable", "expected"),
    [
        (-1, 0, 0, 50, None),  # only the active segment
        (-1, 0, 100, 0, None),  # nothing is stable
        (-1, 0, 100, 150, 0),
        (99, 0, 100, 150, None),  # all is copied
        (49, 0, 100, 150, 50),
        (49, 70, 100, 150, 70),  # what was deleted is not copied
        (-1, 0, 100, 50, 0),
    ],
)
def test_a_few_numbers_tell_whether_there_is_something_to_copy(
    copied: int, log_start: int, active: int, stable: int, expected: int | None
) -> None:
    assert copy_from(offsets(log_start=log_start, active=active, stable=stable), copied) == expected


def test_segments_are_copied_as_a_whole_up_to_the_last_stable_offset() -> None:
    segments = [finished(0, 10), finished(10, 20), finished(20, 30)]
    assert [s.base_offset for s in to_copy(segments, 0, 30)] == [0, 10, 20]
    assert [s.base_offset for s in to_copy(segments, 15, 30)] == [10, 20]
    assert [s.base_offset for s in to_copy(segments, 10, 29)] == [10]
    assert to_copy(segments, 10, 19) == []
