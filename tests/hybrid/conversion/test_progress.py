"""What a broker counts of the conversion of topics: its own partitions, and only values."""

from __future__ import annotations

from dataclasses import replace

from strandline.conversion_api.values import PartitionTieringStatus, TieringStatus
from strandline.hybrid.conversion.figures import LATENCY_BOUNDS_S, TieringFigures
from strandline.hybrid.conversion.progress import backlogs_of, conversion_status

ONE = PartitionTieringStatus(
    partition=0,
    tiered_high_offset=9,
    diskless_start_offset=10,
    high_watermark=100,
    pending_batches_count=1,
    pending_split_files_count=2,
    eligible_bytes=3,
    lag_bytes=4,
    pending_merge_batches_count=5,
)
TOPIC = TieringStatus(
    topic_name="orders",
    tiered_high_offset=9,
    diskless_start_offset=10,
    high_watermark=100,
    pending_batches_count=3,
    pending_split_files_count=6,
    eligible_bytes=9,
    is_paused=True,
    partitions=(ONE, replace(ONE, partition=1, diskless_start_offset=50), replace(ONE, partition=2, high_watermark=0)),
)


def test_sums_over_brokers_count_every_partition_once() -> None:
    (here,) = backlogs_of([TOPIC], {"orders": {1, 2}}).values()
    assert (here.pending_split, here.pending_merge, here.eligible_bytes, here.lag_bytes) == (2, 10, 6, 8)
    assert (here.boundary, here.high_watermark, here.is_paused) == (50, 100, True)
    (there,) = backlogs_of([TOPIC], {"orders": {0}, "gone": {0}}).values()
    assert here.lag_bytes + there.lag_bytes == 12
    assert backlogs_of([TOPIC], {"orders": {7}}) == {}


def test_a_status_is_a_value_of_counters_that_go_on() -> None:
    figures = TieringFigures(batches_split=1)
    figures.split_latency.add(LATENCY_BOUNDS_S[0])
    figures.split_latency.add(1e9)
    before = conversion_status(figures, {}, now=0.0)
    figures.batches_split += 1
    figures.split_latency.add(0.0)
    assert before.batches_split == 1
    counts, total = before.split_latency
    assert (counts[0], counts[-1], sum(counts), total) == (1, 1, 2, 1e9 + LATENCY_BOUNDS_S[0])
