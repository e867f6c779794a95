"""How far topics are converted, for monitoring: this broker's part of each topic, a quarter of a minute old at most.

Counting rows costs as much as there are rows that wait. So it is not done at every look, and each broker counts the
topics of which partitions are led here; sums over brokers count every partition once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from strandline.clock import Clock
from strandline.conversion_api.values import PartitionTieringStatus, TieringStatus
from strandline.hybrid.conversion.figures import LATENCY_BOUNDS_S, TieringFigures
from strandline.hybrid.conversion.service import TieringService
from strandline.hybrid.refreshing import Refreshing
from strandline.model import Offset, TopicPartition

FRESH_SECONDS: Final = 15.0
_TOPICS_AT_ONCE: Final = 50
"""Others read the database between two questions."""


class ConversionBacklog(NamedTuple):
    """What is left to do of one topic, in the partitions that are led here."""

    pending_split: int
    """Rows that are eligible and not split."""
    pending_merge: int
    """Rows that are split and not in a segment."""
    eligible_bytes: int
    lag_bytes: int
    is_paused: bool
    boundary: Offset
    """Of the partition that is least far."""
    high_watermark: Offset


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionStatus:
    """The conversion of diskless topics, as one broker has seen it since its start."""

    batches_split: int = 0
    segments_created: int = 0
    segments_aborted: int = 0
    segments_expired: int = 0
    failing: int = 0
    """WAL objects and partitions that fail again and again, in runs of the pipeline that report to this broker."""
    split_latency: tuple[Sequence[int], float] = ((0,) * (len(LATENCY_BOUNDS_S) + 1), 0.0)
    """Counts by bucket, and their sum in seconds."""
    merge_latency: tuple[Sequence[int], float] = ((0,) * (len(LATENCY_BOUNDS_S) + 1), 0.0)
    topics: Mapping[str, ConversionBacklog] = field(default_factory=dict)


class ConversionProgress:
    """Asks how far the topics of this broker are. Lives on the event loop."""

    def __init__(self, service: TieringService, assigned: Callable[[], Iterable[TopicPartition]], clock: Clock) -> None:
        self._service, self._assigned = service, assigned
        self._clock = clock
        nothing: Mapping[str, ConversionBacklog] = {}
        self._topics = Refreshing(
            self._ask,
            nothing,
            what="sizes of what is to be converted",
            fresh_seconds=FRESH_SECONDS,
            clock=clock,
        )

    def status(self) -> ConversionStatus:
        """As it was asked for last. Never blocks, never raises."""
        return conversion_status(self._service.figures(), self._topics.known, now=self._clock.monotonic())

    async def refresh(self) -> None:
        """See `Refreshing`."""
        if any(True for _ in self._assigned()):
            await self._topics.refresh()

    async def _ask(self) -> Mapping[str, ConversionBacklog]:
        led: defaultdict[str, set[int]] = defaultdict(set)
        for topic, partition in self._assigned():
            led[topic].add(partition)
        topics = tuple(led)
        found: dict[str, ConversionBacklog] = {}
        for first in range(0, len(topics), _TOPICS_AT_ONCE):
            left = {topic for topic, _ in self._assigned()}  # some may have been deleted meanwhile
            wanted = tuple(topic for topic in topics[first : first + _TOPICS_AT_ONCE] if topic in left)
            found.update(backlogs_of(await self._service.statuses(wanted), led) if wanted else {})
        return found

    async def close(self) -> None:
        """Ask nothing more."""
        await self._topics.close()


def conversion_status(
    figures: TieringFigures, topics: Mapping[str, ConversionBacklog], *, now: float
) -> ConversionStatus:
    """A value of counters that go on counting, by the monotonic clock."""
    return ConversionStatus(
        batches_split=figures.batches_split,
        segments_created=figures.segments_created,
        segments_aborted=figures.segments_aborted,
        segments_expired=figures.segments_expired,
        failing=figures.failing.total(now=now),
        split_latency=figures.split_latency.snapshot(),
        merge_latency=figures.merge_latency.snapshot(),
        topics=topics,
    )


def backlogs_of(statuses: Iterable[TieringStatus], led: Mapping[str, set[int]]) -> dict[str, ConversionBacklog]:
    """The part of each topic that is led here."""
    found = {}
    for status in statuses:
        partitions = [one for one in status.partitions if one.partition in led.get(status.topic_name, ())]
        if partitions:
            found[status.topic_name] = _backlog(partitions, is_paused=status.is_paused)
    return found


def _backlog(partitions: Sequence[PartitionTieringStatus], *, is_paused: bool) -> ConversionBacklog:
    behind = max(partitions, key=lambda one: one.high_watermark - one.diskless_start_offset)
    return ConversionBacklog(
        pending_split=sum(one.pending_batches_count for one in partitions),
        pending_merge=sum(one.pending_merge_batches_count for one in partitions),
        eligible_bytes=sum(one.eligible_bytes for one in partitions),
        lag_bytes=sum(one.lag_bytes for one in partitions),
        is_paused=is_paused,
        boundary=behind.diskless_start_offset,
        high_watermark=behind.high_watermark,
    )
