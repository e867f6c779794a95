"""Leader epochs of a log: which epoch wrote from which offset on."""

from __future__ import annotations

import itertools
import logging
import os
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, TypeAlias

from strandline.errors import KafkaStorageError
from strandline.log.checkpoints import format_epochs, read_epochs
from strandline.log.files import LEADER_EPOCHS, write_atomically
from strandline.model import NO_EPOCH, NO_OFFSET

logger = logging.getLogger(__name__)

Epochs: TypeAlias = Sequence[tuple[int, int]]
"""(epoch, start offset), both ascending."""

UNDEFINED: Final = (NO_EPOCH, NO_OFFSET)


class LeaderEpochs:
    """(epoch, start offset) entries, both strictly ascending, kept in `leader-epoch-checkpoint`.

    The file is read at the first question. Changes stay in memory until `write()`: the log writes before the first
    append of a new epoch, and forces the file to disk with every flush. What a crash loses between the two is in the
    headers of the batches, from which recovery assigns it again.

    A log start that moves is checkpointed later. Until then a crash brings the old one back, and the file still has
    the epochs from there on, although no method returns them any more.
    """

    __slots__ = ("_bounds", "_directory", "_entries", "_hidden", "_is_dirty", "_synced", "_writes", "latest_begun")

    def __init__(self, directory: str, *, is_new: bool = False) -> None:
        self._directory = directory
        self._bounds: tuple[int, int] | None = None
        self._entries: list[tuple[int, int]] | None = [] if is_new else None
        self._hidden: list[tuple[int, int]] = []
        """Entries that are in the file only; the last one may be of the same epoch as the first that is not."""
        self._is_dirty = False
        self._writes = 0
        self._synced = 0
        self.latest_begun = NO_EPOCH
        """The epoch of the last `begin`; NO_EPOCH if the next append has to begin its epoch in any case."""

    def _loaded(self) -> list[tuple[int, int]]:
        entries = self._entries
        if entries is None:
            self._entries = entries = self._read()
            if self._bounds is not None:
                self.clamp(*self._bounds)
        return entries

    def _read(self) -> list[tuple[int, int]]:
        try:
            return read_epochs(self.path)
        except KafkaStorageError as error:
            # Without epochs a follower falls back to its high watermark; without the log it has nothing.
            logger.error("going on without the leader epochs: %s", error)
            return []

    @property
    def path(self) -> str:
        """The checkpoint file."""
        return os.path.join(self._directory, LEADER_EPOCHS)

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        """All entries, oldest first."""
        return tuple(self._loaded())

    @property
    def latest(self) -> int | None:
        """The newest epoch, None if there is none."""
        entries = self._loaded()
        return entries[-1][0] if entries else None

    @property
    def needs_sync(self) -> bool:
        """True if the file was written since it was last forced to disk.

        An epoch that has no record yet is not in the file, and need not be.
        """
        return self._writes > self._synced

    def clamp(self, log_start: int, log_end: int) -> None:
        """Keep what lies between the ends of the log. Waits until the file is read."""
        if self._entries is None:
            self._bounds = (log_start, log_end)
            return
        self.truncate_from_end(log_end)
        self.truncate_from_start(log_start)

    def move_to(self, directory: str) -> None:
        """Follow the log to another directory name."""
        self._directory = directory

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Let `epoch` start at `start_offset`. True if the entries changed.

        Later epochs and those that start at or after `start_offset` are removed: they never had a record of their own.
        """
        entries = self._loaded()
        if entries and entries[-1][0] == epoch and start_offset >= entries[-1][1]:
            return False
        for known in (entries, self._hidden):
            while known and (known[-1][0] >= epoch or known[-1][1] >= start_offset):
                known.pop()
        entries.append((epoch, start_offset))
        self._is_dirty = True
        return True

    def begin(self, epoch: int, start_offset: int) -> None:
        """Write that `epoch` starts at `start_offset`, before the first batch of the epoch is in the log.

        A batch without an epoch ends all of them.
        """
        if epoch < 0:
            self.clear()
        else:
            self.assign(epoch, start_offset)
        self.write()
        self.latest_begun = epoch

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that start at or after `end_offset`."""
        self.latest_begun = NO_EPOCH
        for known in (self._loaded(), self._hidden):
            while known and known[-1][1] >= end_offset:
                known.pop()
                self._is_dirty = True

    def truncate_from_start(self, start_offset: int, *, kept_from: int | None = None) -> None:
        """Forget epochs that end before `start_offset`; the one that holds it starts there now.

        With `kept_from`, the file still has those from that offset on.
        """
        if self._entries is None and start_offset == 0:
            return
        entries = self._loaded()
        index = bisect_right(entries, start_offset, key=lambda entry: entry[1]) - 1
        if index >= 0 and (index > 0 or entries[0][1] < start_offset):
            self._hide(entries[: index + 1], start_offset, kept_from)
            entries[: index + 1] = [(entries[index][0], start_offset)]
            self._is_dirty = True

    def _hide(self, entries: Epochs, start_offset: int, kept_from: int | None) -> None:
        if kept_from is None or kept_from >= start_offset:
            self._hidden = []
            return
        newest = self._hidden[-1][0] if self._hidden else NO_EPOCH
        hidden = [*self._hidden, *(entry for entry in entries if entry[0] > newest)]
        first = max(bisect_right(hidden, kept_from, key=lambda entry: entry[1]) - 1, 0)
        self._hidden = hidden[first:]

    def clear(self) -> None:
        """Forget everything."""
        self.replace(())

    def replace(self, entries: Epochs) -> None:
        """Know these epochs instead."""
        self._entries, self._hidden = list(entries), []
        self._is_dirty = True

    @property
    def first_start(self) -> int | None:
        """The first offset whose epoch is known, None if none is."""
        entries = self._loaded()
        return entries[0][1] if entries else None

    def in_range(self, start: int, end: int) -> dict[int, int]:
        """The epochs of the offsets from `start` to `end`, and where each begins among them."""
        entries = self._loaded()
        first = max(bisect_right(entries, start, key=lambda entry: entry[1]) - 1, 0)
        found = dict(itertools.takewhile(lambda entry: entry[1] < end, entries[first:]))
        for epoch in found:
            found[epoch] = start  # the first may begin before, or be cut off at a log start within the range
            break
        return found

    def history(self, end: int) -> bytes:
        """The checkpoint file of a log that ends at `end`."""
        return format_epochs(itertools.takewhile(lambda entry: entry[1] < end, self._loaded()))

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest known epoch up to `epoch`; (-1, -1) if that cannot be said."""
        entries = self._loaded()
        if epoch == NO_EPOCH or not entries:
            return UNDEFINED
        if epoch == entries[-1][0]:
            return epoch, log_end_offset
        higher = bisect_right(entries, epoch, key=lambda entry: entry[0])
        if higher == len(entries):
            return UNDEFINED
        end = entries[higher][1]
        return (epoch, end) if higher == 0 else (entries[higher - 1][0], end)

    def epoch_of(self, offset: int) -> int | None:
        """The epoch that wrote `offset`."""
        entries = self._loaded()
        index = bisect_right(entries, offset, key=lambda entry: entry[1]) - 1
        return entries[index][0] if index >= 0 else None

    def write(self) -> None:
        """Write the file if it is not up to date. Fast: nothing is forced to disk."""
        if self._is_dirty:
            entries, hidden = self._loaded(), self._hidden
            is_split = bool(hidden) and bool(entries) and hidden[-1][0] == entries[0][0]
            write_atomically(self.path, format_epochs([*hidden, *entries[is_split:]]), sync=False)
            self._is_dirty = False
            self._writes += 1

    @property
    def writes(self) -> int:
        """How often the file was written."""
        return self._writes

    def mark_synced(self, writes: int) -> None:
        """Note that the file has been forced to disk as it was after so many writes, or later."""
        self._synced = max(self._synced, writes)
