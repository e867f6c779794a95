"""The `simple` assignor: every partition is read by at least one member, and every member has about as many.

With more members than partitions several members share a partition. What a member has it keeps, as long as that
leaves the others their part. If all members subscribe to the same topics, the partitions of all topics are balanced
together; if not, those of each topic are, among the members that subscribe to it.

Kafka gives every partition to the same number of members and every member the same number of partitions, up to one,
and so does this. Which member gets which partition depends in Kafka on hash tables of Java, and here on the
order of ids.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from uuid import UUID

from strandline.coordinators.groups.modern.partitions import NO_PARTITIONS, Partitions, gathered, sorted_pairs

SIMPLE_ASSIGNOR: Final = "simple"

_Partition: TypeAlias = tuple[UUID, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareAssignorMember:
    """A member as the assignor sees it: the topics that it subscribes to and that exist, and its target so far."""

    topics: frozenset[UUID]
    target: Partitions = field(default_factory=dict)


def assign_simply(members: Mapping[str, ShareAssignorMember], assignable: Partitions) -> Mapping[str, Partitions]:
    """The target of each member. Only assignable partitions are given out."""
    subscriptions = {member.topics for member in members.values()}
    targets: dict[str, set[_Partition]] = {member_id: set() for member_id in members}
    if len(subscriptions) == 1:
        pools: list[frozenset[UUID]] = list(subscriptions)
    else:
        pools = [frozenset({topic_id}) for topic_id in sorted(frozenset().union(*subscriptions))]
    for topics in pools:
        partitions = [(topic_id, at) for topic_id, at in sorted_pairs(assignable) if topic_id in topics]
        readers = sorted(member_id for member_id, member in members.items() if topics <= member.topics)
        held = {member_id: sorted_pairs(members[member_id].target) for member_id in readers}
        for member_id, given in _spread(partitions, readers, held).items():
            targets[member_id] |= given
    return {member_id: gathered(given) if given else NO_PARTITIONS for member_id, given in targets.items()}


def _spread(
    partitions: Sequence[_Partition], members: Sequence[str], held: Mapping[str, Iterable[_Partition]]
) -> Mapping[str, set[_Partition]]:
    """Balance partitions among members that may all have any of them."""
    given: dict[str, set[_Partition]] = {member_id: set() for member_id in members}
    if not partitions or not members:
        return given
    sharing = -(-len(members) // len(partitions))
    quotas = _quotas(sharing * len(partitions), members)
    readers = Counter(dict.fromkeys(partitions, 0))
    for member_id in members:
        for partition in held[member_id]:
            has_room = len(given[member_id]) < quotas[member_id]
            if partition in readers and readers[partition] < sharing and has_room:
                given[member_id].add(partition)
                readers[partition] += 1
    unfilled = deque(member_id for member_id in members if len(given[member_id]) < quotas[member_id])
    # Partitions without a reader come first: what is left over at the end is a second reader at most.
    for partition in sorted(partitions, key=lambda one: (readers[one] > 0, one)):
        for _ in range(len(unfilled)):
            if readers[partition] == sharing:
                break
            member_id = unfilled.popleft()
            if partition not in given[member_id]:
                given[member_id].add(partition)
                readers[partition] += 1
            if len(given[member_id]) < quotas[member_id]:
                unfilled.append(member_id)
    return given


def _quotas(total: int, members: Sequence[str]) -> Mapping[str, int]:
    """Parts of a total that differ by one at most."""
    count = len(members)
    bounds = [-(-total * at // count) for at in range(count + 1)]
    return {member_id: bounds[at + 1] - bounds[at] for at, member_id in enumerate(members)}
