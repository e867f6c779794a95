"""How `__consumer_offsets` is created."""

from __future__ import annotations

from strandline.config.groups import GroupSettings
from strandline.metadata.requests import NewTopic
from strandline.model import GROUP_METADATA_TOPIC


def offsets_topic(settings: GroupSettings, alive_brokers: int) -> NewTopic:
    """The topic that keeps groups and offsets. With few brokers it has as many replicas as there are brokers."""
    return NewTopic(
        name=GROUP_METADATA_TOPIC,
        num_partitions=settings.offsets_topic_num_partitions,
        replication_factor=max(1, min(settings.offsets_topic_replication_factor, alive_brokers)),
        configs={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(settings.offsets_topic_segment_bytes),
        },
    )
