"""Requests and answers about share groups, without wire types and versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias
from uuid import UUID

from strandline.config.share_groups import ShareMembershipConfig
from strandline.coordinators.groups.modern.partitions import Partitions
from strandline.coordinators.groups.modern.surroundings import Surroundings
from strandline.coordinators.groups.modern.values import DescribedModernGroup
from strandline.errors import StrandlineError
from strandline.model import ZERO_UUID

NO_SHARE_OFFSET: Final = -1
"""No start offset: the group begins where share.auto.offset.reset says."""
UNKNOWN_LAG: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareHeartbeatRequest:
    """What a member says. None: as before. `member_epoch` 0 joins, -1 leaves."""

    group_id: str
    member_id: str
    member_epoch: int = 0
    rack_id: str | None = None
    topics: tuple[str, ...] | None = None
    client_id: str = ""
    client_host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedShareMember:
    """A member as administrators see it."""

    member_id: str
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    assigned: Partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareOffset:
    """Where a group begins to read a partition, and how many records it has not finished with."""

    topic: str
    topic_id: UUID = ZERO_UUID
    partition: int
    start_offset: int = NO_SHARE_OFFSET
    leader_epoch: int = 0
    lag: int = UNKNOWN_LAG
    error: StrandlineError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredShareOffset:
    """The wish to begin at an offset, and what became of it."""

    topic: str
    partition: int
    start_offset: int
    topic_id: UUID = ZERO_UUID
    error: StrandlineError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedShareOffsets:
    """A topic whose offsets a group is to forget, and what became of it."""

    topic: str
    topic_id: UUID = ZERO_UUID
    error: StrandlineError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareLimits:
    """The settings of one group: those of the broker, and what was set for the group itself."""

    max_size: int
    group: ShareMembershipConfig
    retry_ms: int
    """After how long the creation of state in the share coordinator counts as lost."""

    @property
    def session_timeout_ms(self) -> int:
        return self.group.share_session_timeout_ms

    @property
    def heartbeat_interval_ms(self) -> int:
        return self.group.share_heartbeat_interval_ms

    @property
    def assignment_interval_ms(self) -> int:
        return self.group.share_assignment_interval_ms


DescribedShareGroup: TypeAlias = DescribedModernGroup[DescribedShareMember]
ShareSurroundings: TypeAlias = Surroundings[ShareLimits]
