"""When the writer begins the next object."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.config.diskless import DisklessSettings
from strandline.diskless.writer.rotation import Gathered, Pipe, RotationRules, WriterLimits

LIMITS = WriterLimits(max_bytes=8000, max_batches=100, commit_interval=0.25, parallel_uploads=4)
ONE = Pipe(1, 0, 0)
"""One upload, and nothing else."""
SLOW = 0.4
"""Seconds of an upload: a quarter of them is a while that can be told from the interval."""


class _Rules(RotationRules):
    """With uploads that take as long as ever."""

    def __init__(self) -> None:
        super().__init__(LIMITS)

    def is_due(self, gathered: Gathered, pipe: Pipe, *, upload_seconds: float = SLOW) -> bool:
        return super().is_due(gathered, pipe, upload_seconds=upload_seconds)

    def seconds_left(self, gathered: Gathered, pipe: Pipe = ONE, *, upload_seconds: float = SLOW) -> float:
        return super().seconds_left(gathered, pipe, upload_seconds=upload_seconds)


RULES = _Rules()

gathered = st.builds(
    Gathered,
    byte_count=st.integers(1, 10_000),
    batch_count=st.integers(1, 120),
    seconds=st.floats(0, 1),
)
pipes = st.builds(Pipe, st.integers(0, 12), st.integers(0, 12), st.integers(0, 12))


@given(pipe=pipes, seconds=st.floats(0, 10))
def test_nothing_gathered_makes_no_object(pipe: Pipe, seconds: float) -> None:
    assert not RULES.is_due(Gathered(0, 0, seconds), pipe)


@given(waiting=gathered, committing=st.integers(0, 8))
def test_nothing_waits_while_no_object_is_uploaded_or_waits_for_its_commit(waiting: Gathered, committing: int) -> None:
    assert RULES.is_due(waiting, Pipe(0, 0, committing))


@given(pipe=pipes, waiting=gathered)
def test_a_full_buffer_is_always_rotated(pipe: Pipe, waiting: Gathered) -> None:
    assert RULES.is_due(waiting._replace(byte_count=8000), pipe)
    assert RULES.is_due(waiting._replace(batch_count=100), pipe)


@given(pipe=pipes, waiting=gathered)
def test_what_is_due_stays_due_when_more_gathers_and_time_passes(pipe: Pipe, waiting: Gathered) -> None:
    more = Gathered(waiting.byte_count + 1, waiting.batch_count + 1, waiting.seconds + 0.1)
    assert RULES.is_due(more, pipe) or not RULES.is_due(waiting, pipe)


@given(waiting=gathered, uploaded=st.integers(0, 12))
def test_no_more_than_the_allowed_uploads_run_unless_a_buffer_is_full(waiting: Gathered, uploaded: int) -> None:
    is_full = waiting.byte_count >= 8000 or waiting.batch_count >= 100
    assert RULES.is_due(waiting, Pipe(4, uploaded, 1)) == is_full


@pytest.mark.parametrize(("uploading", "enough"), [(1, 2000), (2, 8000), (3, 8000)])
def test_much_of_an_object_is_uploaded_beside_others_at_once(uploading: int, enough: int) -> None:
    pipe = Pipe(uploading, 0, 0)
    assert not RULES.is_due(Gathered(enough - 1, enough // 80 - 1, 0.0), pipe)
    assert RULES.is_due(Gathered(enough, 1, 0.0), pipe)
    assert RULES.is_due(Gathered(1, enough // 80, 0.0), pipe)


def test_a_sixteenth_waits_for_a_part_of_what_an_upload_takes() -> None:
    pipe = Pipe(1, 0, 0)
    for enough in (Gathered(500, 1, 0.1), Gathered(1, 7, 0.1)):
        assert RULES.is_due(enough, pipe)
        assert not RULES.is_due(enough._replace(seconds=0.09), pipe)
        assert RULES.is_due(enough._replace(seconds=0.09), pipe, upload_seconds=0.2)
    assert not RULES.is_due(Gathered(499, 6, 0.1), pipe)


def test_beside_several_uploads_it_waits_for_twice_as_long() -> None:
    assert not RULES.is_due(Gathered(500, 1, 0.19), Pipe(2, 0, 0))
    assert RULES.is_due(Gathered(500, 1, 0.2), Pipe(2, 0, 0))


def test_slow_uploads_do_not_make_batches_wait_longer_than_the_interval() -> None:
    assert RULES.is_due(Gathered(500, 1, 0.25), Pipe(1, 0, 0), upload_seconds=60.0)


def test_beside_a_running_upload_the_interval_makes_an_object() -> None:
    assert not RULES.is_due(Gathered(1, 1, 0.24), Pipe(3, 0, 0))
    assert RULES.is_due(Gathered(1, 1, 0.25), Pipe(3, 0, 0))


def test_what_waits_for_a_commit_is_no_reason_to_upload_next_to_nothing() -> None:
    assert not RULES.is_due(Gathered(499, 1, 0.1), Pipe(0, 1, 1))
    assert RULES.is_due(Gathered(500, 1, 0.1), Pipe(0, 1, 1))


def test_small_objects_do_not_pile_up_before_a_slow_commit() -> None:
    assert not RULES.is_due(Gathered(7999, 99, 60.0), Pipe(0, 8, 1))


@given(waiting=gathered, size=st.integers(1, 10_000))
def test_an_object_never_exceeds_its_limits_unless_one_batch_does(waiting: Gathered, size: int) -> None:
    rotates = RULES.must_rotate_before(size, byte_count=waiting.byte_count, batch_count=waiting.batch_count)
    assert rotates == (waiting.byte_count + size > 8000 or waiting.batch_count + 1 > 100)
    assert not RULES.must_rotate_before(size, byte_count=0, batch_count=0)


@given(waiting=gathered)
def test_the_timer_ends_when_the_interval_is_over(waiting: Gathered) -> None:
    left = RULES.seconds_left(waiting)
    assert left >= 0
    assert left == 0 or RULES.seconds_left(waiting._replace(seconds=waiting.seconds + left)) == 0
    assert RULES.is_due(waiting._replace(seconds=waiting.seconds + left), Pipe(1, 0, 0))


def test_the_limits_come_from_the_settings() -> None:
    limits = WriterLimits.from_settings(DisklessSettings(), max_pending_bytes=300)
    assert (limits.max_bytes, limits.commit_interval, limits.parallel_uploads) == (8 * 1024 * 1024, 0.25, 8)
    assert (limits.upload_attempts, limits.upload_backoff) == (3, 0.01)
    assert limits.max_pending_bytes == 300


# Lingering

LINGERING = RotationRules(replace(LIMITS, linger=0.1))
EMPTY = Pipe(0, 0, 0)


def test_a_quiet_writer_lingers_if_it_is_told_to() -> None:
    small = Gathered(10, 1, 0.0)
    assert not LINGERING.is_due(small, EMPTY, upload_seconds=0.0)
    assert LINGERING.seconds_left(small, EMPTY, upload_seconds=0.0) == pytest.approx(0.1)
    assert LINGERING.is_due(small._replace(seconds=0.0995), EMPTY, upload_seconds=0.0)


@given(waiting=gathered, pipe=pipes)
def test_whatever_lingers_is_small_and_young(waiting: Gathered, pipe: Pipe) -> None:
    """Nothing that would be due without lingering waits longer than that, and no quarter of an object does."""
    if not RULES.is_due(waiting, pipe) or LINGERING.is_due(waiting, pipe, upload_seconds=SLOW):
        return
    assert waiting.seconds < 0.1
    assert waiting.byte_count < 2000 or pipe.uploading > 1
    assert 0 < LINGERING.seconds_left(waiting, pipe, upload_seconds=SLOW) <= 0.1


def test_the_setting_is_in_milliseconds_and_off() -> None:
    assert WriterLimits.from_settings(DisklessSettings(), max_pending_bytes=1).linger == 0
    settings = DisklessSettings(strandline_produce_linger_ms=50)
    assert WriterLimits.from_settings(settings, max_pending_bytes=1).linger == 0.05
