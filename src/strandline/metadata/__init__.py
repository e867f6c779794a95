"""Metadata of the cluster: records, image and delta, the controller, and the brokers' membership.

KRaft's model with its log in the `sql` store: records are appended by the one active controller, every broker follows
them into an image, and components are told what changed. Deciding is pure (`topics`, `configs`, `membership`,
`elections`, `isr`, `placement`, `delta`); only `store`, `loader`, `leadership`, `upkeep`, `controller`,
`controller_client` and `broker_lifecycle` do I/O. Not here: what a broker does with its partitions (`replication`).
"""

from strandline.metadata.active_controller import ActiveController
from strandline.metadata.broker_lifecycle import BrokerLifecycle, ControllerChannel, LifecycleStatus
from strandline.metadata.controller import Controller, ControllerStatus
from strandline.metadata.controller_client import ControllerUnreachable
from strandline.metadata.delta import MetadataDelta
from strandline.metadata.elections import ElectionType
from strandline.metadata.image import (
    EMPTY_IMAGE,
    BrokerImage,
    ConfigResource,
    ConfigResourceType,
    LeaderRecoveryState,
    Listener,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from strandline.metadata.leadership import LeaseTiming
from strandline.metadata.loader import MetadataLoader
from strandline.metadata.requests import (
    BrokerHeartbeat,
    BrokerRegistration,
    ConfigAlteration,
    ConfigChange,
    ConfigOperation,
    ConfigReplacement,
    HeartbeatReply,
    IsrChange,
    IsrMember,
    NewPartitions,
    NewTopic,
)
from strandline.metadata.store import MetadataStore
from strandline.metadata.topic_names import validate_topic_name

__all__ = [
    "EMPTY_IMAGE",
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
    "ElectionType",
    "HeartbeatReply",
    "IsrChange",
    "IsrMember",
    "LeaderRecoveryState",
    "LeaseTiming",
    "LifecycleStatus",
    "Listener",
    "MetadataDelta",
    "MetadataImage",
    "MetadataLoader",
    "MetadataStore",
    "NewPartitions",
    "NewTopic",
    "PartitionImage",
    "TopicImage",
    "validate_topic_name",
]
