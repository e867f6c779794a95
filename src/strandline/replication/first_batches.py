"""New producers whose first batch was refused, and what they have sent right behind it.

A log takes any first sequence of a producer that it does not know: retention may have deleted what came before. An
idempotent producer has up to five batches in flight. If its very first one comes while a partition takes no records,
and the next one when it does again, the next one would be taken for the first, and the refused one could never be
written. So the next ones are refused as well, until the first one has come again.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from strandline.clock import Clock
from strandline.errors import CorruptMessage, OutOfOrderSequence
from strandline.log import UnifiedLog
from strandline.model import NO_PRODUCER_ID
from strandline.records import read_header

_REMEMBERED_S: Final = 120.0
"""After the last refusal. Producers give up after delivery.timeout.ms, which is as long by default."""
_MOST_PRODUCERS: Final = 10_000


class FirstBatches:
    """Those of one partition. Belongs to the event loop."""

    __slots__ = ("_clock", "_sequences", "_until")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sequences: dict[tuple[int, int], int] = {}
        self._until = 0.0

    def refused(self, producer: tuple[int, int], sequence: int) -> None:
        """The batch of a new producer, by id and epoch, was refused. The first one of several counts."""
        self._sequences.setdefault(producer, sequence)
        if len(self._sequences) > _MOST_PRODUCERS:
            del self._sequences[next(iter(self._sequences))]
        self._until = self._clock.monotonic() + _REMEMBERED_S

    def check(self, records: memoryview) -> bool:
        """Raise OutOfOrderSequence if the batch has to wait for another. False if nothing is left to wait for."""
        if self._clock.monotonic() >= self._until:
            return False
        header = read_header(records)
        producer = (header.producer_id, header.producer_epoch)
        awaited = self._sequences.get(producer, header.base_sequence)
        if header.base_sequence > awaited:
            raise OutOfOrderSequence(
                f"Producer {header.producer_id} sent sequence {header.base_sequence} before {awaited}, which was "
                "refused and has to be sent again first."
            )
        self._sequences.pop(producer, None)
        return bool(self._sequences)


def with_refused(known: FirstBatches | None, log: UnifiedLog, records: memoryview) -> FirstBatches | None:
    """What is known after a partition has refused these records for reasons of its own."""
    with suppress(CorruptMessage):  # it is refused for being that when it comes again
        header = read_header(records)
        if header.producer_id != NO_PRODUCER_ID and header.producer_id not in log.producers.entries:
            known = known or FirstBatches(log.env.clock)
            known.refused((header.producer_id, header.producer_epoch), header.base_sequence)
    return known
