"""Refuses batches that follow a lost batch of the same producer. Pure.

A producer has up to five requests in flight. If the object with the first of its batches fails, the later ones must not
be committed. The control plane refuses them if it knows the producer, but accepts any first sequence number from a new
one, and then the lost batch could never be written. So this module refuses every batch that arrived before the producer
could learn of the loss, until the lost batch is sent again.

Markers have no sequence: what they end is decided already, with or without the lost batch.
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
    """The lost sequences of producers. Objects are identified by their number in the order of rotation."""

    def __init__(self) -> None:
        self._gaps: dict[_Producer, _Gap] = {}

    def __bool__(self) -> bool:
        return bool(self._gaps)

    def lost(self, batch: DisklessAppend, *, number: int, newest: int) -> None:
        """A batch of object `number` was lost. Objects up to `newest` hold batches sent before its producer knows."""
        header = batch.header
        if header.producer_id == NO_PRODUCER_ID or batch.marker is not None:
            return
        producer = (batch.partition, header.producer_id, header.producer_epoch)
        known = self._gaps.get(producer)
        if known is None or number < known.lost_in:
            self._gaps[producer] = _Gap(header.base_sequence, number, newest)
        else:
            self._gaps[producer] = known._replace(known_after=newest)

    def stops(self, batch: DisklessAppend, *, number: int) -> bool:
        """Whether a batch of object `number`, which is about to be committed, must be refused."""
        header = batch.header
        producer = (batch.partition, header.producer_id, header.producer_epoch)
        gap = self._gaps.get(producer)
        if gap is None or not gap.lost_in < number <= gap.known_after or batch.marker is not None:
            return False
        if header.base_sequence == gap.sequence:
            del self._gaps[producer]
            return False
        return True

    def passed(self, number: int) -> None:
        """Object `number` and all before it are done: forget the gaps that concern only them."""
        for producer in [key for key, gap in self._gaps.items() if gap.known_after <= number]:
            del self._gaps[producer]
