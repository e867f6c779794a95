"""Partitions without a leader, and what that means for clients, in sentences.

A classic partition has no leader while none of the brokers is there that may lead it: with one replica, its one broker.
A partition of an internal topic without a leader affects others, since groups and transactions are coordinated by the
leaders of these partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from strandline.hybrid.diskless.assigned import OfflinePartition
from strandline.model import (
    GROUP_METADATA_TOPIC,
    REMOTE_LOG_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)

_SHOWN: Final = 10

_MEANING: Final[Mapping[str, str]] = {
    GROUP_METADATA_TOPIC: "the groups that are kept in them have no coordinator: their members can neither join, "
    "commit nor read committed offsets, also where the topics that they read are diskless",
    TRANSACTION_STATE_TOPIC: "the transactional ids that are kept in them have no coordinator: their producers can "
    "neither begin nor end a transaction, also in diskless topics",
    SHARE_GROUP_STATE_TOPIC: "the share groups that are kept in them get no records, also of diskless topics",
    REMOTE_LOG_METADATA_TOPIC: "of the tiered partitions that are described in them nothing is copied or read from "
    "remote storage",
}


def leaderless_sentences(offline: Sequence[OfflinePartition]) -> tuple[str, ...]:
    """One sentence for all partitions without a leader, and one for each internal topic among them."""
    if not offline:
        return ()
    away = sorted({node for partition in offline for node in partition.replicas})
    brokers = f"broker {away[0]} is" if len(away) == 1 else f"brokers {_listed(map(str, away))} are"
    names = _listed(f"{partition.topic}-{partition.partition}" for partition in offline)
    how_many = "1 partition has" if len(offline) == 1 else f"{len(offline)} partitions have"
    sentences = [f"{how_many} no leader until {brokers} back: {names}."]
    for topic, meaning in _MEANING.items():
        numbers = [partition.partition for partition in offline if partition.topic == topic]
        if numbers:
            sentences.append(f"{topic} has no leader for {_listed(map(str, numbers))}: {meaning}.")
    return tuple(sentences)


def _listed(words: Iterable[str]) -> str:
    found = list(words)
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(found[:_SHOWN]) + more
