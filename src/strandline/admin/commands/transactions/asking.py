"""What brokers say of transactions: coordinators of transactional ids, leaders of the producers of partitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from strandline.admin.commands.output import shown_progress
from strandline.client import Cluster, CommandFailed, Pair, check, partition_leaders
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from strandline.wire.messages.describe_transactions import DescribeTransactionsRequest
from strandline.wire.messages.list_transactions import ListTransactionsRequest

# In one request, so that a broker with very many partitions is not busy with one for long.
_PARTITIONS_AT_ONCE: Final = 500
# The first versions of ListTransactions with these filters.
_WITH_DURATION: Final = 1
_WITH_PATTERN: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionListing:
    """A transactional id that a coordinator knows."""

    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionDetails:
    """What the coordinator of a transactional id knows of it.

    `partitions` are those that wait for a marker; `started_ms` is None unless a transaction is open.
    """

    transactional_id: str
    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int | None
    partitions: tuple[Pair, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProducer:
    """A producer that a partition remembers; `start_offset` is where its open transaction begins, None without one."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_sequence: int
    last_timestamp: int
    start_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionFilters:
    """Which transactional ids are listed; all of them without any filter."""

    states: tuple[str, ...] = ()
    producer_ids: tuple[int, ...] = ()
    running_ms: int | None = None
    id_pattern: str | None = None


def list_transactions(cluster: Cluster, filters: TransactionFilters) -> list[TransactionListing]:
    """The transactional ids of all coordinators. Raises CommandFailed if one of them cannot tell."""
    found = []
    for node_id in cluster.brokers():
        client = cluster.broker(node_id)
        version = client.version_of(ApiKey.LIST_TRANSACTIONS)
        for option, value, first in (
            ("--running-for", filters.running_ms, _WITH_DURATION),
            ("--id-pattern", filters.id_pattern, _WITH_PATTERN),
        ):
            if value is not None and version < first:
                raise CommandFailed(f"{option} is not understood by broker {node_id}. Leave it out.")
        request = ListTransactionsRequest(
            state_filters=list(filters.states),
            producer_id_filters=list(filters.producer_ids),
            duration_filter=-1 if filters.running_ms is None else filters.running_ms,
            transactional_id_pattern=filters.id_pattern,
        )
        answer = cluster.ask_loaded(node_id, ApiKey.LIST_TRANSACTIONS, request)
        check(answer.error_code, None, f"Broker {node_id} cannot list its transactions")
        if answer.unknown_state_filters:
            raise CommandFailed(f"--state {answer.unknown_state_filters[0]} is no state that broker {node_id} knows.")
        found += [
            TransactionListing(
                transactional_id=row.transactional_id,
                coordinator=node_id,
                producer_id=row.producer_id,
                state=row.transaction_state,
            )
            for row in answer.transaction_states
        ]
    return sorted(found, key=lambda row: row.transactional_id)


# Of others, coordinators tell when the last transaction began.
_OPEN_STATES: Final = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort"})


def describe_transaction(cluster: Cluster, transactional_id: str) -> TransactionDetails | None:
    """A transactional id as its coordinator knows it; None if it does not. Raises CommandFailed."""
    node_id, client = cluster.transaction_coordinator(transactional_id)
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    row = client.request(ApiKey.DESCRIBE_TRANSACTIONS, request).transaction_states[0]
    if row.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return None
    check(row.error_code, None, f"Transactional id {transactional_id} cannot be described")
    return TransactionDetails(
        transactional_id=row.transactional_id,
        coordinator=node_id,
        state=row.transaction_state,
        producer_id=row.producer_id,
        producer_epoch=row.producer_epoch,
        timeout_ms=row.transaction_timeout_ms,
        started_ms=row.transaction_start_time_ms if row.transaction_state in _OPEN_STATES else None,
        partitions=tuple(sorted((topic.topic, number) for topic in row.topics for number in topic.partitions)),
    )


def leader_of(cluster: Cluster, topic: str, partition: int) -> int:
    """The broker that leads a partition. Raises CommandFailed if there is none."""
    leader = partition_leaders(cluster, [topic]).get((topic, partition))
    if leader is None:
        raise CommandFailed(f"Partition {partition} of topic {topic} does not exist.")
    if leader < 0:
        raise CommandFailed(f"Partition {partition} of topic {topic} has no leader at the moment.")
    return leader


def describe_producers(cluster: Cluster, brokers: Mapping[Pair, int]) -> list[PartitionProducer]:
    """The producers of each partition, as the broker given for it has them. Raises CommandFailed."""
    by_broker: dict[int, list[Pair]] = defaultdict(list)
    for pair, node_id in sorted(brokers.items()):
        by_broker[node_id].append(pair)
    parts = [
        (node_id, pairs[start : start + _PARTITIONS_AT_ONCE])
        for node_id, pairs in by_broker.items()
        for start in range(0, len(pairs), _PARTITIONS_AT_ONCE)
    ]
    producers: list[PartitionProducer] = []
    for node_id, pairs in shown_progress(parts, "Asking for producers"):
        request = DescribeProducersRequest(topics=_topics(pairs))
        answer = cluster.broker(node_id).request(ApiKey.DESCRIBE_PRODUCERS, request)
        producers += _producers(answer, node_id)
    return producers


def _topics(pairs: Sequence[Pair]) -> list[TopicRequest]:
    topics: dict[str, TopicRequest] = {}
    for topic, partition in pairs:
        topics.setdefault(topic, TopicRequest(name=topic, partition_indexes=[])).partition_indexes.append(partition)
    return list(topics.values())


def _producers(answer: DescribeProducersResponse, node_id: int) -> list[PartitionProducer]:
    producers = []
    for topic in answer.topics:
        for part in topic.partitions:
            what = f"Broker {node_id} cannot tell the producers of {topic.name}-{part.partition_index}"
            check(part.error_code, part.error_message, what)
            producers += [
                PartitionProducer(
                    topic=topic.name,
                    partition=part.partition_index,
                    producer_id=row.producer_id,
                    producer_epoch=row.producer_epoch,
                    coordinator_epoch=row.coordinator_epoch,
                    last_sequence=row.last_sequence,
                    last_timestamp=row.last_timestamp,
                    start_offset=row.current_txn_start_offset if row.current_txn_start_offset >= 0 else None,
                )
                for row in part.active_producers
            ]
    return producers
