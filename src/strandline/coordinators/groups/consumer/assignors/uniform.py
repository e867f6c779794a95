"""The uniform assignor: members get as many partitions as each other, and keep what they had as far as that allows.

If all subscribe to the same topics, sizes differ by one at most, and no partition moves that does not have to. If not,
`heterogeneous` balances topic by topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from strandline.coordinators.groups.consumer.assignors.heterogeneous import assign_heterogeneous
from strandline.coordinators.groups.consumer.assignors.spec import AssignmentSpec
from strandline.coordinators.groups.modern.partitions import Partitions, gathered, pairs


def assign_uniformly(spec: AssignmentSpec) -> Mapping[str, Partitions]:
    if not spec.members:
        return {}
    return _assign_homogeneous(spec) if spec.is_homogeneous else assign_heterogeneous(spec)


def _assign_homogeneous(spec: AssignmentSpec) -> Mapping[str, Partitions]:
    order = sorted(spec.members)
    topics = spec.members[order[0]].topics
    free = {(topic_id, number) for topic_id in topics for number in range(spec.partition_counts[topic_id])}
    quota, extra = divmod(len(free), len(order))
    kept: dict[str, list[tuple[UUID, int]]] = {}
    sizes: dict[str, int] = {}
    for place, member_id in enumerate(order):
        before = [partition for partition in sorted(pairs(spec.members[member_id].target)) if partition in free]
        mine = before[: quota + (extra > 0)]
        # Members that have one more than the quota keep it; what is left of the remainder goes to the last members.
        has_extra = extra > 0 and (len(mine) > quota or len(order) - place <= extra)
        extra -= has_extra
        kept[member_id], sizes[member_id] = mine, quota + has_extra
        free.difference_update(mine)
    remaining = iter(sorted(free))
    for member_id, mine in kept.items():
        mine.extend(partition for _, partition in zip(range(sizes[member_id] - len(mine)), remaining, strict=False))
    return {member_id: gathered(mine) for member_id, mine in kept.items()}
