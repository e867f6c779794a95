"""The text of one scrape.

It is made on the event loop, since no other thread may look at a broker's parts, but in turns of a few milliseconds: a
broker with thousands of partitions has tens of thousands of samples, and its clients must not notice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest

from strandline.admin.http.metrics.partitions import PARTITIONS, labels_of
from strandline.admin.http.metrics.tables import TABLES
from strandline.admin.partition_rows import PartitionRow
from strandline.admin.status import BrokerSource
from strandline.clock import ticks_ns
from strandline.tasks import next_turn

TURN_NS: Final = 3_000_000
_ROWS_AT_ONCE: Final = 200


async def exposition(source: BrokerSource, registry: CollectorRegistry) -> bytes:
    """What `/metrics` answers: the broker's families, and those of the registry."""
    await source.monitoring.refresh()
    pieces: list[bytes] = []
    began = ticks_ns()
    for piece in _pieces(source):
        pieces.append(piece.encode())
        if ticks_ns() - began > TURN_NS:
            await next_turn()
            began = ticks_ns()
    return b"".join((*pieces, generate_latest(registry)))


def _pieces(source: BrokerSource) -> Iterator[str]:
    """The text, each piece of it little work."""
    status = source.status()
    yield ""
    for families, part_of in TABLES:
        for family in families:
            yield from family.exposition(part_of(status))
    rows: list[tuple[str, PartitionRow]] = []
    for row in source.monitoring.partition_rows():
        rows.append((labels_of(row), row))
        if len(rows) % _ROWS_AT_ONCE == 0:
            yield ""
    for gauge in PARTITIONS:
        yield from gauge.exposition(rows)
