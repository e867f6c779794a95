"""Which topics are switched now, and which wait for their turn. Pure: every broker that asks gets the same answer."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from strandline.controlplane import TopicMigration


def admitted(migrations: Sequence[TopicMigration], *, parallel: int, copying_ms: int) -> dict[UUID, int]:
    """The topics that may be switched, and the position of each request. `migrations` are in the order of requests.

    At most `parallel` topics at once. One whose partitions all have their boundary keeps its place for `copying_ms`
    while its prefix is copied: copying takes as long as it takes, and the next topics do not wait for it.
    """
    found: dict[UUID, int] = {}
    places = parallel
    for migration in migrations:
        if holds_place(migration, copying_ms=copying_ms):
            if places <= 0:
                continue
            places -= 1
        found[migration.topic_id] = migration.position
    return found


def holds_place(migration: TopicMigration, *, copying_ms: int) -> bool:
    """Whether others have to wait for this topic."""
    sealed_at = migration.sealed_at_ms
    return sealed_at is None or migration.now_ms - sealed_at < copying_ms
