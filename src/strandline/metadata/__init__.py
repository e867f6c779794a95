"""Metadata of the cluster: records, image and delta, the controller, and the brokers' membership.

KRaft's model with its log in the `sql` store: the one active controller appends records, every broker applies them to
its image, and notifies its components of what changed.

- `records`, `image`, `administered`, `delta`, `requests`, `effects`, `topic_names`: values, and how records change an
  image;
- `comparison`: what differs between two images;
- `features`: which features there are, and in which ranges;
- `log`: records and snapshots in the database, and the loader that follows them;
- `plans`: which records and effects answer a request, as pure functions of the image;
- `controller`: the lease, the writes, and what a controller does without being asked;
- `broker`: registration and heartbeats of a broker, and its requests to the active controller.

Not here: what a broker does with its partitions (`replication`).
"""

from strandline.metadata.administered import QuotaEntity, ScramCredential, ScramMechanism
from strandline.metadata.broker.active_controller import ActiveController
from strandline.metadata.broker.controller_client import ControllerUnreachable
from strandline.metadata.broker.directory_requests import directories_response, directory_assignments_of
from strandline.metadata.broker.failed_directories import FailedDirectories
from strandline.metadata.broker.isr_requests import isr_changes_of, isr_response
from strandline.metadata.broker.lifecycle import BrokerLifecycle, ControllerChannel, LifecycleStatus
from strandline.metadata.broker.live_settings import LiveSettings
from strandline.metadata.broker.wire_requests import heartbeat_of, registration_of
from strandline.metadata.config_map import configs_of
from strandline.metadata.controller.controller import Controller, ControllerStatus
from strandline.metadata.controller.leadership import LeaseTiming
from strandline.metadata.controller.quorum import QuorumReplica, QuorumStatus
from strandline.metadata.controller.switch_checks import SwitchChecks
from strandline.metadata.delta import MetadataDelta
from strandline.metadata.features import announced_features, finalized_level, may_replicate
from strandline.metadata.image import (
    EMPTY_IMAGE,
    UNASSIGNED,
    BrokerImage,
    ConfigResource,
    ConfigResourceType,
    Images,
    LeaderRecoveryState,
    Listener,
    MetadataImage,
    Overrides,
    PartitionImage,
    TopicImage,
)
from strandline.metadata.log.loader import MetadataLoader
from strandline.metadata.log.store import MetadataStore
from strandline.metadata.plans.elections import ElectionType
from strandline.metadata.plans.features import FeatureUpgrade, FeatureWish
from strandline.metadata.plans.internal_topics import wanted_topic
from strandline.metadata.plans.quotas import QuotaAlteration, QuotaFilterPart, matching_quotas
from strandline.metadata.plans.reassignments import Reassignment
from strandline.metadata.plans.scram import ScramDeletion, ScramUpsertion
from strandline.metadata.requests import (
    BrokerHeartbeat,
    BrokerRegistration,
    ConfigAlteration,
    ConfigChange,
    ConfigOperation,
    ConfigReplacement,
    DirectoryAssignment,
    HeartbeatReply,
    IsrChange,
    IsrMember,
    NewPartitions,
    NewTopic,
    Plan,
)
from strandline.metadata.topic_map import TopicMap
from strandline.metadata.topic_names import validate_topic_name

__all__ = [
    "EMPTY_IMAGE",
    "UNASSIGNED",
    "ActiveController",
    "BrokerHeartbeat",
    "BrokerImage",
    "BrokerLifecycle",
    "BrokerRegistration",
    "ConfigAlteration",
    "ConfigChange",
    "ConfigOperation",
    "ConfigReplacement",
    "ConfigResource",
    "ConfigResourceType",
    "Controller",
    "ControllerChannel",
    "ControllerStatus",
    "ControllerUnreachable",
    "DirectoryAssignment",
    "ElectionType",
    "FailedDirectories",
    "FeatureUpgrade",
    "FeatureWish",
    "HeartbeatReply",
    "Images",
    "IsrChange",
    "IsrMember",
    "LeaderRecoveryState",
    "LeaseTiming",
    "LifecycleStatus",
    "Listener",
    "LiveSettings",
    "MetadataDelta",
    "MetadataImage",
    "MetadataLoader",
    "MetadataStore",
    "NewPartitions",
    "NewTopic",
    "Overrides",
    "PartitionImage",
    "Plan",
    "QuorumReplica",
    "QuorumStatus",
    "QuotaAlteration",
    "QuotaEntity",
    "QuotaFilterPart",
    "Reassignment",
    "ScramCredential",
    "ScramDeletion",
    "ScramMechanism",
    "ScramUpsertion",
    "SwitchChecks",
    "TopicImage",
    "TopicMap",
    "announced_features",
    "configs_of",
    "directories_response",
    "directory_assignments_of",
    "finalized_level",
    "heartbeat_of",
    "isr_changes_of",
    "isr_response",
    "matching_quotas",
    "may_replicate",
    "registration_of",
    "validate_topic_name",
    "wanted_topic",
]
