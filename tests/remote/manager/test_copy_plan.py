"""Where a leader begins to copy, and where its log begins. No I/O."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.log import ClosedSegment
from strandline.remote.manager.copy_plan import (
    LogOffsets,
    copied_without_gap,
    copy_from,
    log_start_of_new_leader,
    to_copy,
)
from strandline.remote.manager.why_local import LocalSegmentQuestion, why_local
from tests.remote.manager.test_expiry_plan import segment


def offsets(
    *, log_start: int = 0, local: int = 0, first_base: int | None = None, active: int = 100, stable: int = 150
) -> LogOffsets:
    return LogOffsets(
        log_start=log_start,
        local_log_start=local,
        first_base=local if first_base is None else first_base,
        active_base=active,
        last_stable_offset=stable,
    )


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


REMOTE = [segment(1, 0, 9), segment(2, 10, 19), segment(3, 20, 29)]


def test_without_remote_segments_a_log_begins_with_its_local_part() -> None:
    assert log_start_of_new_leader(offsets(log_start=5, local=20), []) == 20


def test_a_log_that_begins_with_its_local_part_begins_with_what_is_remote_before_it() -> None:
    assert log_start_of_new_leader(offsets(log_start=30, local=30), REMOTE) == 0
    assert log_start_of_new_leader(offsets(log_start=30, local=30), REMOTE[1:]) == 10


def test_records_that_were_deleted_stay_so() -> None:
    assert log_start_of_new_leader(offsets(log_start=15, local=30), REMOTE) == 15
    assert log_start_of_new_leader(offsets(log_start=35, local=35, first_base=30), REMOTE) == 35


def test_a_log_does_not_begin_before_the_first_remote_segment() -> None:
    assert log_start_of_new_leader(offsets(log_start=0, local=30), REMOTE[1:]) == 10


def test_a_log_does_not_begin_before_a_gap() -> None:
    assert log_start_of_new_leader(offsets(log_start=30, local=30), [REMOTE[0], REMOTE[2]]) == 20


def test_what_is_local_counts_as_copied_up_to_the_first_gap() -> None:
    assert copied_without_gap(29, 5, REMOTE) == 29
    assert copied_without_gap(29, 5, [REMOTE[0], REMOTE[2]]) == 9
    assert copied_without_gap(29, 5, REMOTE[1:]) == 4
    assert copied_without_gap(29, 50, REMOTE) == 29
    assert copied_without_gap(-1, 0, []) == -1


def question(**changes: object) -> LocalSegmentQuestion:
    values: dict[str, object] = {
        "base_offset": 10,
        "next_base_offset": 20,
        "last_stable_offset": 30,
        "high_watermark": 30,
        "is_enabled": True,
        "is_copy_disabled": False,
        "is_ready": True,
        "refusal": None,
        "copying_seconds": None,
        "is_waiting_for_quota": False,
        "is_waiting_for_place": False,
        "pool_size": 10,
        "last_error": None,
        "next_look_seconds": 12.3,
    }
    return LocalSegmentQuestion(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"is_enabled": False}, "remote.storage.enable is false"),
        ({"is_copy_disabled": True}, "remote.log.copy.disable is true"),
        ({"refusal": "too large"}, "copying has stopped: too large"),
        ({"next_base_offset": None}, "active segment"),
        ({"last_stable_offset": 15}, "a transaction is open since offset 15"),
        ({"last_stable_offset": 15, "high_watermark": 15}, "the high watermark is 15"),
        ({"copying_seconds": 7.2}, "being copied, since 7 s"),
        ({"is_waiting_for_quota": True}, "remote.log.manager.copy.max.bytes.per.second"),
        ({"is_waiting_for_place": True}, "one of 10 places"),
        ({"last_error": "gone"}, "the last try failed, the next one is in 12 s: gone"),
        ({"is_ready": False}, "has not been read yet"),
        ({}, "it will be copied in 12 s"),
    ],
)
def test_a_sentence_says_why_a_segment_is_still_local(changes: dict[str, object], expected: str) -> None:
    assert expected in why_local(question(**changes))
