"""Requests to the controller, and its answers."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, NamedTuple, TypeVar

from strandline.metadata.effects import Effect
from strandline.metadata.features import OWN_SUPPORT
from strandline.metadata.image import ConfigResource, FeatureSupport, LeaderRecoveryState, Listener
from strandline.metadata.records import MetadataRecord

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Plan(Generic[T]):
    """A decision: the records to write, and the answer to give when they are written.

    `effects` are carried out in the transaction that writes the records, before them and in their order.
    """

    records: Sequence[MetadataRecord]
    answer: T
    effects: Sequence[Effect] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to create. -1: the broker's default, or given by `assignments` (partition -> replicas)."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPartitions:
    """A topic that gets more partitions, `count` in all; `assignments` are for the new ones."""

    name: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None


class ConfigOperation(IntEnum):
    """What IncrementalAlterConfigs does to a setting. Kafka's numbers."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """One operation on one setting. `value` is not used by DELETE."""

    key: str
    operation: ConfigOperation
    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigAlteration:
    """Operations on settings of one resource; all others stay."""

    resource: ConfigResource
    changes: Sequence[ConfigChange]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigReplacement:
    """All settings of one resource; all others are removed."""

    resource: ConfigResource
    values: Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistration:
    """A broker that starts. The incarnation is a new random id for each start; an empty cluster id means any.

    `previous_broker_epoch` is the epoch of the incarnation before, if this one has everything that that one had written
    to its log directories; -1 otherwise. `log_dirs` are the ids of the directories that are online.
    """

    node_id: int
    incarnation_id: uuid.UUID
    listeners: tuple[Listener, ...]
    cluster_id: str = ""
    rack: str | None = None
    features: tuple[FeatureSupport, ...] = OWN_SUPPORT
    previous_broker_epoch: int = -1
    log_dirs: tuple[uuid.UUID, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerHeartbeat:
    """A heartbeat, and the state that the broker wants."""

    node_id: int
    broker_epoch: int
    current_metadata_offset: int
    want_fence: bool = False
    want_shut_down: bool = False
    failed_log_dirs: tuple[uuid.UUID, ...] = ()
    """All log directories that have failed since it registered."""


class DirectoryAssignment(NamedTuple):
    """A broker says in which of its log directories it has its replica of a partition."""

    topic_id: uuid.UUID
    partition: int
    directory: uuid.UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatReply:
    """The state of the broker after a heartbeat."""

    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool


class IsrMember(NamedTuple):
    """A replica that the leader considers in sync. Epoch -1: not known."""

    node_id: int
    broker_epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrChange:
    """A leader's request for another in-sync set."""

    topic_id: uuid.UUID
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[IsrMember, ...]
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
