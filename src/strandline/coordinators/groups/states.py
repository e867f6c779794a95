"""The states of groups, and the moves between them of a classic group."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class GroupState(Enum):
    """Kafka's names, as ListGroups and DescribeGroups show them."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    ASSIGNING = "Assigning"
    """Consumer groups only: the target assignment is older than the group's epoch."""
    RECONCILING = "Reconciling"
    """Consumer groups only: members are on their way to the target."""
    STABLE = "Stable"
    DEAD = "Dead"


LEGAL_MOVES: Final[Mapping[GroupState, frozenset[GroupState]]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.PREPARING_REBALANCE: frozenset({GroupState.COMPLETING_REBALANCE, GroupState.EMPTY, GroupState.DEAD}),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.STABLE, GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.STABLE: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.DEAD: frozenset({GroupState.DEAD}),
}


class IllegalMove(RuntimeError):
    """A move that no rule of the protocol allows: a bug, not a client's error."""


def check_move(group_id: str, current: GroupState, target: GroupState) -> None:
    if target not in LEGAL_MOVES[current]:
        raise IllegalMove(f"Group {group_id} cannot move from {current.value} to {target.value}.")


class GroupType(Enum):
    """Kinds of groups. Classic and consumer groups are served; the names are Kafka's."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"
