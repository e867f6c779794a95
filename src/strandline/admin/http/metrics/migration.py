"""Metrics of the switch of topics to diskless. Names are those of the unification design, where it has one.

A hybrid partition has a diskless part, and a prefix below it. Offsets of all partitions with a diskless part, converted
or switched, are in `partitions`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from strandline.admin.http.metrics.families import Family, Histogram, Samples, counter, gauge, gauges
from strandline.controlplane import MigrationState
from strandline.hybrid.switching.status import (
    PAUSE_BOUNDS_S,
    MigrationFigures,
    progress,
)

_MIGRATION: Final = "inkless_migration_"
_HYBRID: Final = "inkless_hybrid_"


def _by_state(states: Iterable[MigrationState | None]) -> Mapping[str, float]:
    counts = Counter(states)
    return {state.value: counts[state] for state in MigrationState}


def _pauses(figures: MigrationFigures) -> Samples:
    pauses = figures.pauses
    return {(): Histogram(PAUSE_BOUNDS_S, pauses.counts, pauses.seconds)}


MIGRATION: Final[tuple[Family[MigrationFigures], ...]] = (
    gauges(
        _MIGRATION + "topics_state",
        "Topics by their state, of those whose first partition is led here, or by nobody and the active controller is "
        "here: over all brokers every tiered or diskless topic counts once.",
        "state",
        lambda figures: {state.value: figures.topics.get(state, 0) for state in MigrationState},
    ),
    gauges(
        _MIGRATION + "topic_progress",
        "Percent of the switch of the topic's partitions led here. At 100 nothing is left to be copied.",
        "topic",
        lambda figures: {topic: progress(rows) for topic, rows in figures.of_topics().items()},
    ),
    counter(
        _HYBRID + "tiered_reads",
        "Reads of partitions with a diskless part that remote storage answered.",
        lambda figures: figures.tiered_reads,
    ),
    counter(
        _HYBRID + "local_reads",
        "Reads of partitions with a diskless part that the local log answered.",
        lambda figures: figures.local_reads,
    ),
    counter(
        _HYBRID + "diskless_reads",
        "Reads of partitions with a diskless part that this part answered.",
        lambda figures: figures.diskless_reads,
    ),
    gauges(
        "strandline_migration_partitions",
        "Partitions led here of topics that are switched, by their state.",
        "state",
        lambda figures: _by_state(row.state for row in figures.led.values()),
    ),
    gauge(
        "strandline_migration_stuck_partitions",
        "Partitions led here whose switch cannot go on: strandline migration status says why.",
        lambda figures: sum(bool(row.problem) for row in figures.led.values()),
    ),
    gauge(
        "strandline_migration_uncopied_bytes",
        "Bytes of hybrid partitions led here that only a disk of this broker has.",
        lambda figures: sum(row.uncopied_bytes for row in figures.led.values() if row.is_hybrid),
    ),
    Family(
        "histogram",
        "strandline_migration_write_pause_seconds",
        "How long partitions that became diskless under this leader took no writes, since the start.",
        (),
        _pauses,
        {},
    ),
    gauges(
        "strandline_migration_last_write_pause_seconds",
        "The longest write pause of a partition in the switch of each topic, under this leader.",
        "topic",
        lambda figures: figures.pauses.last,
    ),
)
