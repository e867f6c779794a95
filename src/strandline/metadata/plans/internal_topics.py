"""What a topic should be that nobody describes: the brokers' own topics have settings of their own."""

from __future__ import annotations

from strandline.config import Settings
from strandline.metadata.image import MetadataImage
from strandline.metadata.plans.topics import MAX_REPLICAS
from strandline.metadata.requests import NewTopic
from strandline.model import GROUP_METADATA_TOPIC, REMOTE_LOG_METADATA_TOPIC, TRANSACTION_STATE_TOPIC


def wanted_topic(name: str, settings: Settings, image: MetadataImage) -> NewTopic:
    """What the topic should be: the brokers' own topics have settings of their own."""
    possible = max(1, min(len(image.alive_brokers()), MAX_REPLICAS))
    if name == GROUP_METADATA_TOPIC:
        groups = settings.groups
        return NewTopic(
            name=name,
            num_partitions=groups.offsets_topic_num_partitions,
            # A cluster that cannot have the default of three replicas is to have groups, too.
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
    if name == REMOTE_LOG_METADATA_TOPIC:
        tiers = settings.tiers
        return NewTopic(
            name=name,
            num_partitions=tiers.rlmm_config_remote_log_metadata_topic_num_partitions,
            replication_factor=min(tiers.rlmm_config_remote_log_metadata_topic_replication_factor, possible),
            # Never compacted: every state that a segment went through is a record of its own.
            configs={
                "cleanup.policy": "delete",
                "retention.ms": str(tiers.rlmm_config_remote_log_metadata_topic_retention_ms),
                "retention.bytes": "-1",
                # There may be one replica, and what it describes may be nowhere else: a description is on the disk
                # before the local segment goes.
                "flush.messages": "1",
            },
        )
    return NewTopic(name=name)
