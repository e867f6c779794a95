"""InitProducerId (versions 0 to 5) and DescribeProducers (version 0).

InitProducerId gives idempotent producers an id that no other producer has, with epoch 0, from a block that the
controller allocated to this broker. With a transactional id, its coordinator answers: the producer gets the next epoch,
and the previous producer with that transactional id is fenced. An empty transactional id, or a producer id without its
epoch, gets INVALID_REQUEST.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

from strandline.coordinators.transactions import TransactionCoordinator
from strandline.errors import (
    CoordinatorLoadInProgress,
    InvalidProducerEpoch,
    InvalidRequest,
    ProducerFenced,
    StrandlineError,
)
from strandline.hybrid.partitions import Partitions
from strandline.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, BrokerId, ProducerAndEpoch, ProducerId
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import each, outcome
from strandline.wire.api import ApiKey
from strandline.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from strandline.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_KNOWS_FENCED: Final = 4


class ProducerIdBlocks(Protocol):
    """The source of blocks of producer ids: the controller."""

    async def allocate_producer_ids(self, node_id: int, broker_epoch: int) -> range:
        """A block that no other broker gets. Raises StrandlineError."""


class ProducerIds:
    """Gives out producer ids, and asks the controller for another block when one is used up."""

    def __init__(self, node_id: BrokerId, broker_epoch: Callable[[], int], blocks: ProducerIdBlocks) -> None:
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._blocks = blocks
        self._block: Iterator[ProducerId] = iter(())
        self._refill = asyncio.Lock()

    async def next(self) -> ProducerId:
        """An id that was never given out before. Raises CoordinatorLoadInProgress if the controller gives no block.

        As in Kafka: upon this error every producer asks again, whatever it has asked for.
        """
        found = next(self._block, None)
        if found is not None:
            return found
        async with self._refill:
            while (found := next(self._block, None)) is None:
                try:
                    block = await self._blocks.allocate_producer_ids(self._node_id, self._broker_epoch())
                except StrandlineError as error:
                    raise CoordinatorLoadInProgress(f"The controller gives no producer ids now: {error}") from error
                self._block = iter(block)
            return found


class ProducersHandler:
    """Serves producers that write each batch once."""

    def __init__(self, ids: ProducerIds, partitions: Partitions, transactions: TransactionCoordinator) -> None:
        self._ids, self._partitions, self._transactions = ids, partitions, transactions

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {
            ApiKey.INIT_PRODUCER_ID: self.init_producer_id,
            ApiKey.DESCRIBE_PRODUCERS: self.describe_producers,
        }

    async def init_producer_id(self, request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
        """Without a transactional id a new one, even for a producer that has one: nothing ties it to the old one."""
        try:
            _check(request)
            if request.transactional_id is None:
                producer = ProducerAndEpoch(await self._ids.next(), 0)
            else:
                producer = await self._transactions.init_producer_id(
                    request.transactional_id, timeout_ms=request.transaction_timeout_ms, expected=_expected(request)
                )
        except ProducerFenced as error:
            knows_fenced = context.api_version >= _KNOWS_FENCED
            code, _ = outcome(error if knows_fenced else InvalidProducerEpoch(str(error)))
            return InitProducerIdResponse(error_code=code, producer_epoch=NO_PRODUCER_EPOCH)
        except StrandlineError as error:
            code, _ = outcome(error)
            return InitProducerIdResponse(error_code=code, producer_epoch=NO_PRODUCER_EPOCH)
        return InitProducerIdResponse(producer_id=producer.producer_id, producer_epoch=producer.epoch)

    async def describe_producers(
        self, request: DescribeProducersRequest, context: RequestContext
    ) -> DescribeProducersResponse:
        """The producers that wrote to these partitions lately, as the leader remembers them."""
        return DescribeProducersResponse(
            topics=[
                TopicResponse(
                    name=topic.name,
                    partitions=await each(self._describe(topic.name, index) for index in topic.partition_indexes),
                )
                for topic in request.topics
            ]
        )

    async def _describe(self, topic: str, index: int) -> PartitionResponse:
        try:
            producers = await self._partitions.find(topic, index).newest.active_producers()
        except StrandlineError as error:
            code, message = outcome(error)
            return PartitionResponse(partition_index=index, error_code=code, error_message=message)
        return PartitionResponse(
            partition_index=index,
            active_producers=[
                ProducerState(
                    producer_id=producer.producer_id,
                    producer_epoch=producer.producer_epoch,
                    last_sequence=producer.last_sequence,
                    last_timestamp=producer.last_timestamp,
                    coordinator_epoch=producer.coordinator_epoch,
                    current_txn_start_offset=producer.current_txn_start_offset,
                )
                for producer in producers
            ],
        )


def _expected(request: InitProducerIdRequest) -> ProducerAndEpoch | None:
    """Who the producer is, if it goes on after an error (KIP-360)."""
    if request.producer_id == NO_PRODUCER_ID:
        return None
    return ProducerAndEpoch(request.producer_id, request.producer_epoch)


def _check(request: InitProducerIdRequest) -> None:
    if request.transactional_id == "":
        raise InvalidRequest("A transactional id may not be empty.")
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        raise InvalidRequest("A producer id and its epoch come together.")
