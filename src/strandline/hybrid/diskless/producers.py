"""The producers of a diskless partition, which the control plane knows and no broker does."""

from __future__ import annotations

from strandline.hybrid.diskless.refusals import storage_errors
from strandline.hybrid.diskless.tier import DisklessTier
from strandline.model import ProducerAndEpoch, TopicIdPartition
from strandline.reads import ActiveProducer
from strandline.records import ProducerEntry


async def active_producers(tier: DisklessTier, partition: TopicIdPartition) -> list[ActiveProducer]:
    """DescribeProducers."""
    with storage_errors(partition.topic_partition):
        producers = await tier.producers.producers(partition)
    return [
        ActiveProducer(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=producer.txn_first_offset,
        )
        for producer in producers
    ]


async def check_epoch(tier: DisklessTier, partition: TopicIdPartition, producer: ProducerAndEpoch) -> None:
    """Refuse a producer that has committed with a later epoch.

    Raises InvalidProducerEpoch, or a StrandlineError if the control plane does not answer.
    """
    with storage_errors(partition.topic_partition):
        found = await tier.producers.producers(partition, producer.producer_id)
    for known in found:
        ProducerEntry(known.producer_id, known.producer_epoch).check_epoch(producer.epoch)
