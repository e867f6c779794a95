"""What an assignor is given and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

from strandline.coordinators.groups.modern.partitions import Partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignorMember:
    """`topics` exist; `target` is what the member was assigned before."""

    topics: frozenset[UUID]
    instance_id: str | None = None
    target: Partitions = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentSpec:
    """Members by id, and how many partitions each topic has."""

    members: Mapping[str, AssignorMember]
    partition_counts: Mapping[UUID, int]

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics."""
        return len({member.topics for member in self.members.values()}) <= 1


Assignor: TypeAlias = Callable[[AssignmentSpec], Mapping[str, Partitions]]
"""Every member of the spec gets an entry, every partition of a subscribed topic exactly one owner."""
