"""The records of the metadata log: one class per kind of change."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Final, TypeAlias

from strandline.metadata.administered import QuotaEntity, ScramCredential, ScramOwner
from strandline.metadata.image import ConfigResource, FeatureSupport, LeaderRecoveryState, Listener

_RECOVERED: Final = LeaderRecoveryState.RECOVERED


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRecord:
    """The first record: the id of the cluster."""

    cluster_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerChangeRecord:
    """A broker became the active controller. The first record of each controller epoch."""

    controller_id: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRecord:
    """A broker started. Its offset is the broker's epoch. `log_dirs` needs the level `REPLICATED` (`features`)."""

    node_id: int
    incarnation_id: uuid.UUID
    listeners: tuple[Listener, ...]
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    features: tuple[FeatureSupport, ...] = ()
    log_dirs: tuple[uuid.UUID, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerChangeRecord:
    """A broker was fenced, unfenced or began to shut down, or log directories failed. None: unchanged.

    `failed_log_dirs` are all that have failed since it registered; they need the level `REPLICATED` (`features`).
    """

    node_id: int
    broker_epoch: int
    fenced: bool | None = None
    in_controlled_shutdown: bool | None = None
    failed_log_dirs: tuple[uuid.UUID, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterBrokerRecord:
    """A broker left for good."""

    node_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord:
    """A new topic. Its partitions follow."""

    name: str
    topic_id: uuid.UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord:
    """A new partition."""

    topic_id: uuid.UUID
    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    leader_recovery_state: LeaderRecoveryState = _RECOVERED


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChangeRecord:
    """Partitions changed in the same way. None: unchanged.

    The partition epoch of each rises by one, and so does its leader epoch if `leader` is given. One record holds
    many partitions because a broker that starts or stops changes thousands of them in the same way. `replicas`, `elr`
    and `last_known_elr` need the level `REPLICATED` (`features`).
    """

    partitions: tuple[tuple[uuid.UUID, tuple[int, ...]], ...]
    isr: tuple[int, ...] | None = None
    leader: int | None = None
    leader_recovery_state: LeaderRecoveryState | None = None
    replicas: tuple[int, ...] | None = None
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaDirectoryRecord:
    """A broker has its replicas of these partitions in this log directory. Needs the level `REPLICATED` (`features`).

    The epochs of the partitions stay: nothing follows from it for their leaders.
    """

    node_id: int
    directory: uuid.UUID
    partitions: tuple[tuple[uuid.UUID, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTopicRecord:
    """A topic was deleted, with its partitions and settings."""

    topic_id: uuid.UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRecord:
    """A setting was set, or unset (None)."""

    resource: ConfigResource
    key: str
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdsRecord:
    """A block of producer ids was given to a broker; the next one starts here."""

    node_id: int
    broker_epoch: int
    next_producer_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuotaRecord:
    """A quota of clients was set, or removed (None)."""

    entity: QuotaEntity
    key: str
    value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredentialRecord:
    """A user got a SCRAM credential, or lost it (None)."""

    owner: ScramOwner
    credential: ScramCredential | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLevelRecord:
    """The level of a feature was finalized."""

    name: str
    level: int


MetadataRecord: TypeAlias = (
    ClusterRecord
    | ControllerChangeRecord
    | RegisterBrokerRecord
    | BrokerChangeRecord
    | UnregisterBrokerRecord
    | TopicRecord
    | PartitionRecord
    | PartitionChangeRecord
    | ReplicaDirectoryRecord
    | RemoveTopicRecord
    | ConfigRecord
    | ProducerIdsRecord
    | ClientQuotaRecord
    | ScramCredentialRecord
    | FeatureLevelRecord
)
