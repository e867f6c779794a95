"""The range assignor: each topic is cut into one range of partitions for each of its subscribers.

Members stand in the same order for every topic, so topics with the same number of partitions and the same subscribers
are co-partitioned: a member gets the same numbers of each. Static members come first, in the order of their instance
ids, and so keep their ranges when they come back with new member ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from strandline.coordinators.groups.consumer.assignors.spec import AssignmentSpec
from strandline.coordinators.groups.modern.partitions import Partitions


def assign_ranges(spec: AssignmentSpec) -> Mapping[str, Partitions]:
    order = sorted(spec.members, key=lambda member_id: _place(member_id, spec.members[member_id].instance_id))
    subscribers: dict[UUID, list[str]] = {}
    for member_id in order:
        for topic_id in spec.members[member_id].topics:
            subscribers.setdefault(topic_id, []).append(member_id)
    assigned: dict[str, dict[UUID, frozenset[int]]] = {member_id: {} for member_id in order}
    for topic_id, members in subscribers.items():
        size, longer = divmod(spec.partition_counts[topic_id], len(members))
        start = 0
        for place, member_id in enumerate(members):
            end = start + size + (place < longer)
            if end > start:
                assigned[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return assigned


def _place(member_id: str, instance_id: str | None) -> tuple[bool, str]:
    return (True, member_id) if instance_id is None else (False, instance_id)
