"""Rates of topics, from looks at totals."""

from __future__ import annotations

from strandline.admin.http.rates import Rate, RateMeter
from strandline.admin.status import BrokerStatus, TopicRow
from strandline.hybrid.traffic import TrafficTotals
from tests.admin.http.statuses import CLEANER


def at(uptime_s: float, *, out: int = 0, **bytes_in: int) -> BrokerStatus:
    rows = tuple(
        TopicRow(name=name, traffic=TrafficTotals(bytes_in=size, bytes_out=out)) for name, size in bytes_in.items()
    )
    everything = TrafficTotals(bytes_in=sum(bytes_in.values()))
    return BrokerStatus(
        version="1", node_id=1, cluster_id="c", cleaner=CLEANER, uptime_s=uptime_s, topic_rows=rows, traffic=everything
    )


def test_the_first_look_gives_the_average_since_the_start() -> None:
    rates = RateMeter().look(at(100, a=1000, b=500))
    assert (rates.seconds, rates.of("a").bytes_in, rates.of().bytes_in) == (100, 10, 15)
    assert rates.of("no such topic").bytes_in == 0


def test_later_looks_give_the_rate_since_an_earlier_one() -> None:
    meter = RateMeter()
    meter.look(at(100, a=1000))
    assert meter.look(at(101, a=1010)).seconds == 101, "one second says too little"
    rates = meter.look(at(110, a=1200, new=30))
    assert (rates.seconds, rates.of("a").bytes_in, rates.of("new").bytes_in) == (10, 20, 3)
    assert meter.look(at(114, a=1200)).seconds == 14
    assert meter.look(at(1000, a=1200)).seconds == 1000, "a look of long ago says nothing of now"


def test_a_topic_that_was_created_again_begins_at_zero() -> None:
    meter = RateMeter()
    meter.look(at(100, a=1000))
    assert meter.look(at(110, a=50)).of("a").bytes_in == 5
    assert meter.look(at(120, a=50, out=900)).of("a").bytes_out == 90
    assert meter.look(at(130, a=60, out=20)).of("a") == Rate(0, 6, 2), "no rate is below zero"
