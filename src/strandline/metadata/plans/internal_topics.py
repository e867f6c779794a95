"""Partitions, replicas and settings of topics that brokers create by themselves, internal topics among them."""

from __future__ import annotations

from strandline.config import Settings
from strandline.metadata.image import MetadataImage
from strandline.metadata.plans.topics import MAX_REPLICAS
from strandline.metadata.requests import NewTopic
from strandline.model import (
    GROUP_METADATA_TOPIC,
    REMOTE_LOG_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)


def wanted_topic(name: str, settings: Settings, image: MetadataImage) -> NewTopic:
    """The topic to create. Internal topics have their own settings; others get the defaults of the broker."""
    possible = max(1, min(len(image.alive_brokers()), MAX_REPLICAS))
    if name == GROUP_METADATA_TOPIC:
        groups = settings.groups
        return NewTopic(
            name=name,
            num_partitions=groups.offsets_topic_num_partitions,
            # Groups have to work in a cluster of fewer brokers than the default of three, too.
            replication_factor=min(groups.offsets_topic_replication_factor, possible),
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(groups.offsets_topic_segment_bytes),
            },
        )
    if name == TRANSACTION_STATE_TOPIC:
        transactions = settings.transactions
        return NewTopic(
            name=name,
            num_partitions=transactions.transaction_state_log_num_partitions,
            replication_factor=min(transactions.transaction_state_log_replication_factor, possible),
            configs={
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "segment.bytes": str(transactions.transaction_state_log_segment_bytes),
                "min.insync.replicas": str(min(transactions.transaction_state_log_min_isr, possible)),
                "unclean.leader.election.enable": "false",
            },
        )
    if name == SHARE_GROUP_STATE_TOPIC:
        sharing = settings.sharing
        return NewTopic(
            name=name,
            num_partitions=sharing.share_coordinator_state_topic_num_partitions,
            replication_factor=min(sharing.share_coordinator_state_topic_replication_factor, possible),
            # Not compacted, as in Kafka: a change has no meaning without those before it. The coordinator deletes
            # what newer snapshots replace.
            configs={
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "segment.bytes": str(sharing.share_coordinator_state_topic_segment_bytes),
                "retention.ms": "-1",
                "min.insync.replicas": str(min(sharing.share_coordinator_state_topic_min_isr, possible)),
            },
        )
    if name == REMOTE_LOG_METADATA_TOPIC:
        tiers = settings.tiers
        return NewTopic(
            name=name,
            num_partitions=tiers.rlmm_config_remote_log_metadata_topic_num_partitions,
            replication_factor=min(tiers.rlmm_config_remote_log_metadata_topic_replication_factor, possible),
            # Never compacted: every state of a segment is a record of its own.
            configs={
                "cleanup.policy": "delete",
                "retention.ms": str(tiers.rlmm_config_remote_log_metadata_topic_retention_ms),
                "retention.bytes": "-1",
                # There may be one replica: remote log metadata has to be on disk before the local segment is
                # deleted.
                "flush.messages": "1",
            },
        )
    return NewTopic(name=name)
