"""Makes a transaction hang, as an old client does whose write arrives after the end of its transaction."""

from __future__ import annotations

from typing import Any, Final

from strandline.client import Cluster
from strandline.records.builder import build_batch
from strandline.records.record import Record
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.moments import T0
from tests.waiting import wait_until

# The last version of Produce that does not add its partitions to the transaction.
_WITHOUT_ADDING: Final = 11


def leave_hanging(bootstrap: str, transactional_id: str, topic: str, *, partition: int) -> int:
    """Write a record of yesterday in a transaction that its coordinator never heard of; the producer id.

    The broker has to have transaction.partition.verification.enable=false.
    """
    with Cluster(bootstrap) as cluster:

        def begun() -> Any:
            _, coordinator = cluster.transaction_coordinator(transactional_id)
            request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=50_000)
            answer = coordinator.request(ApiKey.INIT_PRODUCER_ID, request)
            return answer if answer.error_code == ErrorCode.NONE else None

        producer = wait_until(begun, what="a producer id")
        records = build_batch(
            [Record(0, T0, None, b"stuck")],
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=0,
            is_transactional=True,
        )
        part = PartitionProduceData(index=partition, records=bytes(records))
        data = TopicProduceData(name=topic, partition_data=[part])
        request = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=30_000, topic_data=[data])
        rows = cluster.metadata([topic]).topics[0].partitions
        leader = next(row.leader_id for row in rows if row.partition_index == partition)
        answer = cluster.broker(leader).request(ApiKey.PRODUCE, request, version=_WITHOUT_ADDING)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        return int(producer.producer_id)
