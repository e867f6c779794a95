"""Transactions that hold up a switch: to which transactional ids they belong, and how they are aborted."""

from __future__ import annotations

from strandline.admin.commands.transactions.abort import ONGOING, fence
from strandline.admin.commands.transactions.hanging import find_holders
from strandline.client import Cluster, CommandFailed, sentences
from strandline.hybrid.switching.status import TopicMigrationStatus


def holders_text(cluster: Cluster, status: TopicMigrationStatus) -> list[str]:
    """A sentence for each transaction that the switch of a topic waits for.

    One for all of them if a coordinator cannot be asked: how far the switch is can be told all the same.
    """
    producers = _held_by(status)
    try:
        with sentences():
            known = find_holders(cluster, producers)
    except CommandFailed as failure:
        ids = ", ".join(map(str, sorted(producers)))
        return [
            f"The switch waits for transactions of the producer ids {ids}, whose transactional ids cannot be told: "
            f"{failure}"
        ]
    return [
        f"The switch waits for the transaction of {known[producer].transactional_id} (producer id {producer})."
        if producer in known
        else f"The switch waits for a transaction of producer id {producer}, which no coordinator knows: see "
        f"strandline transactions find-hanging --topic {status.topic}"
        for producer in sorted(producers)
    ]


def abort_holders(cluster: Cluster, status: TopicMigrationStatus) -> list[str]:
    """Abort these transactions, and fence their producers. Returns the transactional ids. Raises CommandFailed.

    Transactions that no coordinator has open are left alone: an operator has to decide about those.
    """
    held = [one for one in find_holders(cluster, _held_by(status)).values() if one.state == ONGOING]
    for one in held:
        fence(cluster, one)
    return [one.transactional_id for one in held]


def _held_by(status: TopicMigrationStatus) -> set[int]:
    return {producer for partition in status.partitions for producer in partition.held_by}
