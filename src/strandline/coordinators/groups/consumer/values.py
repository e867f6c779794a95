"""Requests and answers of the consumer protocol, without wire types and versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from strandline.config import GroupConfig, GroupSettings
from strandline.coordinators.groups.modern.partitions import Partitions
from strandline.coordinators.groups.modern.surroundings import Surroundings
from strandline.coordinators.groups.modern.values import DescribedModernGroup


class HeartbeatRequest(NamedTuple):  # made for each heartbeat, in half the time of a frozen dataclass
    """What a member says. None: as before.

    `member_epoch` 0 joins, -1 leaves, -2 leaves for a while (static members). `may_lack_id`: the client may leave its
    member id to the broker (version 0).
    """

    group_id: str
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Partitions | None = None
    client_id: str = ""
    client_host: str = ""
    may_lack_id: bool = False

    @property
    def is_full(self) -> bool:
        """Whether the client says everything: then it wants to hear everything."""
        has_subscription = self.topics is not None or self.regex is not None
        return self.rebalance_timeout_ms != -1 and has_subscription and self.owned is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedConsumer:
    """A member as administrators see it. Assignments are by topic id and name."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    regex: str | None
    assigned: Partitions
    target: Partitions
    is_classic: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerLimits:
    """The settings of one group: those of the broker, and what was set for the group itself."""

    broker: GroupSettings
    group: GroupConfig

    @property
    def assignors(self) -> tuple[str, ...]:
        return self.broker.group_consumer_assignors

    @property
    def max_size(self) -> int:
        return self.broker.group_consumer_max_size

    @property
    def session_timeout_ms(self) -> int:
        return self.group.consumer_session_timeout_ms

    @property
    def heartbeat_interval_ms(self) -> int:
        return self.group.consumer_heartbeat_interval_ms

    @property
    def assignment_interval_ms(self) -> int:
        return self.group.consumer_assignment_interval_ms


DescribedConsumerGroup: TypeAlias = DescribedModernGroup[DescribedConsumer]
ConsumerSurroundings: TypeAlias = Surroundings[ConsumerLimits]
