"""WriteTxnMarkers 1-2: a coordinator, or an operator who aborts a hanging transaction, ends it in some partitions."""

from __future__ import annotations

from collections.abc import Mapping

from strandline.coordinators.runtime import TransactionEnd
from strandline.coordinators.transactions import MarkerWriter, TransactionMarker
from strandline.model import ProducerAndEpoch, TopicPartition
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.wire.api import ApiKey
from strandline.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


class MarkersHandler:
    """Writes markers to the partitions that this broker leads."""

    def __init__(self, writer: MarkerWriter) -> None:
        self._writer = writer

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {ApiKey.WRITE_TXN_MARKERS: self.write_markers}

    async def write_markers(self, request: WriteTxnMarkersRequest, context: RequestContext) -> WriteTxnMarkersResponse:
        results = await self._writer.write([_marker(str(at), one) for at, one in enumerate(request.markers)])
        return WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                WritableTxnMarkerPartitionResult(
                                    partition_index=number,
                                    error_code=outcome(results[str(at), TopicPartition(topic.name, number)])[0],
                                )
                                for number in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for at, marker in enumerate(request.markers)
            ]
        )


def _marker(name: str, message: WritableTxnMarker) -> TransactionMarker:
    """Its place in the request takes the place of a transactional id, which is not sent."""
    return TransactionMarker(
        transactional_id=name,
        end=TransactionEnd(
            producer=ProducerAndEpoch(message.producer_id, message.producer_epoch),
            is_commit=message.transaction_result,
            coordinator_epoch=message.coordinator_epoch,
            transaction_version=message.transaction_version,
            start_ms=message.transaction_start_ms,
        ),
        partitions=tuple(
            TopicPartition(topic.name, number) for topic in message.topics for number in topic.partition_indexes
        ),
    )
