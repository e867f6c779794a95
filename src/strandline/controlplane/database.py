"""The base of the ports' implementations: the store, its named statements, its time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from strandline.clock import Clock, SystemClock
from strandline.model import TimestampMs, TopicIdPartition
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
    """One store with the statements of this package. Keeps no state: instances can be created and dropped at will."""

    def __init__(self, store: SqlStore, *, clock: Clock | None = None, time: Clock | None = None) -> None:
        """`clock` is for durations. `time` gives the moments in rows, which other brokers compare with theirs.

        By default these come from the database itself if several processes share it, and from `clock` if not.
        """
        self._store = store
        self._dialect = store.dialect
        self._sql = Statements(*_PACKAGES, dialect=store.dialect)
        self._clock = clock or SystemClock()
        self._time = time or (self._clock if store.is_exclusive else None)

    @property
    def store(self) -> SqlStore:
        """The store that holds the tables."""
        return self._store

    def _given_ms(self) -> TimestampMs | None:
        """The time for a statement that takes the database's own time instead of None."""
        return None if self._time is None else self._time.now_ms()

    async def _now_ms(self, tx: Transaction) -> TimestampMs:
        """The time by which the moments in rows are written and judged."""
        given = self._given_ms()
        if given is not None:
            return given
        found = await tx.fetch_one("SELECT {now_ms}")
        assert found is not None
        now_ms: TimestampMs = found[0]
        return now_ms

    async def _fetch(
        self, tx: Transaction, name: str, rows: Sequence[Sequence[object]], width: int, *first: object
    ) -> list[Row]:
        """Run a query about many rows. Its result comes packed where that is faster."""
        return self._dialect.unpacked(await tx.fetch(self._sql[name], *first, *self._dialect.bulk(rows, width)))

    async def _execute(
        self, tx: Transaction, name: str, rows: Sequence[Sequence[object]], width: int, *first: object
    ) -> int:
        """Change many rows; returns how many changed. Sends nothing if `rows` is empty."""
        return await tx.execute(self._sql[name], *first, *self._dialect.bulk(rows, width)) if rows else 0


def numbered(partitions: Iterable[TopicIdPartition]) -> list[tuple[object, ...]]:
    """Partitions as rows that begin with their position, by which the result refers to them."""
    return [(position, topic_id, number) for position, (topic_id, (_, number)) in enumerate(partitions)]
