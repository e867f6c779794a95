"""How a topic that is to be switched gets rid of open transactions without keeping its other writers out for long.

A boundary can be set while no transaction is open in its partition. Where they follow each other without a gap, new
ones are refused for a window of time, in which the open ones end and the boundary is set. If one of them does not end,
the switch steps back: all partitions of the topic take new transactions again. The next window begins when the
transactions that did not end in this one are over, and not before as much time has passed as this one has taken. A
window belongs to a topic: a transaction that writes to several of its partitions is not refused by one after the other.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from strandline.hybrid.switching.switch import PartitionSwitch
from strandline.model import Offset, TopicPartition

logger = logging.getLogger(__name__)

_NAMED: Final = 5  # in one sentence


class OpenTransaction(NamedTuple):
    """A transaction that is open in a partition."""

    partition: TopicPartition
    first_offset: Offset
    producer_id: int


class DrainWindows:
    """When new transactions of one topic are refused. Knows no clock and no partition: see `drain`."""

    __slots__ = ("_began", "_not_before", "ends_at", "held_by")

    def __init__(self) -> None:
        self._began = self._not_before = 0.0
        self.ends_at: float | None = None
        """The end of the window that is open, by the monotonic clock; None if none is."""
        self.held_by: frozenset[OpenTransaction] = frozenset()
        """Transactions that did not end in the last window, and are still open."""

    def look(self, found: Collection[OpenTransaction], now: float, window_s: float) -> None:
        """Open a window if one is needed, close it if it is over. `found`: the transactions that are open now.

        A window in which all have ended stays open: others would begin before the boundary is set.
        """
        self.held_by &= frozenset(found)
        if self.ends_at is not None:
            if now >= self.ends_at:
                self.close(now)
                self.held_by = frozenset(found)
        elif found and not self.held_by and now >= self._not_before:
            self._began, self.ends_at = now, now + window_s

    def close(self, now: float) -> None:
        """Let transactions begin: the window is over, or of no use, since the switch cannot go on for other reasons.

        The next one leaves writers as much time as this one has kept them out: such reasons may come and go.
        """
        if self.ends_at is not None:
            self.ends_at, self._not_before = None, 2 * now - self._began


def drain(
    windows: DrainWindows, waiting: Sequence[PartitionSwitch], now: float, window_s: float
) -> list[PartitionSwitch]:
    """The partitions without open transactions. In a window, all of them begin none: what is drained stays drained."""
    found = [one for switch in waiting for one in _open_in(switch)]
    held_before = windows.held_by
    windows.look(found, now, window_s)
    if windows.held_by - held_before:
        logger.warning(
            "the switch of %s to diskless has stepped back after %.1f s: %s did not end. New transactions may begin, "
            "and the switch is tried again when these are over",
            waiting[0].replica.topic_partition.topic,
            window_s,
            _named(windows.held_by),
        )
    drained = []
    for switch in waiting:
        if windows.ends_at is None:
            switch.let_transactions_begin()
        else:
            switch.refuse_transactions(windows.ends_at)
        open_here = _open_in(switch)
        if open_here:
            held_by = frozenset(one.producer_id for one in windows.held_by.intersection(open_here))
            how = _how(is_refusing=windows.ends_at is not None, is_held=bool(held_by), window_s=window_s)
            name = switch.replica.topic_partition
            switch.transactions_open(
                held_by, f"{name} has open transactions, which have to end first: {_named(open_here)}. {how}"
            )
        else:
            drained.append(switch)
    return drained


def _open_in(switch: PartitionSwitch) -> list[OpenTransaction]:
    partition = switch.replica.topic_partition
    return [
        OpenTransaction(partition, first_offset, producer_id)
        for first_offset, producer_id in switch.replica.log.producers.open_transactions.items()
    ]


def _how(*, is_refusing: bool, is_held: bool, window_s: float) -> str:
    """How open transactions are waited for."""
    if is_refusing:
        return f"New ones are refused until they have, for {window_s:g} s at most."
    if is_held:
        return (
            "The switch has stepped back, and is tried again when they are over; other transactions go on. "
            "`strandline migration status` has their transactional ids, `strandline transactions abort` ends one, "
            "`strandline migration abort` leaves the topic as it was."
        )
    return "The switch has stepped back, and is tried again soon; transactions go on."


def _named(found: Collection[OpenTransaction]) -> str:
    first = [f"producer {one.producer_id} since offset {one.first_offset}" for one in sorted(found)[:_NAMED]]
    if len(found) > _NAMED:
        first.append(f"{len(found) - _NAMED} more")
    return ", ".join(first)
