"""Batches that came behind one that was lost. Pure.

A producer has up to five requests on their way. If the object with the first of its batches fails, those behind it
must not be committed: the control plane refuses them if it knows the producer, but takes any sequence number from a
producer that is new to it, and the batch that was sent first could then never be written. So what came before the
producer can have heard of the loss is refused here, up to the batch that was lost, should it have been sent again.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from strandline.diskless.values import DisklessAppend
from strandline.model import NO_PRODUCER_ID, TopicIdPartition

_Producer: TypeAlias = tuple[TopicIdPartition, int, int]


class _Gap(NamedTuple):
    sequence: int
    lost_in: int
    known_after: int


class SequenceGaps:
    """What the objects on their way may not go on with. Objects are known by their number in the order of rotation."""

    def __init__(self) -> None:
        self._gaps: dict[_Producer, _Gap] = {}

    def __bool__(self) -> bool:
        return bool(self._gaps)

    def lost(self, batch: DisklessAppend, *, number: int, newest: int) -> None:
        """A batch of object `number` is lost. Objects up to `newest` hold what came before its producer knows."""
        header = batch.header
        if header.producer_id == NO_PRODUCER_ID:
            return
        producer = (batch.partition, header.producer_id, header.producer_epoch)
        known = self._gaps.get(producer)
        if known is None or number < known.lost_in:
            self._gaps[producer] = _Gap(header.base_sequence, number, newest)
        else:
            self._gaps[producer] = known._replace(known_after=newest)

    def stops(self, batch: DisklessAppend, *, number: int) -> bool:
        """Whether a batch of object `number`, whose turn it is, has to be refused."""
        header = batch.header
        producer = (batch.partition, header.producer_id, header.producer_epoch)
        gap = self._gaps.get(producer)
        if gap is None or not gap.lost_in < number <= gap.known_after:
            return False
        if header.base_sequence == gap.sequence:
            del self._gaps[producer]
            return False
        return True

    def passed(self, number: int) -> None:
        """Object `number` and all before it have had their turn: forget what concerns only them."""
        for producer in [key for key, gap in self._gaps.items() if gap.known_after <= number]:
            del self._gaps[producer]
