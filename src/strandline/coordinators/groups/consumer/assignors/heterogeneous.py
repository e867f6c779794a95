"""The uniform assignor for members that subscribe to different topics.

Three steps: members keep what they had of the topics that they still read; partitions without an owner go to the
subscriber with the fewest; then, topic by topic, partitions move from the subscriber with the most to the one with the
fewest until they differ by one at most. Moves of one topic can unbalance another, so the last step is repeated, but not
without end: with overlapping subscriptions each round roughly halves the imbalance.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from strandline.coordinators.groups.consumer.assignors.spec import AssignmentSpec
from strandline.coordinators.groups.modern.partitions import Partitions, gathered, pairs

_MOST_ROUNDS: Final = 16


def assign_heterogeneous(spec: AssignmentSpec) -> Mapping[str, Partitions]:
    balance = _Balance(spec)
    balance.keep_targets()
    balance.assign_free()
    balance.even_out()
    return balance.assigned()


class _Balance:
    """The assignment while it is made. Members are numbers: their places in the order of their ids."""

    def __init__(self, spec: AssignmentSpec) -> None:
        self._spec = spec
        self._members = sorted(spec.members)
        self._loads = [0] * len(self._members)
        self._subscribers: dict[UUID, list[int]] = {}
        for at, member_id in enumerate(self._members):
            for topic_id in spec.members[member_id].topics:
                self._subscribers.setdefault(topic_id, []).append(at)
        self._topics = sorted(self._subscribers, key=self._rank)
        self._owners: dict[UUID, list[int | None]] = {
            topic_id: [None] * spec.partition_counts[topic_id] for topic_id in self._topics
        }

    def _rank(self, topic_id: UUID) -> tuple[float, int, UUID]:
        """Topics with many partitions for few subscribers first: they leave the least choice."""
        subscribers = len(self._subscribers[topic_id])
        return -self._spec.partition_counts[topic_id] / subscribers, subscribers, topic_id

    def keep_targets(self) -> None:
        for at, member_id in enumerate(self._members):
            member = self._spec.members[member_id]
            for topic_id, number in pairs(member.target):
                owners = self._owners[topic_id] if topic_id in member.topics else []
                if number < len(owners) and owners[number] is None:
                    owners[number] = at
                    self._loads[at] += 1

    def assign_free(self) -> None:
        for topic_id in self._topics:
            least = [(self._loads[at], at) for at in self._subscribers[topic_id]]
            heapq.heapify(least)
            owners = self._owners[topic_id]
            for number, owner in enumerate(owners):
                if owner is None:
                    load, at = least[0]
                    heapq.heapreplace(least, (load + 1, at))
                    owners[number] = at
                    self._loads[at] += 1

    def even_out(self) -> None:
        shared = [topic_id for topic_id in self._topics if len(self._subscribers[topic_id]) > 1]
        for _ in range(_MOST_ROUNDS):
            moves = [self._even_out_topic(topic_id) for topic_id in shared]
            if not any(moves):
                return

    def _even_out_topic(self, topic_id: UUID) -> int:
        """Move partitions of this topic while that helps. How many were moved."""
        owners = self._owners[topic_id]
        owned: dict[int, list[int]] = {}
        for number, owner in enumerate(owners):
            if owner is not None:
                owned.setdefault(owner, []).append(number)
        loads = self._loads
        least = [(loads[at], at) for at in self._subscribers[topic_id]]
        most = [(-loads[at], at) for at in owned]
        heapq.heapify(least)
        heapq.heapify(most)
        moves = 0
        while most:
            (rich_load, rich), (poor_load, poor) = most[0], least[0]
            if -rich_load != loads[rich] or not owned[rich]:
                heapq.heappop(most)  # out of date, or nothing to give
            elif poor_load != loads[poor]:
                heapq.heappop(least)
            elif loads[rich] - loads[poor] <= 1:
                break
            else:
                owners[owned[rich].pop()] = poor
                loads[rich] -= 1
                loads[poor] += 1
                moves += 1
                for at in (rich, poor):
                    heapq.heappush(least, (loads[at], at))
                    if at in owned:
                        heapq.heappush(most, (-loads[at], at))
        return moves

    def assigned(self) -> Mapping[str, Partitions]:
        mine: list[list[tuple[UUID, int]]] = [[] for _ in self._members]
        for topic_id, owners in self._owners.items():
            for number, owner in enumerate(owners):
                if owner is not None:
                    mine[owner].append((topic_id, number))
        return {member_id: gathered(mine[at]) for at, member_id in enumerate(self._members)}
