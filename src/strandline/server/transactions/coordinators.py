"""The coordinator of a transactional id, wherever it is: on this broker, or asked by AddPartitionsToTxn 4 and later."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from strandline.coordinators.transactions import Admission, AdmissionResults, Participant, TransactionCoordinator
from strandline.coordinators.transactions.metadata import EPOCH_BUMP_VERSION
from strandline.errors import CoordinatorNotAvailable, LeaderNotAvailable, StrandlineError
from strandline.metadata import Images
from strandline.model import TRANSACTION_STATE_TOPIC, BrokerId, TopicPartition
from strandline.server.peers import BrokerPeers
from strandline.server.transactions.topics import by_topic
from strandline.wire.api import ApiKey
from strandline.wire.errors import error_of
from strandline.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

_SECONDS: Final = 10.0


class CoordinatorsOfCluster:
    """`TransactionCoordinators` by the leaders of `__transaction_state`."""

    def __init__(self, local: TransactionCoordinator, peers: BrokerPeers, images: Images, *, node_id: BrokerId) -> None:
        self._local, self._peers, self._images, self._node_id = local, peers, images, node_id

    async def admit(self, who: Participant, partitions: Collection[TopicPartition]) -> AdmissionResults:
        try:
            leader = self._leader_for(who.transactional_id)
            if leader == self._node_id:
                return await self._admit_here(who, partitions)
            return await self._ask(leader, who, partitions)
        except LeaderNotAvailable as error:
            return dict.fromkeys(partitions, Admission(CoordinatorNotAvailable(str(error))))
        except StrandlineError as error:
            return dict.fromkeys(partitions, Admission(error))

    def _leader_for(self, transactional_id: str) -> BrokerId:
        partition = self._local.partition_for(transactional_id)
        found = self._images.image.partition(TRANSACTION_STATE_TOPIC, partition)
        if found is None or not found.has_leader:
            raise CoordinatorNotAvailable(f"The partition of transactional id {transactional_id!r} has no leader.")
        return found.leader

    async def _admit_here(self, who: Participant, partitions: Collection[TopicPartition]) -> AdmissionResults:
        if not who.adds:
            errors, start_ms = await self._local.verify_partitions(who.transactional_id, who.producer, partitions)
            return {one: Admission(errors[one], start_ms) for one in partitions}
        await self._local.add_partitions(
            who.transactional_id, who.producer, partitions, client_version=EPOCH_BUMP_VERSION
        )
        return dict.fromkeys(partitions, Admission())

    async def _ask(
        self, leader: BrokerId, who: Participant, partitions: Collection[TopicPartition]
    ) -> AdmissionResults:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=who.transactional_id,
            producer_id=who.producer.producer_id,
            producer_epoch=who.producer.epoch,
            verify_only=not who.adds,
            topics=[AddPartitionsToTxnTopic(name=topic, partitions=found) for topic, found in by_topic(partitions)],
        )
        answer = await self._peers.ask(
            leader,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            AddPartitionsToTxnRequest(transactions=[transaction]),
            within=_SECONDS,
        )
        return _results(answer, partitions)


def _results(answer: AddPartitionsToTxnResponse, partitions: Collection[TopicPartition]) -> AdmissionResults:
    if answer.error_code:
        raise error_of(answer.error_code)
    found = {
        TopicPartition(topic.name, one.partition_index): Admission(
            error_of(one.partition_error_code) if one.partition_error_code else None, result.transaction_start_ms
        )
        for result in answer.results_by_transaction
        for topic in result.topic_results
        for one in topic.results_by_partition
    }
    if not found.keys() >= set(partitions):
        raise CoordinatorNotAvailable("The coordinator's answer does not name every partition.")
    return {one: found[one] for one in partitions}
