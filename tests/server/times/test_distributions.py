"""Buckets, quantiles, and what is recent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.server.times.distributions import BUCKETS, SHIFT, Distribution, plus, upper_bound_ns
from strandline.server.times.recording import STEP_SECONDS, WINDOW_SECONDS, RequestTimes
from strandline.testing.clock import VirtualClock
from strandline.wire.api import ApiKey
from tests.server.times.exchanges import exchange_of

pytestmark = pytest.mark.plain

MS = 1_000_000


def of(durations: list[int]) -> Distribution:
    counts = [0] * BUCKETS
    for duration in durations:
        counts[(duration >> SHIFT).bit_length()] += 1
    return Distribution(counts, sum(durations), counts)


@given(st.integers(0, 2**63 - 1))
def test_a_duration_is_below_the_bound_of_its_bucket_and_not_below_the_one_before(duration: int) -> None:
    bucket = of([duration]).counts.index(1)
    assert duration < upper_bound_ns(bucket)
    assert bucket == 0 or duration >= upper_bound_ns(bucket - 1)


@given(st.lists(st.integers(10_000, 60_000 * MS), min_size=1), st.sampled_from((0.5, 0.75, 0.95, 0.99, 0.999, 1.0)))
def test_a_quantile_is_wrong_by_less_than_a_factor_of_two(durations: list[int], quantile: float) -> None:
    rank = max(int(-(-quantile * len(durations) // 1)), 1)
    exact = sorted(durations)[rank - 1]
    assert exact / 2 <= of(durations).quantile_ns(quantile) <= 2 * exact


def test_without_requests_quantiles_are_0() -> None:
    assert of([]).quantile_ns(0.99) == 0
    assert plus(of([5 * MS]), of([5 * MS])).count == 2


def test_quantiles_are_of_the_last_minutes() -> None:
    clock = VirtualClock()
    times = RequestTimes(clock)

    def served(milliseconds: int) -> None:
        exchange = exchange_of(times, ApiKey.HEARTBEAT)
        exchange.local_end_ns = exchange.started_ns + milliseconds * MS
        times[ApiKey.HEARTBEAT].record(exchange, exchange.local_end_ns, exchange.local_end_ns)

    def p99() -> float:
        return times.status()[ApiKey.HEARTBEAT].parts["total"].quantile_ns(0.99) / MS

    for _ in range(100):
        served(1000)
    assert p99() == pytest.approx(1000, rel=1)
    for _ in range(int(WINDOW_SECONDS / STEP_SECONDS) + 1):
        clock.move(STEP_SECONDS)
        served(1)
        p99()
    assert p99() < 4
    assert times.status()[ApiKey.HEARTBEAT].parts["total"].count == 100 + WINDOW_SECONDS / STEP_SECONDS + 1
    clock.move(10 * WINDOW_SECONDS)
    assert p99() < 4, "since somebody asked last"
    clock.move(WINDOW_SECONDS)
    assert p99() == 0


def test_the_parts_add_up_to_the_total() -> None:
    times = RequestTimes(VirtualClock())
    exchange = exchange_of(times, ApiKey.PRODUCE)
    start = exchange.started_ns
    exchange.queue_ns = 3 * MS
    exchange.local_end_ns = start + 5 * MS
    exchange.answered_ns = start + 12 * MS
    times[ApiKey.PRODUCE].record(exchange, start + 25 * MS, start + 42 * MS)
    parts = times.status()[ApiKey.PRODUCE].parts
    assert {name: part.sum_ns // MS for name, part in parts.items()} == {
        "queue": 3,
        "local": 5,
        "remote": 7,
        "response_queue": 13,
        "send": 17,
        "total": 45,
    }
    assert all(part.count == 1 for part in parts.values())
    assert all(part.quantile_ns(1.0) >= part.sum_ns / 2 for part in parts.values())


def test_what_took_no_time_is_counted_too() -> None:
    times = RequestTimes(VirtualClock())
    exchange = exchange_of(times, ApiKey.PRODUCE)
    exchange.local_end_ns = exchange.started_ns
    times[ApiKey.PRODUCE].record(exchange, exchange.started_ns, exchange.started_ns)
    status = times.status()[ApiKey.PRODUCE]
    assert [(part.counts[0], part.count, part.sum_ns) for part in status.parts.values()] == [(1, 1, 0)] * 6
    assert times.requests() == {ApiKey.PRODUCE: 1}
