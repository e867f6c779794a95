"""Writes markers into the partitions that this broker serves, classic and diskless ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from strandline.clock import Clock
from strandline.coordinators.runtime import TransactionEnd
from strandline.coordinators.transactions.markers import MarkerResults, TransactionMarker
from strandline.crash import crash_point
from strandline.errors import StrandlineError
from strandline.model import GROUP_METADATA_TOPIC, ProducerId, TimestampMs, TopicPartition

_WRITE_TIMEOUT_MS: Final = 5_000
"""Well below what a coordinator on another broker waits for the answer, which has the other partitions, too."""


class TransactionalOffsets(Protocol):
    """The group coordinator: its partitions of `__consumer_offsets` get their markers through it."""

    async def end_transaction(self, partition: int, end: TransactionEnd) -> None:
        """Write the marker; offsets of the transaction count, or are dropped. Raises StrandlineError."""


class MarkedPartition(Protocol):
    """A partition that this broker serves."""

    async def append_and_wait(
        self, records: memoryview, *, timeout_ms: int, transaction_version: int, transaction_start_ms: TimestampMs
    ) -> object:
        """Append a marker, and wait until it is durable. Raises StrandlineError."""


class MarkerWriter:
    """Appends control batches, and waits until they are durable."""

    def __init__(
        self,
        find: Callable[[str, int], MarkedPartition],
        offsets: TransactionalOffsets,
        clock: Clock,
        *,
        on_marker: Callable[[TopicPartition, ProducerId], None],
    ) -> None:
        """`find` raises StrandlineError for a partition that is not served here; `on_marker` is called right before
        each marker is written."""
        self._find, self._offsets, self._clock, self._on_marker = find, offsets, clock, on_marker

    async def write(self, markers: Sequence[TransactionMarker]) -> MarkerResults:
        """What became of each partition. Those of one request are written at the same time."""
        wanted = [(marker, partition) for marker in markers for partition in marker.partitions]
        errors = await asyncio.gather(*(self._write(marker.end, partition) for marker, partition in wanted))
        keys = [(marker.transactional_id, partition) for marker, partition in wanted]
        return dict(zip(keys, errors, strict=True))

    async def _write(self, end: TransactionEnd, partition: TopicPartition) -> StrandlineError | None:
        try:
            crash_point("transactions.before_marker")
            self._on_marker(partition, end.producer.producer_id)
            if partition.topic == GROUP_METADATA_TOPIC:
                await self._offsets.end_transaction(partition.partition, end)
            else:
                await self._find(*partition).append_and_wait(
                    end.batch(self._clock.now_ms()),
                    timeout_ms=_WRITE_TIMEOUT_MS,
                    transaction_version=end.transaction_version,
                    transaction_start_ms=end.start_ms,
                )
            crash_point("transactions.after_marker")
        except StrandlineError as error:
            return error
        return None
