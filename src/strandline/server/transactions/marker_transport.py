"""Markers on their way to the leaders of partitions: written here, or sent by WriteTxnMarkers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from strandline.coordinators.transactions import MarkerResults, MarkerWriter, TransactionMarker
from strandline.errors import LeaderNotAvailable, StrandlineError
from strandline.model import BrokerId, ProducerId, TopicPartition
from strandline.server.peers import BrokerPeers
from strandline.server.transactions.topics import by_topic
from strandline.wire.api import ApiKey
from strandline.wire.errors import error_of
from strandline.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_SECONDS: Final = 30.0


class ClusterMarkerTransport:
    """`MarkerTransport`: this broker's own partitions need no request."""

    def __init__(self, local: MarkerWriter, peers: BrokerPeers, *, node_id: BrokerId) -> None:
        self._local, self._peers, self._node_id = local, peers, node_id

    async def write(self, broker: BrokerId, markers: Sequence[TransactionMarker]) -> MarkerResults:
        if broker == self._node_id:
            return await self._local.write(markers)
        request = WriteTxnMarkersRequest(markers=[_message(marker) for marker in markers])
        answer = await self._peers.ask(broker, ApiKey.WRITE_TXN_MARKERS, request, within=_SECONDS)
        return _results(answer, markers)


def _message(marker: TransactionMarker) -> WritableTxnMarker:
    end = marker.end
    return WritableTxnMarker(
        producer_id=end.producer.producer_id,
        producer_epoch=end.producer.epoch,
        transaction_result=end.is_commit,
        coordinator_epoch=end.coordinator_epoch,
        transaction_version=end.transaction_version,
        transaction_start_ms=end.start_ms,
        topics=[
            WritableTxnMarkerTopic(name=topic, partition_indexes=found) for topic, found in by_topic(marker.partitions)
        ],
    )


def _results(answer: WriteTxnMarkersResponse, markers: Sequence[TransactionMarker]) -> MarkerResults:
    """By producer: no two transactions of one producer are ended at the same time."""
    codes: dict[tuple[ProducerId, TopicPartition], int] = {
        (result.producer_id, TopicPartition(topic.name, one.partition_index)): one.error_code
        for result in answer.markers
        for topic in result.topics
        for one in topic.partitions
    }
    return {
        (marker.transactional_id, one): _error(codes.get((marker.end.producer.producer_id, one)), one)
        for marker in markers
        for one in marker.partitions
    }


def _error(code: int | None, partition: TopicPartition) -> StrandlineError | None:
    if code is None:
        return LeaderNotAvailable(f"The answer to WriteTxnMarkers does not name {partition}.")
    return error_of(code) if code else None
