"""AddPartitionsToTxn 0-5, AddOffsetsToTxn 0-4 and EndTxn 0-5: a producer and the coordinator of its transaction.

AddPartitionsToTxn from version 4 on is for brokers, which ask about several transactions at a time: whether a
partition is part of one (`verify_only`), or to add it on behalf of a producer that has just written to it. EndTxn from
version 5 on gives the producer a new epoch (`transaction.version` 2).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from strandline.coordinators.groups import GroupCoordinator
from strandline.coordinators.transactions import TransactionCoordinator, Verified
from strandline.coordinators.transactions.metadata import EPOCH_BUMP_VERSION
from strandline.errors import (
    InvalidProducerEpoch,
    OperationNotAttempted,
    ProducerFenced,
    StrandlineError,
)
from strandline.metadata import Images
from strandline.model import GROUP_METADATA_TOPIC, NO_TIMESTAMP, ProducerAndEpoch, TopicPartition
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import each, outcome, unknown_topic
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from strandline.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from strandline.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

_SEVERAL_TRANSACTIONS: Final = 4
_KNOWS_FENCED: Final = 2
_END_RAISES_EPOCH: Final = 5
_OLD_CLIENT: Final = 0


class TransactionsHandler:
    """Serves producers with a transactional id, and the brokers to which they write."""

    def __init__(self, transactions: TransactionCoordinator, groups: GroupCoordinator, images: Images) -> None:
        self._transactions, self._groups, self._images = transactions, groups, images

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {
            ApiKey.ADD_PARTITIONS_TO_TXN: self.add_partitions,
            ApiKey.ADD_OFFSETS_TO_TXN: self.add_offsets,
            ApiKey.END_TXN: self.end,
        }

    async def add_partitions(
        self, request: AddPartitionsToTxnRequest, context: RequestContext
    ) -> AddPartitionsToTxnResponse:
        version = context.api_version
        if version < _SEVERAL_TRANSACTIONS:
            only = AddPartitionsToTxnTransaction(
                transactional_id=request.v3_and_below_transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                topics=request.v3_and_below_topics,
            )
            result = await self._add(only, version)
            return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)
        results = await each(self._add(one, version) for one in request.transactions)
        return AddPartitionsToTxnResponse(results_by_transaction=results)

    async def _add(self, transaction: AddPartitionsToTxnTransaction, version: int) -> AddPartitionsToTxnResult:
        asked = [TopicPartition(topic.name, number) for topic in transaction.topics for number in topic.partitions]
        errors, start_ms = self._missing(asked) or await self._decide(transaction, asked, version)
        return AddPartitionsToTxnResult(
            transactional_id=transaction.transactional_id,
            topic_results=[_topic_result(topic, errors, version) for topic in transaction.topics],
            transaction_start_ms=start_ms,
        )

    def _missing(self, partitions: Collection[TopicPartition]) -> Verified | None:
        """All errors if a partition does not exist: a transaction gets all partitions of a request or none."""
        image = self._images.image
        missing = {one: unknown_topic(one.topic) for one in partitions if image.partition(*one) is None}
        if not missing:
            return None
        others = OperationNotAttempted("Another partition of the request does not exist, so none was added.")
        return Verified({one: missing.get(one, others) for one in partitions}, NO_TIMESTAMP)

    async def _decide(
        self, transaction: AddPartitionsToTxnTransaction, partitions: Sequence[TopicPartition], version: int
    ) -> Verified:
        transactional_id = transaction.transactional_id
        producer = ProducerAndEpoch(transaction.producer_id, transaction.producer_epoch)
        try:
            if transaction.verify_only:
                return await self._transactions.verify_partitions(transactional_id, producer, partitions)
            client_version = EPOCH_BUMP_VERSION if version >= _SEVERAL_TRANSACTIONS else _OLD_CLIENT
            await self._transactions.add_partitions(
                transactional_id, producer, partitions, client_version=client_version
            )
        except StrandlineError as error:
            return Verified(dict.fromkeys(partitions, error), NO_TIMESTAMP)
        return Verified({}, NO_TIMESTAMP)

    async def add_offsets(self, request: AddOffsetsToTxnRequest, context: RequestContext) -> AddOffsetsToTxnResponse:
        """The partition of `__consumer_offsets` that has the group's offsets becomes part of the transaction."""
        partition = TopicPartition(GROUP_METADATA_TOPIC, self._groups.partition_for(request.group_id))
        try:
            await self._transactions.add_partitions(
                request.transactional_id,
                ProducerAndEpoch(request.producer_id, request.producer_epoch),
                [partition],
                client_version=_OLD_CLIENT,
            )
        except StrandlineError as error:
            return AddOffsetsToTxnResponse(error_code=_code(error, context.api_version))
        return AddOffsetsToTxnResponse()

    async def end(self, request: EndTxnRequest, context: RequestContext) -> EndTxnResponse:
        """Answers when it is decided for good that the transaction is committed, or aborted."""
        version = context.api_version
        try:
            next_producer = await self._transactions.end(
                request.transactional_id,
                ProducerAndEpoch(request.producer_id, request.producer_epoch),
                is_commit=request.committed,
                client_version=EPOCH_BUMP_VERSION if version >= _END_RAISES_EPOCH else _OLD_CLIENT,
            )
        except StrandlineError as error:
            return EndTxnResponse(error_code=_code(error, version))
        return EndTxnResponse(producer_id=next_producer.producer_id, producer_epoch=next_producer.epoch)


def _topic_result(
    topic: AddPartitionsToTxnTopic, errors: Mapping[TopicPartition, StrandlineError | None], version: int
) -> AddPartitionsToTxnTopicResult:
    found = ((number, errors.get(TopicPartition(topic.name, number))) for number in topic.partitions)
    return AddPartitionsToTxnTopicResult(
        name=topic.name,
        results_by_partition=[
            AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=_code(error, version))
            for number, error in found
        ],
    )


def _code(error: StrandlineError | None, version: int) -> ErrorCode:
    """Up to version 1, clients do not know PRODUCER_FENCED."""
    if isinstance(error, ProducerFenced) and version < _KNOWS_FENCED:
        error = InvalidProducerEpoch(str(error))
    return outcome(error)[0]
