"""How far a Fetch request is: states and legal moves."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final


class PollState(enum.StrEnum):
    """Where a request stands between its arrival and its end."""

    LOOKING = "looking"
    """Its places are being read, as far as that is possible at once. Ends in the same turn of the event loop."""
    WAITING = "waiting"
    """There are fewer than fetch.min.bytes. It waits for news of its partitions, or for memory."""
    WOKEN = "woken"
    """There is news. It looks once this turn of the event loop is through with its appends."""
    READING = "reading"
    """Reads that memory cannot answer are under way. News is looked at when they are there."""
    OVERDUE = "overdue"
    """As READING. The time of the client is over, and there is nothing else to answer with."""
    LAST_LOOK = "last look"
    """Its time is over. It is answered with what there is in the same turn, and begins no more reads."""
    ANSWERED = "answered"
    """The end. Reads that are still under way are for the caches."""
    ABANDONED = "abandoned"
    """The end without an answer: the client is gone, or a reader has failed in a way that nobody foresaw."""


MOVES: Final[Mapping[PollState, frozenset[PollState]]] = {
    PollState.LOOKING: frozenset({PollState.WAITING, PollState.READING, PollState.ANSWERED}),
    PollState.WAITING: frozenset({PollState.WOKEN, PollState.LAST_LOOK, PollState.ABANDONED}),
    PollState.WOKEN: frozenset({PollState.LOOKING, PollState.LAST_LOOK, PollState.ABANDONED}),
    # OVERDUE only from here: no request gets more time twice.
    PollState.READING: frozenset({PollState.LOOKING, PollState.OVERDUE, PollState.LAST_LOOK, PollState.ABANDONED}),
    PollState.OVERDUE: frozenset({PollState.LAST_LOOK, PollState.ABANDONED}),
    PollState.LAST_LOOK: frozenset({PollState.ANSWERED}),
    PollState.ANSWERED: frozenset(),
    PollState.ABANDONED: frozenset(),
}
"""To which states a request may go from each."""
