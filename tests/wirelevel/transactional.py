"""A transactional producer of single requests, of both kinds, and what a broker says about its transactions.

No Python client speaks `transaction.version` 2: its requests are made here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from strandline.records import iter_headers, read_records
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from strandline.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from strandline.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from strandline.wire.messages.describe_transactions import DescribeTransactionsRequest
from strandline.wire.messages.end_txn import EndTxnRequest
from strandline.wire.messages.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.list_transactions import ListTransactionsRequest
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.waiting import wait_until
from tests.wirelevel.asking import ask_for_offset, ask_to_fetch
from tests.wirelevel.raw import batch

READ_COMMITTED = 1
LATEST = -1
TRANSACTION_COORDINATOR, GROUP_COORDINATOR = 1, 0

# The newest requests of clients that add partitions before they write, and the first of those that need not.
OLD = {"produce": 11, "end": 4, "offsets": 4}
NEW = {"produce": 12, "end": 5, "offsets": 5}


@dataclass(slots=True)
class RawTransactionalProducer:
    """What one producer knows. Every call sends one request and returns its error code."""

    client: Client
    transactional_id: str
    is_new: bool = False
    """Of `transaction.version` 2."""
    producer_id: int = -1
    epoch: int = -1
    timeout_ms: int = 60_000
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def versions(self) -> Mapping[str, int]:
        return NEW if self.is_new else OLD

    def find(self) -> None:
        """Make sure that there is a coordinator."""
        wait_for_coordinator(self.client, self.transactional_id)

    def init(self, *, goes_on: bool = False, version: int = 5) -> ErrorCode:
        """InitProducerId; with `goes_on`, as the producer that this one is."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.timeout_ms,
            producer_id=self.producer_id if goes_on else -1,
            producer_epoch=self.epoch if goes_on else -1,
        )
        answer = self.client.request(ApiKey.INIT_PRODUCER_ID, request, version=version)
        if answer.error_code == ErrorCode.NONE:
            self._be(answer.producer_id, answer.producer_epoch)
        return ErrorCode(answer.error_code)

    def initialised(self, *, goes_on: bool = False) -> RawTransactionalProducer:
        """With a coordinator and an epoch, however often that has to be asked for."""
        self.find()
        wait_until(lambda: self._may_go_on(self.init(goes_on=goes_on)), what=f"an epoch for {self.transactional_id}")
        return self

    @staticmethod
    def _may_go_on(code: ErrorCode) -> bool:
        passing = (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        assert code in (ErrorCode.NONE, *passing), code
        return code is ErrorCode.NONE

    def _be(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch

    def add(self, *partitions: tuple[str, int], version: int = 3) -> list[ErrorCode]:
        """AddPartitionsToTxn as a client sends it."""
        topics = topics_of(partitions)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=topics,
        )
        answer = self.client.request(ApiKey.ADD_PARTITIONS_TO_TXN, request, version=version)
        return codes_of(answer.results_by_topic_v3_and_below, partitions)

    def verify(self, *partitions: tuple[str, int], version: int = 5, verify_only: bool = True) -> list[ErrorCode]:
        """AddPartitionsToTxn as a broker sends it."""
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            verify_only=verify_only,
            topics=topics_of(partitions),
        )
        request = AddPartitionsToTxnRequest(transactions=[transaction])
        answer = self.client.request(ApiKey.ADD_PARTITIONS_TO_TXN, request, version=version)
        assert answer.error_code == ErrorCode.NONE
        return codes_of(answer.results_by_transaction[0].topic_results, partitions)

    def write(
        self,
        topic: str,
        *values: bytes,
        partition: int = 0,
        version: int | None = None,
        transactional_id: str | None = "",
        sequence: int | None = None,
    ) -> ErrorCode:
        """Produce one batch. Sequences go on where it was accepted."""
        place = (topic, partition)
        first = self.sequences.get(place, 0) if sequence is None else sequence
        records = batch(
            *values,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=first,
            is_transactional=True,
        )
        version = self.versions["produce"] if version is None else version
        request = ProduceRequest(
            transactional_id=self.transactional_id if transactional_id == "" else transactional_id,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[
                TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=records)])
            ],
        )
        if version >= 13:
            request.topic_data[0].topic_id = topic_id(self.client, topic)
        answer = self.client.request(ApiKey.PRODUCE, request, version=version)
        code = ErrorCode(answer.responses[0].partition_responses[0].error_code)
        if code is ErrorCode.NONE:
            self.sequences[place] = first + len(values)
        return code

    def add_group(self, group: str, *, version: int = 4) -> ErrorCode:
        """AddOffsetsToTxn."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        return ErrorCode(self.client.request(ApiKey.ADD_OFFSETS_TO_TXN, request, version=version).error_code)

    def commit_offset(
        self,
        group: str,
        topic: str,
        offset: int,
        *,
        partition: int = 0,
        version: int | None = None,
        generation: int = -1,
        member: str = "",
    ) -> ErrorCode:
        """TxnOffsetCommit."""
        one = TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            generation_id=generation,
            member_id=member,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[one])],
        )
        version = self.versions["offsets"] if version is None else version
        answer = self.client.request(ApiKey.TXN_OFFSET_COMMIT, request, version=version)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    def end(self, *, commit: bool, version: int | None = None, keeps_epoch: bool = False) -> ErrorCode:
        """EndTxn. `keeps_epoch`: the answer is lost, and with it the next epoch."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        version = self.versions["end"] if version is None else version
        answer = self.client.request(ApiKey.END_TXN, request, version=version)
        if answer.error_code == ErrorCode.NONE and version >= 5 and not keeps_epoch:
            self._be(answer.producer_id, answer.producer_epoch)
        return ErrorCode(answer.error_code)

    def state(self) -> str:
        return transaction_state(self.client, self.transactional_id)


def topics_of(partitions: Iterable[tuple[str, int]]) -> list[AddPartitionsToTxnTopic]:
    found: dict[str, list[int]] = {}
    for topic, number in partitions:
        found.setdefault(topic, []).append(number)
    return [AddPartitionsToTxnTopic(name=topic, partitions=numbers) for topic, numbers in found.items()]


def codes_of(
    results: Iterable[AddPartitionsToTxnTopicResult], partitions: Iterable[tuple[str, int]]
) -> list[ErrorCode]:
    found = {
        (topic.name, one.partition_index): ErrorCode(one.partition_error_code)
        for topic in results
        for one in topic.results_by_partition
    }
    return [found[place] for place in partitions]


def topic_id(client: Client, topic: str) -> UUID:
    answer = client.request(ApiKey.METADATA, MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), version=12)
    found: UUID = answer.topics[0].topic_id
    return found


def wait_for_coordinator(client: Client, key: str, *, kind: int = TRANSACTION_COORDINATOR) -> int:
    """The node that coordinates the id; its internal topic is created where it has to be."""

    def found() -> tuple[int] | None:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        (answer,) = client.request(ApiKey.FIND_COORDINATOR, request).coordinators
        return (answer.node_id,) if answer.error_code == ErrorCode.NONE else None

    (node_id,) = wait_until(found, within=30, what=f"a coordinator of {key}")
    return node_id


def coordinator_error(client: Client, key: str, kind: int) -> ErrorCode:
    """What this broker answers to a question about a transactional id, or a group, that nobody has used."""
    if kind == TRANSACTION_COORDINATOR:
        described = DescribeTransactionsRequest(transactional_ids=[key])
        (found,) = client.request(ApiKey.DESCRIBE_TRANSACTIONS, described).transaction_states
    else:
        fetched = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=key, topics=None)])
        (found,) = client.request(ApiKey.OFFSET_FETCH, fetched, version=9).groups
    return ErrorCode(found.error_code)


def transaction_state(client: Client, transactional_id: str) -> str:
    """The name of its state, or of the error."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    (found,) = client.request(ApiKey.DESCRIBE_TRANSACTIONS, request).transaction_states
    return found.transaction_state if found.error_code == ErrorCode.NONE else ErrorCode(found.error_code).name


def unfinished(client: Client) -> list[tuple[str, str]]:
    """Transactions that are open, or whose markers are not all written, on this broker."""
    states = ["Ongoing", "PrepareCommit", "PrepareAbort"]
    answer = client.request(ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest(state_filters=states))
    assert answer.error_code in (ErrorCode.NONE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), answer.error_code
    if answer.error_code != ErrorCode.NONE:
        return [("", ErrorCode(answer.error_code).name)]
    return [(one.transactional_id, one.transaction_state) for one in answer.transaction_states]


def open_producers(client: Client, topic: str, partition: int = 0) -> list[int]:
    """The producers with an open transaction in a partition."""
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[partition])])
    found = client.request(ApiKey.DESCRIBE_PRODUCERS, request).topics[0].partitions[0]
    assert found.error_code == ErrorCode.NONE, found.error_message
    return [one.producer_id for one in found.active_producers if one.current_txn_start_offset >= 0]


def last_stable_offset(client: Client, topic: str, partition: int = 0) -> int:
    return ask_for_offset(client, topic, LATEST, partition=partition, isolation=READ_COMMITTED).offset


def end_of(client: Client, topic: str, partition: int = 0) -> int:
    return ask_for_offset(client, topic, LATEST, partition=partition).offset


def read_values(client: Client, topic: str, partition: int = 0, *, isolation: int = READ_COMMITTED) -> list[bytes]:
    """All records of a partition that a consumer gets to see, as it works them out from what is fetched."""
    values: list[bytes] = []
    offset = 0
    while True:
        row = ask_to_fetch(client, topic, offset, partition=partition, isolation=isolation)
        assert row.error_code == ErrorCode.NONE, row.error_code
        data = row.records or b""
        aborted = sorted(((one.first_offset, one.producer_id) for one in row.aborted_transactions or ()), reverse=True)
        skipped: set[int] = set()
        end = offset
        for position, header in iter_headers(data):
            while aborted and aborted[-1][0] <= header.last_offset:
                skipped.add(aborted.pop()[1])
            end = header.last_offset + 1
            if header.is_control:
                skipped.discard(header.producer_id)
            elif header.producer_id not in skipped or not header.is_transactional:
                records = read_records(data[position : position + header.size])
                values += [record.value or b"" for record in records if record.offset >= offset]
        visible = row.last_stable_offset if isolation == READ_COMMITTED else row.high_watermark
        if end >= visible:
            return values
        offset = end  # an answer without records: remote storage takes longer than the request waits


def fetch_offset(
    client: Client, group: str, topic: str, partition: int = 0, *, stable: bool = False
) -> tuple[ErrorCode, int]:
    """OffsetFetch: error and committed offset. Waits while the coordinator of a broker that has just started loads."""
    wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=[wanted])], require_stable=stable
    )

    def answered() -> tuple[ErrorCode, int] | None:
        found = client.request(ApiKey.OFFSET_FETCH, request, version=9).groups[0]
        if found.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return None
        assert found.error_code == ErrorCode.NONE, found.error_code
        one = found.topics[0].partitions[0]
        return ErrorCode(one.error_code), one.committed_offset

    return wait_until(answered, what=f"the offsets of {group}")
