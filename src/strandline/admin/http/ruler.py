"""The part of the status page about topics that are switched to diskless: a ruler of offsets for each partition.

Three lines to one scale, remote above local above diskless, because the first two overlap. Screen readers get a
sentence instead. It is shown below the ruler as well, for readers who cannot tell the colours apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Final

from strandline.admin.migration_text import TierRange, tier_ranges
from strandline.admin.text import count, size
from strandline.controlplane import MigrationState
from strandline.hybrid.switching.status import MigrationFigures, PartitionMigration, progress, topic_state
from strandline.model import Offset

_PARTITIONS_SHOWN: Final = 50
# The most interesting first: what is on its way, then what waits for its turn, then what is over.
_ORDER: Final = (
    MigrationState.MIGRATING,
    MigrationState.TIERED_ONLY,
    MigrationState.HYBRID,
    MigrationState.DISKLESS_ONLY,
)


def render_migrations(figures: MigrationFigures) -> str:
    """A heading and the topics; nothing if no topic led here is switched."""
    topics = {
        topic: partitions
        for topic, partitions in figures.of_topics().items()
        if any(row.state is not MigrationState.DISKLESS_ONLY for row in partitions)
    }
    if not topics:
        return ""
    shown = "".join(_topics(topics, figures.pauses.last))
    keys = " ".join(f'<b class="key {tier}"></b>{tier}' for tier in ("remote", "local", "diskless"))
    return f'<h2>Topics on their way to diskless, partitions led here</h2><p class="note">{keys}</p>{shown}'


def _topics(topics: Mapping[str, Sequence[PartitionMigration]], pauses: Mapping[str, float]) -> Iterator[str]:
    room = _PARTITIONS_SHOWN
    for topic, partitions in sorted(topics.items(), key=_interest):
        if room <= 0:
            yield '<p class="note">Further topics: <a href="/migrations">/migrations</a></p>'
            return
        state = topic_state(row.state for row in partitions)
        words = [str(state), f"{progress(partitions):.0f} %"]
        if topic in pauses:
            words.append(f"writes paused for {1000 * pauses[topic]:.0f} ms")
        yield f"<h3>{escape(topic)} <small>{escape(', '.join(words))}</small></h3>"
        first = sorted(partitions, key=lambda row: (not row.problem, _ORDER.index(row.state), row.partition))
        yield from map(_partition, first[:room])
        if len(partitions) > room:
            yield f'<p class="note">and {count(len(partitions) - room)} partitions more.</p>'
        room -= len(partitions)


def _interest(item: tuple[str, Sequence[PartitionMigration]]) -> tuple[bool, int, str]:
    topic, partitions = item
    return not any(row.problem for row in partitions), min(_ORDER.index(row.state) for row in partitions), topic


def _partition(row: PartitionMigration) -> str:
    phase = "" if row.phase is None else f", {row.phase.value.lower().replace('_', ' ')}"
    title = f"partition <b>{row.partition}</b>: {escape(row.state.value)}{escape(phase)}"
    problem = f'<p class="away">{escape(row.problem)}</p>' if row.problem else ""
    return f'<div class="tiers"><p>{title}</p>{_ruler(row)}{problem}</div>'


def _ruler(row: PartitionMigration) -> str:
    ranges = tier_ranges(row)
    if not ranges:
        return '<p class="note">It holds no records.</p>'
    low, high = min(one.start for one in ranges), max(one.end for one in ranges)
    text = f"Offsets {low} to {high - 1}: {', '.join(map(_words, ranges))}."
    if row.b0 >= 0:
        text += f" It became diskless at offset {row.b0}."
    bars = "".join(
        f'<i class="{one.tier}" style="left:{_percent(one.start - low, high - low)};'
        f'width:{_percent(one.end - one.start, high - low)}"></i>'
        for one in ranges
    )
    marks = "".join(
        f'<u style="left:{_percent(offset - low, high - low)}"></u>' for offset in _inner_ends(ranges, low, high)
    )
    return (
        f'<div class="ruler" role="img" aria-label="{escape(text)}">{bars}{marks}</div>'
        f'<p class="ends" aria-hidden="true"><span>{low}</span><span>{high - 1}</span></p>'
        f'<p class="note" aria-hidden="true">{escape(text)}</p>'
    )


def _words(one: TierRange) -> str:
    bytes_known = f" ({size(one.bytes)})" if one.bytes else ""
    return f"{one.tier} {one.start} to {one.end - 1}{bytes_known}"


def _inner_ends(ranges: Iterable[TierRange], low: Offset, high: Offset) -> Sequence[Offset]:
    return sorted({end for one in ranges for end in (one.start, one.end)} - {low, high})


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.3f}%"
