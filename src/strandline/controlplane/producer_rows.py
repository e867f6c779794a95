"""Producers from the columns of their rows, and back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from struct import Struct, pack
from typing import Any, Final

from strandline.model import ProducerId
from strandline.records import BatchSpan, ProducerEntry

_SPAN: Final = Struct(">4q")


def pack_spans(spans: Sequence[BatchSpan]) -> str:
    """The newest batches of a producer as text, four 64-bit numbers for each. On the hot path of commits."""
    return pack(f">{4 * len(spans)}q", *chain.from_iterable(spans)).hex()


def producer_entry(producer_id: ProducerId, columns: Sequence[Any]) -> ProducerEntry:
    """A producer from its columns: epoch, last timestamp, batches, and those of its transactions.

    The latter are the first offset of the open one, the last coordinator, and when the last one began that has ended.
    """
    epoch, last_timestamp, batches, txn_first_offset, coordinator_epoch, txn_ended_ms = columns
    entry = ProducerEntry(producer_id, epoch)
    entry.batches = list(map(BatchSpan._make, _SPAN.iter_unpack(bytes.fromhex(batches))))
    entry.last_timestamp = last_timestamp
    entry.txn_first_offset, entry.coordinator_epoch = txn_first_offset, coordinator_epoch
    entry.txn_ended_ms = txn_ended_ms
    return entry
