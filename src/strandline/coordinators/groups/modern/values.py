"""Answers that members and administrators of all modern groups get, without wire types and versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from strandline.coordinators.groups.modern.partitions import Partitions
from strandline.coordinators.groups.states import GroupState
from strandline.errors import StrandlineError

D = TypeVar("D")


class HeartbeatResponse(NamedTuple):
    """`assignment` is None if it has not changed."""

    error: StrandlineError | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Partitions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedModernGroup(Generic[D]):
    """A group as administrators see it; or the error that says why not."""

    group_id: str
    error: StrandlineError | None = None
    state: GroupState | None = None
    epoch: int = 0
    target_epoch: int = 0
    assignor: str = ""
    members: tuple[D, ...] = ()
