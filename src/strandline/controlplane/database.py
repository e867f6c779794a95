"""What every part of the control plane works with: the store, the named statements, the time in rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from strandline.clock import Clock, SystemClock
from strandline.model import TimestampMs, TopicIdPartition, TopicPartition
from strandline.sql import Row, SqlStore, Statements, Transaction

COMMIT_CHANNEL: Final = "inkless_commit"
"""Notified after each commit that accepted at least one batch."""
TRIM_CHANNEL: Final = "inkless_trim"
"""Notified when log starts have moved."""
MIGRATION_CHANNEL: Final = "inkless_migration"
"""Notified when a switch was requested, aborted or finished, or a boundary or a state has changed."""
TIERING_CHANNEL: Final = "inkless_tiering"
"""Notified when the conversion of a topic was triggered, paused or resumed."""

_PACKAGES: Final = ("strandline.controlplane", "strandline.controlplane.conversion")


class Database:
    """One store with the statements of the control plane. Keeps no state: any number of them may share a store."""

    def __init__(self, store: SqlStore, *, clock: Clock | None = None, time: Clock | None = None) -> None:
        """`clock` is for durations. `time` gives the moments in rows, which other brokers compare with theirs.

        By default these come from the database itself if several processes share it, and from `clock` if not.
        """
        self.store, self.dialect = store, store.dialect
        self.sql = Statements(*_PACKAGES, dialect=store.dialect)
        self.clock = clock or SystemClock()
        self._time = time or (self.clock if store.is_exclusive else None)

    def given_ms(self) -> TimestampMs | None:
        """The time for a statement that takes the database's own time instead of None."""
        return None if self._time is None else self._time.now_ms()

    async def now_ms(self, tx: Transaction) -> TimestampMs:
        """The time by which the moments in rows are written and judged."""
        given = self.given_ms()
        if given is not None:
            return given
        found = await tx.fetch_one("SELECT {now_ms}")
        assert found is not None
        now_ms: TimestampMs = found[0]
        return now_ms

    async def fetch(
        self, tx: Transaction, name: str, rows: Sequence[Sequence[object]], width: int, *first: object
    ) -> list[Row]:
        """Run a query about many rows. Its result comes packed where that is faster."""
        return self.dialect.unpacked(await tx.fetch(self.sql[name], *first, *self.dialect.bulk(rows, width)))

    async def execute(
        self, tx: Transaction, name: str, rows: Sequence[Sequence[object]], width: int, *first: object
    ) -> int:
        """Change many rows; returns how many changed. Sends nothing if `rows` is empty."""
        return await tx.execute(self.sql[name], *first, *self.dialect.bulk(rows, width)) if rows else 0

    def partition_of(self, topic_id: object, topic: str, number: int) -> TopicIdPartition:
        """A partition from its columns."""
        return TopicIdPartition(self.dialect.uuid(topic_id), TopicPartition(topic, number))


def numbered(partitions: Iterable[TopicIdPartition]) -> list[tuple[object, ...]]:
    """Partitions as rows that begin with their position, by which the result refers to them."""
    return [(position, topic_id, number) for position, (topic_id, (_, number)) in enumerate(partitions)]
