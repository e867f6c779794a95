"""Carries out the effects of plans in the control plane, in the transaction that writes their records."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.controlplane import abort_migration, migrating_topics, request_migration
from strandline.metadata.effects import AbortSwitch, Effect, RepeatSwitch, RequestSwitch
from strandline.sql import Transaction


async def carry_out(effects: Sequence[Effect], tx: Transaction) -> None:
    """Carry out effects, one after the other. Raises the StrandlineError with which one of them refuses the plan.

    May be called again with another transaction: nothing of it is left if the one before was not committed.
    """
    for effect in effects:
        await _carry_out(effect, tx)


async def _carry_out(effect: Effect, tx: Transaction) -> None:
    match effect:
        case RequestSwitch():
            await request_migration(tx, effect.topic_id, effect.topic, effect.partitions, is_flagged=False)
        case RepeatSwitch():
            await _repeat(effect, tx)
        case AbortSwitch():
            was_requested = effect.topic_id in await migrating_topics(tx)
            effect.check(was_requested=was_requested, switched=await abort_migration(tx, effect.topic_id))
        case _:
            effect.check(await migrating_topics(tx))


async def _repeat(effect: RepeatSwitch, tx: Transaction) -> None:
    if effect.topic_id in await migrating_topics(tx):
        return
    await request_migration(tx, effect.topic_id, effect.topic, effect.partitions, is_flagged=True)
    if effect.obstacle is not None and effect.topic_id in await migrating_topics(tx):
        raise effect.obstacle
