"""What is known of a dependency, from the outcomes of requests to it."""

from __future__ import annotations

import logging

import pytest

from strandline.health import CHECKS, READS, WRITES, Health, HealthState
from strandline.testing.clock import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def health(clock: VirtualClock) -> Health:
    return Health("diskless", "the store", "s3://b", clock, hangs_after=5)


async def test_nothing_is_known_before_the_first_outcome(health: Health) -> None:
    assert health.status().state is HealthState.UNKNOWN
    health.answered(READS)
    assert health.status().state is HealthState.UP
    assert not health.has_worked, "it was only read"
    health.answered(WRITES)
    assert health.has_worked


async def test_one_failed_request_is_a_reason_to_look_three_in_a_row_are_certain(health: Health) -> None:
    health.answered()
    health.failed("No.")
    assert health.suspected.is_set()
    assert health.status().state is HealthState.UP
    health.answered()
    for _ in range(3):
        health.failed("No answer.")
    assert (health.status().state, health.status().problem) == (HealthState.AWAY, "No answer.")
    health.answered()
    assert health.status().state is HealthState.UP


async def test_reads_that_work_do_not_hide_writes_that_fail_nor_a_check(health: Health, clock: VirtualClock) -> None:
    for _ in range(3):
        health.failed("Read-only.", WRITES)
    await clock.advance(4)
    health.answered(READS)
    assert (health.status().problem, health.status().away_seconds) == ("Read-only.", 4)
    health.failed("It belongs to another cluster.", CHECKS, is_certain=True)
    health.answered(READS)
    assert (health.status().problem, health.status().away_seconds) == ("It belongs to another cluster.", 4)
    health.answered(WRITES)
    assert health.status().problem == "It belongs to another cluster."
    health.answered(CHECKS)
    assert health.status().state is HealthState.UP


async def test_a_check_that_passes_waits_until_other_requests_have_stopped_failing(
    health: Health, clock: VirtualClock
) -> None:
    for _ in range(3):
        health.failed("The disk is full.", WRITES)
    health.passed(WRITES)
    assert health.status().is_away, "a few bytes may fit"
    await clock.advance(30)
    health.passed(WRITES)
    assert not health.status().is_away


async def test_a_request_that_hangs_counts_until_something_is_answered(health: Health, clock: VirtualClock) -> None:
    with health.waiting():
        await clock.advance(5)
        assert not health.status().is_away
        await clock.advance(2)
        assert health.status().problem == "It has not answered for 7 seconds."
        assert health.status().away_seconds == 7
        health.answered()
        assert not health.status().is_away


async def test_one_reason_is_logged_once(health: Health, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        for _ in range(5):
            health.failed("No.", is_certain=True)
        health.answered()
        health.answered()
    assert caplog.messages == ["the store is away: No.", "the store (s3://b) answers again"]


async def test_requests_that_fail_each_with_a_sentence_of_its_own_do_not_fill_the_log(
    health: Health, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        for number in range(20):
            health.failed(f"Cannot write object {number}.", WRITES)
            health.failed(f"Cannot read object {number}.", READS)
            health.failed("Look at the endpoint.", CHECKS, is_certain=True)
            health.failed("Look at the bucket.", "opening", is_certain=True)
        for kind in (WRITES, READS, CHECKS, "opening"):
            health.answered(kind)
    assert caplog.messages == [
        "the store is away: Look at the endpoint.",
        "the store is away: Look at the bucket.",
        "the store (s3://b) answers again",
    ]
