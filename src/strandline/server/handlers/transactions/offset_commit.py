"""TxnOffsetCommit 0-5: offsets that count when the transaction of a producer is committed.

Up to version 4 the producer has added the group by AddOffsetsToTxn, and the transaction's coordinator confirms that;
from version 5 on (`transaction.version` 2) this request adds it. It is asked about the first offsets: those that follow
are part of the transaction that these have opened in the group's partition of `__consumer_offsets`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from strandline.coordinators.groups import CommitRequest, GroupCoordinator, PartitionCommit
from strandline.coordinators.transactions import Admission, Participant, TransactionAdmissions, producer_error
from strandline.errors import StrandlineError
from strandline.metadata import Images
from strandline.model import GROUP_METADATA_TOPIC, ProducerAndEpoch, TopicPartition
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import CurrentSettings, outcome, unknown_topic
from strandline.wire.api import ApiKey
from strandline.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_ADDS_GROUP: Final = 5
_KNOWS_ABORTABLE: Final = 4


class TransactionalOffsetsHandler:
    """Stores offsets as part of transactions."""

    def __init__(
        self,
        groups: GroupCoordinator,
        admissions: TransactionAdmissions,
        images: Images,
        settings: CurrentSettings,
    ) -> None:
        self._groups, self._admissions, self._images, self._settings = groups, admissions, images, settings

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {ApiKey.TXN_OFFSET_COMMIT: self.txn_offset_commit}

    async def txn_offset_commit(
        self, request: TxnOffsetCommitRequest, context: RequestContext
    ) -> TxnOffsetCommitResponse:
        """Answers when the offsets are written; whether they count, the end of the transaction decides."""
        image = self._images.image
        errors: dict[TopicPartition, StrandlineError | None] = {}
        commits: list[PartitionCommit] = []
        for topic in request.topics:
            known = image.topics.get(topic.name)
            for partition in topic.partitions:
                if known is None or known.partition(partition.partition_index) is None:
                    errors[TopicPartition(topic.name, partition.partition_index)] = unknown_topic(topic.name)
                    continue
                commits.append(
                    PartitionCommit(
                        topic=topic.name,
                        partition=partition.partition_index,
                        offset=partition.committed_offset,
                        leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.committed_metadata or "",
                        topic_id=known.topic_id,
                    )
                )
        if commits:
            results = await self._commit(request, context.api_version, commits)
            errors |= {
                TopicPartition(one.topic, one.partition): result for one, result in zip(commits, results, strict=True)
            }
        return TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        TxnOffsetCommitResponsePartition(
                            partition_index=one.partition_index,
                            error_code=outcome(errors[TopicPartition(topic.name, one.partition_index)])[0],
                        )
                        for one in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    async def _commit(
        self, request: TxnOffsetCommitRequest, version: int, commits: list[PartitionCommit]
    ) -> list[StrandlineError | None]:
        producer = ProducerAndEpoch(request.producer_id, request.producer_epoch)
        who = Participant(request.transactional_id, producer, adds=version >= _ADDS_GROUP)
        partition = self._groups.partition_for(request.group_id)
        commit = CommitRequest(
            group_id=request.group_id,
            member_id=request.member_id,
            generation_id=request.generation_id,
            group_instance_id=request.group_instance_id,
            producer=producer,
            offsets=tuple(commits),
        )

        def admit(allowed: Callable[[StrandlineError | None], None]) -> None:
            def answered(answer: Admission) -> None:
                error, knows = answer.error, version >= _KNOWS_ABORTABLE
                allowed(None if error is None else producer_error(error, who, knows_abortable=knows))

            self._admissions.admit(who, TopicPartition(GROUP_METADATA_TOPIC, partition), answered)

        try:
            # First: clients that ask the wrong broker learn that, and those whose epoch is over.
            is_open = self._groups.has_transaction(request.group_id, producer)
            asks = who.adds or self._settings().transactions.transaction_partition_verification_enable
            if asks and not is_open:
                return await self._groups.commit_when(admit, commit)
            return await self._groups.commit(commit)
        except StrandlineError as error:
            return [error] * len(commits)
