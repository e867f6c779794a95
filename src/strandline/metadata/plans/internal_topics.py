"""Partitions, replicas and settings of topics that brokers create by themselves, internal topics among them."""

from __future__ import annotations

from typing import NamedTuple

from strandline.config import Settings
from strandline.metadata.features import may_replicate
from strandline.metadata.image import MetadataImage
from strandline.metadata.plans.rules import MIN_INSYNC_REPLICAS
from strandline.metadata.requests import NewTopic
from strandline.model import (
    GROUP_METADATA_TOPIC,
    REMOTE_LOG_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)


class WantedReplication(NamedTuple):
    """How an internal topic is to be replicated where there are brokers enough."""

    factor: int
    min_insync_replicas: int | None = None
    """None: what the brokers have for all topics."""


def wanted_replication(settings: Settings) -> dict[str, WantedReplication]:
    """What the settings say, by topic."""
    transactions, sharing = settings.transactions, settings.sharing
    return {
        GROUP_METADATA_TOPIC: WantedReplication(settings.groups.offsets_topic_replication_factor),
        TRANSACTION_STATE_TOPIC: WantedReplication(
            transactions.transaction_state_log_replication_factor, transactions.transaction_state_log_min_isr
        ),
        SHARE_GROUP_STATE_TOPIC: WantedReplication(
            sharing.share_coordinator_state_topic_replication_factor, sharing.share_coordinator_state_topic_min_isr
        ),
        REMOTE_LOG_METADATA_TOPIC: WantedReplication(
            settings.tiers.rlmm_config_remote_log_metadata_topic_replication_factor
        ),
    }


def possible_factor(wanted: int, image: MetadataImage) -> int:
    """As many replicas as there are brokers for: groups have to work in a cluster of fewer than three, too."""
    if not may_replicate(image):
        return 1
    return max(1, min(wanted, sum(broker.is_active for broker in image.brokers.values())))


def wanted_topic(name: str, settings: Settings, image: MetadataImage) -> NewTopic:
    """The topic to create. Internal topics have their own settings; others get the defaults of the broker.

    Where there are fewer brokers than replicas are configured, the topic has fewer, and gets the others with further
    brokers (`replica_growth`).
    """
    wanted = wanted_replication(settings).get(name)
    if wanted is None:
        return NewTopic(name=name)
    partitions, configs = _shape(name, settings)
    factor = possible_factor(wanted.factor, image)
    if wanted.min_insync_replicas is not None:
        configs[MIN_INSYNC_REPLICAS] = str(min(wanted.min_insync_replicas, factor))
    return NewTopic(name=name, num_partitions=partitions, replication_factor=factor, configs=configs)


def _shape(name: str, settings: Settings) -> tuple[int, dict[str, str]]:
    """The number of partitions, and the settings apart from replication."""
    if name == GROUP_METADATA_TOPIC:
        groups = settings.groups
        return groups.offsets_topic_num_partitions, {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(groups.offsets_topic_segment_bytes),
        }
    if name == TRANSACTION_STATE_TOPIC:
        transactions = settings.transactions
        return transactions.transaction_state_log_num_partitions, {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "segment.bytes": str(transactions.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        }
    if name == SHARE_GROUP_STATE_TOPIC:
        sharing = settings.sharing
        # Not compacted, as in Kafka: a change has no meaning without those before it. The coordinator deletes what
        # newer snapshots replace.
        return sharing.share_coordinator_state_topic_num_partitions, {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "segment.bytes": str(sharing.share_coordinator_state_topic_segment_bytes),
            "retention.ms": "-1",
        }
    tiers = settings.tiers
    # Never compacted: every state of a segment is a record of its own.
    return tiers.rlmm_config_remote_log_metadata_topic_num_partitions, {
        "cleanup.policy": "delete",
        "retention.ms": str(tiers.rlmm_config_remote_log_metadata_topic_retention_ms),
        "retention.bytes": "-1",
        # There may be one replica: remote log metadata has to be on disk before the local segment is deleted.
        "flush.messages": "1",
    }
