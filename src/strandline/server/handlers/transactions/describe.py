"""ListTransactions 0-2 and DescribeTransactions 0: what this broker coordinates, for operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strandline.coordinators.transactions import (
    TransactionCoordinator,
    TransactionFilter,
    TransactionMetadata,
    TransactionState,
)
from strandline.errors import StrandlineError
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.server.transactions.topics import by_topic
from strandline.tasks import map_in_turns
from strandline.wire.api import ApiKey
from strandline.wire.messages import describe_transactions, list_transactions

# Some milliseconds of work.
_ROWS_PER_TURN: Final = 2_000

_STATES = {state.label: state for state in TransactionState}


class DescribeTransactionsHandler:
    """Answers from the memory of the coordinator."""

    def __init__(self, transactions: TransactionCoordinator) -> None:
        self._transactions = transactions

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {ApiKey.LIST_TRANSACTIONS: self.list, ApiKey.DESCRIBE_TRANSACTIONS: self.describe}

    async def list(
        self, request: list_transactions.ListTransactionsRequest, context: RequestContext
    ) -> list_transactions.ListTransactionsResponse:
        """A state that does not exist is named in the answer, and matches nothing."""
        states = [_STATES[name] for name in request.state_filters if name in _STATES]
        unknown = [name for name in request.state_filters if name not in _STATES]
        wanted = TransactionFilter(
            states=states,
            producer_ids=request.producer_id_filters,
            longer_than_ms=request.duration_filter,
            id_pattern=request.transactional_id_pattern or "",
        )
        try:
            found = [] if unknown and not states else await self._transactions.transactions(wanted)
        except StrandlineError as error:
            return list_transactions.ListTransactionsResponse(error_code=outcome(error)[0])
        return list_transactions.ListTransactionsResponse(
            unknown_state_filters=unknown,
            transaction_states=await map_in_turns(_listed, found, size=_ROWS_PER_TURN),
        )

    async def describe(
        self, request: describe_transactions.DescribeTransactionsRequest, context: RequestContext
    ) -> describe_transactions.DescribeTransactionsResponse:
        return describe_transactions.DescribeTransactionsResponse(
            transaction_states=[self._describe(one) for one in request.transactional_ids]
        )

    def _describe(self, transactional_id: str) -> describe_transactions.TransactionState:
        try:
            found = self._transactions.describe(transactional_id)
        except StrandlineError as error:
            return describe_transactions.TransactionState(
                transactional_id=transactional_id, error_code=outcome(error)[0]
            )
        return describe_transactions.TransactionState(
            transactional_id=transactional_id,
            transaction_state=found.state.label,
            transaction_timeout_ms=found.timeout_ms,
            transaction_start_time_ms=found.start_ms,
            producer_id=found.producer_id,
            producer_epoch=found.producer_epoch,
            topics=[
                describe_transactions.TopicData(topic=topic, partitions=numbers)
                for topic, numbers in by_topic(found.partitions)
            ],
        )


def _listed(transaction: TransactionMetadata) -> list_transactions.TransactionState:
    return list_transactions.TransactionState(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        transaction_state=transaction.state.label,
    )
