"""Transactions that hold back the last stable offset of a partition: open ones, and ended ones that are not replicated.

After a crash as many transactions as fit into a segment are followed, and all of them wait for the high watermark
together: whatever is done for one of them must not look at the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from strandline.model import NO_OFFSET

# A queue is not worth tidying up below so many.
_FEW: Final = 64


class CompletedTxn(NamedTuple):
    """A transaction that a marker has just ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class TransactionStarts:
    """First offsets of transactions, which come in ascending order and go in any. Each step costs the same."""

    __slots__ = ("_ascending", "present")

    def __init__(self, ascending: Iterable[tuple[int, int]]) -> None:
        self.present: dict[int, int] = dict(ascending)
        """Their producers by first offset. For reading only."""
        # What is gone stays in the queue until it is at the head, or until most of the queue is gone.
        self._ascending: deque[int] = deque(self.present)

    @property
    def kept(self) -> int:
        """How many are in memory, those that are gone included."""
        return len(self._ascending)

    def add(self, offset: int, producer_id: int) -> None:
        """A transaction starts, behind all others."""
        self._ascending.append(offset)
        self.present[offset] = producer_id

    def remove(self, offset: int) -> None:
        """A transaction does not count any more."""
        present, ascending = self.present, self._ascending
        present.pop(offset, None)
        while ascending and ascending[0] not in present:
            ascending.popleft()
        if len(ascending) > _FEW and len(ascending) > 2 * len(present):
            self._ascending = deque([one for one in ascending if one in present])

    def first(self) -> int:
        """The lowest; NO_OFFSET if there is none."""
        return self._ascending[0] if self._ascending else NO_OFFSET

    def first_except(self, offset: int) -> int:
        """The lowest but for this one, which is about to be removed; NO_OFFSET if there is none."""
        present = self.present
        for one in self._ascending:
            if one != offset and one in present:
                return one
        return NO_OFFSET


class UnstableTransactions:
    """Of one partition."""

    __slots__ = ("_open", "_unreplicated", "_unstable")

    def __init__(self, open_ones: Iterable[tuple[int, int]] = ()) -> None:
        """`open_ones`: first offset and producer of each."""
        starts = sorted(open_ones)
        self._open = TransactionStarts(starts)
        self._unreplicated: deque[CompletedTxn] = deque()  # in the order of their markers
        self._unstable = TransactionStarts(starts)  # of both

    @property
    def open_ones(self) -> Mapping[int, int]:
        """Those that have begun and whose marker is not here: their producers by first offset. For reading only."""
        return self._open.present

    @property
    def kept(self) -> int:
        """How many offsets are in memory."""
        return self._open.kept + self._unstable.kept + len(self._unreplicated)

    def begin(self, first_offset: int, producer_id: int) -> None:
        """One begins, behind all that are known."""
        self._open.add(first_offset, producer_id)
        self._unstable.add(first_offset, producer_id)

    def complete(self, completed: CompletedTxn) -> None:
        """One has ended. It holds the last stable offset back until its marker is replicated."""
        self._open.remove(completed.first_offset)
        self._unreplicated.append(completed)

    def forget_replicated(self, high_watermark: int) -> None:
        """Let go of ended ones whose marker is below the high watermark."""
        unreplicated = self._unreplicated
        while unreplicated and unreplicated[0].last_offset < high_watermark:
            self._unstable.remove(unreplicated.popleft().first_offset)

    def first_unstable(self) -> int:
        """The lowest first offset; NO_OFFSET if nothing is held back."""
        return self._unstable.first()

    def first_open_except(self, completed: CompletedTxn) -> int:
        """Where the first open one but for this one starts, which is about to be completed; else NO_OFFSET."""
        return self._open.first_except(completed.first_offset)
