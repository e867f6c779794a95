"""What people read about the switch of a topic to diskless: ranges of tiers, summaries, and what ending it may cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from strandline.admin.text import count, size
from strandline.hybrid.switching.status import PartitionMigration, TopicMigrationStatus
from strandline.model import Offset

_MOST_NAMED: Final = 5


class TierRange(NamedTuple):
    """Offsets from `start` up to, but not including, `end` in one tier."""

    tier: str
    start: Offset
    end: Offset
    bytes: int


def tier_ranges(partition: PartitionMigration) -> Sequence[TierRange]:
    """Which offsets of a partition are where, as far as that is known. Remote and local overlap."""
    row, end = partition, partition.high_watermark
    local_end = row.b0 if row.b0 >= 0 else end
    ranges = (
        TierRange("remote", max(row.log_start, 0), row.tiered_high + 1, row.remote_bytes),
        TierRange("local", max(row.local_start, row.log_start), local_end, row.local_bytes),
        TierRange("diskless", max(row.diskless_start, row.log_start), end, row.diskless_bytes),
    )
    known = (row.tiered_high >= 0, row.local_start >= 0, row.b0 >= 0)
    return [found for found, is_known in zip(ranges, known, strict=True) if is_known and found.start < found.end]


def summary(status: TopicMigrationStatus) -> str:
    """How far a topic is, in one line."""
    if status.state is None:
        return "not on its way to diskless"
    switched = sum(partition.b0 >= 0 for partition in status.partitions)
    words = [status.state.value]
    if status.position:
        words.append(f"{count(status.position)} {'topics come' if status.position > 1 else 'topic comes'} first")
    words.append(f"{switched} of {len(status.partitions)} partitions diskless")
    uncopied = sum(partition.uncopied_bytes for partition in status.partitions)
    words.append(f"{status.progress:.0f} %" + (f", {size(uncopied)} to copy" if uncopied else ""))
    stuck = [partition.partition for partition in status.partitions if partition.problem]
    return ", ".join(words) + (f", a problem with {_partitions(stuck)}" if stuck else "")


def _partitions(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:_MOST_NAMED]))
    more = f" and {count(len(numbers) - _MOST_NAMED)} more" if len(numbers) > _MOST_NAMED else ""
    return f"partition{'s' if len(numbers) > 1 else ''} {shown}{more}"


def problems(status: TopicMigrationStatus) -> Mapping[int, str]:
    """What keeps the partitions of a topic from going on, as sentences by partition."""
    return {row.partition: row.problem for row in status.partitions if row.problem}


def nothing_to_abort(topic: str) -> str:
    """Why there is no switch of the topic to abort, as a sentence."""
    return f"Topic {topic} is not being switched to diskless: there is nothing to abort, and nothing was changed."


def cost_of_completing(status: TopicMigrationStatus) -> str:
    """What may be lost if the switch of a topic ends now, as sentences."""
    rows = [p for p in status.partitions if p.uncopied_bytes or _is_size_unknown(p)]
    if not rows:
        return f"Nothing below the boundary of {status.topic} waits to be copied: completing costs nothing."
    parts = ", ".join(f"partition {row.partition}: {_uncopied(row)}" for row in rows)
    total = size(known) if (known := sum(row.uncopied_bytes for row in rows)) else "Records"
    more = " and more" if known and any(map(_is_size_unknown, rows)) else ""
    return (
        f"{total}{more} of {status.topic} below the boundary are not in remote storage and stay on the disk of one "
        f"broker each, without another copy: if that disk is lost, they are lost ({parts})."
    )


def _is_size_unknown(row: PartitionMigration) -> bool:
    """Whether something waits to be copied of which only the leader knows the bytes, and it was not asked."""
    return row.b0 >= 0 and row.log_start < row.b0 and not row.tiering_complete and not row.total_bytes


def _uncopied(row: PartitionMigration) -> str:
    if not _is_size_unknown(row):
        return size(row.uncopied_bytes)
    return f"offsets {count(max(row.tiered_high + 1, row.log_start))} to {count(row.b0 - 1)}"
