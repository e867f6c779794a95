"""The segments of a log: found by offset, created, rolled, replaced and deleted."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from strandline.crash import crash_point
from strandline.log.applied_config import AppliedConfig
from strandline.log.files import DELETED, SWAP
from strandline.log.partition_directory import PartitionDirectory
from strandline.log.producer_state import PartitionProducers
from strandline.log.recent import RecentBatches
from strandline.log.segment import LogSegment

_MOST_PENDING_SNAPSHOTS: Final = 2


class Segments:
    """Segments by base offset. There is always at least one once a log is loaded; the last one is active.

    The producer snapshot at a segment's base offset is created and deleted with the segment.
    """

    __slots__ = ("_applied", "_bases", "_directory", "_producers", "_segments", "active", "cuts", "recent")

    def __init__(self, directory: PartitionDirectory, applied: AppliedConfig, producers: PartitionProducers) -> None:
        self._directory = directory
        self._applied = applied
        self._producers = producers
        self._bases: list[int] = []
        self._segments: list[LogSegment] = []
        self.active: LogSegment
        """Where the next batch goes."""
        self.cuts = 0
        """How often the end of a segment was cut off: it stays the same segment, with other batches behind the cut."""
        self.recent = RecentBatches()
        """The newest batches of the active segment."""

    # Finding

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self._segments)

    @property
    def first(self) -> LogSegment:
        return self._segments[0]

    @property
    def bases(self) -> list[int]:
        """The base offsets, ascending. For reading only."""
        return self._bases

    @property
    def size(self) -> int:
        """Bytes of all segments that readers may see."""
        return sum(segment.size for segment in self._segments)

    @property
    def has_pending_snapshot(self) -> bool:
        """True while a producer snapshot is not on disk yet: a crash now would need the segments before it."""
        return self._producers.pending_snapshot is not None

    @property
    def closed_end(self) -> int:
        """Where the closed segments end whose producer snapshots are on disk: they can be forced there together."""
        pending = self._producers.pending_snapshot
        return self.active.base_offset if pending is None else pending.offset

    def may_start_after(self, segment: LogSegment) -> bool:
        """True if the log may do without this segment and all before it: its producers are known from there on."""
        following = self.after(segment.base_offset)
        return following is None or self._producers.allows_start_at(following.base_offset)

    def as_list(self) -> list[LogSegment]:
        """A copy that stays as it is while the log goes on."""
        return list(self._segments)

    def floor(self, offset: int) -> LogSegment | None:
        """The last segment that starts at or before `offset`."""
        index = bisect_right(self._bases, offset) - 1
        return self._segments[index] if index >= 0 else None

    def after(self, base_offset: int) -> LogSegment | None:
        """The first segment that starts above `base_offset`."""
        index = bisect_right(self._bases, base_offset)
        return self._segments[index] if index < len(self._segments) else None

    def covering(self, offset: int) -> list[LogSegment]:
        """The segment that holds `offset` and all later ones."""
        index = max(bisect_right(self._bases, offset) - 1, 0)
        return self._segments[index:]

    # Membership

    def add(self, segment: LogSegment) -> None:
        """Put a segment in its place. One with the same base offset is replaced."""
        index = bisect_left(self._bases, segment.base_offset)
        if index < len(self._bases) and self._bases[index] == segment.base_offset:
            self._segments[index] = segment
        else:
            self._bases.insert(index, segment.base_offset)
            self._segments.insert(index, segment)
        self.active = self._segments[-1]

    def remove(self, segment: LogSegment) -> None:
        """Take a segment out, if it is still the one at its base offset. Its files stay."""
        index = bisect_left(self._bases, segment.base_offset)
        if index < len(self._segments) and self._segments[index] is segment:
            del self._bases[index], self._segments[index]
            if self._segments:
                self.active = self._segments[-1]
        segment.forget_indexes()

    # Files

    def create(self, base_offset: int) -> LogSegment:
        """Add a new, empty active segment. Raises OSError."""
        config, env = self._applied.config, self._directory.env
        segment = LogSegment.create(
            self._directory.path,
            base_offset,
            created_ms=env.clock.now_ms(),
            cache=env.cache,
            preallocate=self._applied.limits.roll.segment_bytes if config.preallocate else 0,
        )
        segment.jitter_ms = env.chance.below(min(config.segment_jitter_ms, config.segment_ms))
        self.add(segment)
        self.recent.clear()
        self._directory.changes += 1
        return segment

    def roll(self, base_offset: int) -> LogSegment:
        """Close the active segment and go on with a new one at `base_offset`, where the log ends or above.

        An empty active segment at `base_offset` is used again. The snapshot of very many producers is still pending
        afterwards. Raises OSError.
        """
        active, env = self.active, self._directory.env
        if active.base_offset == base_offset and not active.reserved:
            active.created_ms = env.clock.now_ms()
            return active
        crash_point("log.roll.before_indexes")
        active.finish()
        # No preallocated space after the last batch, and no missing bytes before the next segment: a crash before the
        # writes under way leaves a hole that recovery sees, and it drops what comes after the hole.
        active.file.set_length(active.reserved)
        crash_point("log.roll.before_snapshot")
        self._make_room_for_snapshot()
        self._producers.begin_snapshot(base_offset)
        crash_point("log.roll.before_segment")
        segment = self.create(base_offset)
        crash_point("log.roll.done")
        env.on_flush_wanted(self._directory.topic_partition)
        return segment

    def _make_room_for_snapshot(self) -> None:
        """A log may roll faster than the snapshots of its producers are written. They must not pile up.

        A tiered log needs all of them: remote segments have one each. Elsewhere a snapshot only saves the replay of
        the segment before it, and later ones make up for one that is missing. The oldest, which is being written, is
        not given up: if every roll did so, none would ever be complete.
        """
        if self._applied.is_remote:
            self._producers.make_room(_MOST_PENDING_SNAPSHOTS - 1)
        else:
            self._producers.drop_waiting(_MOST_PENDING_SNAPSHOTS - 1)

    def discard(self, segment: LogSegment, *, keep_snapshot: bool = False) -> None:
        """Take a segment out of the log now, and delete its files after file.delete.delay.ms. Raises OSError."""
        self.remove(segment)
        segment.rename(DELETED)
        env = self._directory.env
        due = env.clock.monotonic() + self._applied.config.file_delete_delay_ms / 1000
        env.deletions.add(due, segment)
        if not keep_snapshot:
            snapshot = self._producers.rename_snapshot(segment.base_offset, DELETED)
            if snapshot is not None:
                env.deletions.add(due, snapshot)
        self._directory.changes += 1

    def truncate_active(self, offset: int) -> None:
        """Cut the active segment at the batch that holds `offset`. Raises OSError."""
        self.cuts += 1
        self.active.truncate_to(offset)
        self.recent.clear()
        self._directory.changes += 1

    def replace(self, new: Sequence[LogSegment], old: Sequence[LogSegment]) -> None:
        """Put compacted segments in the place of old ones, so that a crash at any moment leaves one or the other.

        The new files end in `.cleaned` and are forced to disk. They become `.swap`: from then on a restart finishes
        the replacement. Not for the active segment. Raises KafkaStorageError.
        """
        self._directory.check_online()
        try:
            # The highest first: as long as a `.cleaned` file is there, a restart throws swaps above it away.
            for segment in sorted(new, key=lambda segment: segment.base_offset, reverse=True):
                segment.rename(SWAP)
                crash_point("log.replace.renamed_to_swap")
            kept = {segment.base_offset for segment in new}
            for segment in old:
                self.discard(segment, keep_snapshot=segment.base_offset in kept)
                crash_point("log.replace.removed_old")
            for segment in new:
                self.add(segment)
                segment.rename("")
                crash_point("log.replace.renamed_to_final")
        except OSError as error:
            raise self._directory.fail(error) from error
        self._directory.changes += 1

    def move_to(self, directory: str) -> None:
        """Follow the log to another directory name."""
        for segment in self._segments:
            segment.move_to(directory)
