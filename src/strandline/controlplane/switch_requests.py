"""Requesting and aborting the switch of a topic to diskless, in the transaction of the controller.

The controller writes the setting `diskless.enable` of the topic and the row of inkless_migration at once, so that one
cannot be without the other: the metadata log and the control plane share a database. Leaders act upon the row, never
upon the setting, which they may know too late.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final
from uuid import UUID

from strandline.controlplane.database import MIGRATION_CHANNEL
from strandline.crash import crash_point
from strandline.model import uuid_from_text
from strandline.sql import Statements, Transaction

ABORTED_FOR_MS: Final = 24 * 3600 * 1000
"""How long an aborted switch is remembered. A broker that has not heard of it until then could create logs at 0."""


@cache
def _statements() -> Statements:
    """Only those that are the same for both databases."""
    return Statements("strandline.controlplane")


async def request_migration(tx: Transaction, topic_id: UUID, topic: str, partitions: int, *, is_flagged: bool) -> None:
    """Request the switch of a topic, unless that was done, or no partition needs it.

    `is_flagged`: the setting was on already. Then the topic was born diskless, or has been switched; only partitions
    whose B0 was reset need a switch.
    """
    sql = _statements()
    await tx.execute(sql["forget_aborted_migrations"], topic_id, ABORTED_FOR_MS)
    found = await tx.fetch_one(sql["boundaries_of_topic"], topic_id, partitions)
    assert found is not None
    switched, unset = found
    is_needed = unset > 0 if is_flagged else switched < partitions
    if is_needed and await tx.execute(sql["request_migration"], topic_id, topic, partitions):
        tx.notify(MIGRATION_CHANNEL)
        crash_point("controlplane.migration.requested")


async def abort_migration(tx: Transaction, topic_id: UUID) -> int | None:
    """End the switch of a topic before any partition has its B0. Harmless if there is none.

    Returns the number of a partition that has a B0, and has changed nothing then; None if the topic is as it was.
    """
    sql = _statements()
    # In the same order as in all transactions: logs, then the row of the switch. A leader that sets a B0 at the same
    # time has locked that row before this one, and is seen below; or comes too late for it, and gives up.
    await tx.fetch(sql["lock_logs_of_topic"], topic_id)
    await tx.fetch(sql["lock_migration"], topic_id)
    found = await tx.fetch_one(sql["first_boundary"], topic_id)
    if found is not None and found[0] is not None:
        partition: int = found[0]
        return partition
    await tx.execute(sql["abort_migration"], topic_id)
    await tx.execute(sql["drop_seeds_of_topic"], topic_id)
    await tx.execute(sql["drop_unset_logs"], topic_id)
    tx.notify(MIGRATION_CHANNEL)
    return None


async def migrating_topics(tx: Transaction) -> Sequence[UUID]:
    """The topics whose switch was requested and is neither finished nor aborted, in the order of their requests."""
    rows = await tx.fetch(_statements()["migrating_topics"])
    return [uuid_from_text(value) if isinstance(value, str) else UUID(int=value.int) for (value,) in rows]
