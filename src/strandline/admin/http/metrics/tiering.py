"""Metrics of the conversion of diskless topics into tiered segments. Names are those of the unification design."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from strandline.admin.http.metrics.families import Family, Histogram, Samples, counter, gauge, gauges
from strandline.hybrid.conversion.figures import LATENCY_BOUNDS_S
from strandline.hybrid.conversion.progress import ConversionBacklog, ConversionStatus

_TIERING: Final = "inkless_tiering_"


def _by_topic(value: Callable[[ConversionBacklog], float]) -> Callable[[ConversionStatus], Mapping[str, float]]:
    return lambda status: {topic: value(backlog) for topic, backlog in status.topics.items()}


def _histogram(
    name: str, text: str, value: Callable[[ConversionStatus], tuple[Sequence[int], float]]
) -> Family[ConversionStatus]:
    def samples(status: ConversionStatus) -> Samples:
        counts, total = value(status)
        return {(): Histogram(LATENCY_BOUNDS_S, counts, total)}

    return Family("histogram", name, text, (), samples, {})


TIERING: Final[tuple[Family[ConversionStatus], ...]] = (
    counter(
        _TIERING + "batches_split",
        "Batches that became parts of split files, recorded through this broker.",
        lambda status: status.batches_split,
    ),
    counter(
        _TIERING + "segments_created",
        "Segments that the pipeline made of partitions led here.",
        lambda status: status.segments_created,
    ),
    gauges(
        _TIERING + "batches_pending_split",
        "Rows of partitions led here that are old enough to be converted, or were triggered, and are not split.",
        "topic",
        _by_topic(lambda backlog: backlog.pending_split),
    ),
    gauges(
        _TIERING + "batches_pending_merge",
        "Rows of partitions led here that are split and not in a segment.",
        "topic",
        _by_topic(lambda backlog: backlog.pending_merge),
    ),
    gauges(
        _TIERING + "eligible_bytes",
        "Bytes of the rows that inkless_tiering_batches_pending_split counts.",
        "topic",
        _by_topic(lambda backlog: backlog.eligible_bytes),
    ),
    gauges(
        _TIERING + "lag_bytes",
        "Bytes of partitions led here that are not in segments, old enough or not.",
        "topic",
        _by_topic(lambda backlog: backlog.lag_bytes),
    ),
    _histogram(
        _TIERING + "split_latency",
        "Seconds from the claim of a WAL object to the record of its splits, if both went through this broker.",
        lambda status: status.split_latency,
    ),
    _histogram(
        _TIERING + "merge_latency",
        "Seconds from the beginning of a segment to its commit, of partitions led here.",
        lambda status: status.merge_latency,
    ),
    gauges(
        "strandline_tiering_paused",
        "1 if the conversion of the topic is paused, else 0.",
        "topic",
        _by_topic(lambda backlog: backlog.is_paused),
    ),
    gauge(
        "strandline_tiering_failing",
        "WAL objects and partitions that runs of the pipeline, of those that ask this broker, have tried in vain "
        "inkless.tiering.alert.after.failures times or more. Their output says what is wrong.",
        lambda status: status.failing,
    ),
    counter(
        "strandline_tiering_segments_aborted",
        "Segments of partitions led here that the pipeline began and did not finish.",
        lambda status: status.segments_aborted,
    ),
    counter(
        "strandline_tiering_segments_expired",
        "Converted segments of partitions led here that retention has deleted.",
        lambda status: status.segments_expired,
    ),
)
