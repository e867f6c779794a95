"""Where the log of a new leader begins, and up to where it counts as copied. No I/O."""

from __future__ import annotations

from strandline.remote.manager.starting import Runs, copied_without_gap, log_start_of_new_leader
from tests.remote.manager.deleting.test_plan import segment
from tests.remote.manager.offsets import offsets

REMOTE = [segment(1, 0, 9), segment(2, 10, 19), segment(3, 20, 29)]


def test_without_remote_segments_a_log_begins_with_its_local_part() -> None:
    assert log_start_of_new_leader(offsets(log_start=5, local=20), Runs()) == 20


def test_a_log_that_begins_with_its_local_part_begins_with_what_is_remote_before_it() -> None:
    assert log_start_of_new_leader(offsets(log_start=30, local=30), Runs(REMOTE)) == 0
    assert log_start_of_new_leader(offsets(log_start=30, local=30), Runs(REMOTE[1:])) == 10


def test_records_that_were_deleted_stay_so() -> None:
    assert log_start_of_new_leader(offsets(log_start=15, local=30), Runs(REMOTE)) == 15
    assert log_start_of_new_leader(offsets(log_start=35, local=35, first_base=30), Runs(REMOTE)) == 35


def test_a_log_does_not_begin_before_the_first_remote_segment() -> None:
    assert log_start_of_new_leader(offsets(log_start=0, local=30), Runs(REMOTE[1:])) == 10


def test_a_log_does_not_begin_before_a_gap() -> None:
    assert log_start_of_new_leader(offsets(log_start=30, local=30), Runs([REMOTE[0], REMOTE[2]])) == 20


def test_what_is_local_counts_as_copied_up_to_the_first_gap() -> None:
    assert copied_without_gap(29, 5, Runs(REMOTE)) == 29
    assert copied_without_gap(29, 5, Runs([REMOTE[0], REMOTE[2]])) == 9
    assert copied_without_gap(29, 5, Runs(REMOTE[1:])) == 4
    assert copied_without_gap(29, 50, Runs(REMOTE)) == 29
    assert copied_without_gap(-1, 0, Runs()) == -1
