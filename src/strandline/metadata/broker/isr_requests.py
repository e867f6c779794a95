"""Translates changes of in-sync sets, and what a controller says to them, into AlterPartition messages and back."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence

from strandline.errors import InvalidRequest, RequestTimedOut, StrandlineError, UnknownTopicId
from strandline.metadata.image import LeaderRecoveryState, MetadataImage, PartitionImage
from strandline.metadata.requests import IsrChange, IsrMember
from strandline.wire.errors import error_of
from strandline.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
    ResponseTopicData,
)


def isr_request(node_id: int, broker_epoch: int, changes: Sequence[IsrChange]) -> AlterPartitionRequest:
    """The message that asks for these changes, for every version that is served."""
    topics: dict[uuid.UUID, RequestTopicData] = {}
    for change in changes:
        topic = topics.setdefault(change.topic_id, RequestTopicData(topic_id=change.topic_id))
        topic.partitions.append(
            RequestPartitionData(
                partition_index=change.partition,
                leader_epoch=change.leader_epoch,
                new_isr=[member.node_id for member in change.isr],
                new_isr_with_epochs=[BrokerState(broker_id=node, broker_epoch=epoch) for node, epoch in change.isr],
                leader_recovery_state=change.leader_recovery_state,
                partition_epoch=change.partition_epoch,
            )
        )
    return AlterPartitionRequest(broker_id=node_id, broker_epoch=broker_epoch, topics=list(topics.values()))


def isr_changes_of(request: AlterPartitionRequest) -> list[IsrChange]:
    """The changes in this message, in its order. Raises InvalidRequest if it names an unknown recovery state."""
    return [_change_of(topic.topic_id, one) for topic in request.topics for one in topic.partitions]


def _change_of(topic_id: uuid.UUID, one: RequestPartitionData) -> IsrChange:
    with_epochs = tuple(IsrMember(member.broker_id, member.broker_epoch) for member in one.new_isr_with_epochs)
    return IsrChange(
        topic_id=topic_id,
        partition=one.partition_index,
        leader_epoch=one.leader_epoch,
        partition_epoch=one.partition_epoch,
        isr=with_epochs or tuple(IsrMember(node) for node in one.new_isr),
        leader_recovery_state=_recovery_state(one.leader_recovery_state),
    )


def _recovery_state(number: int) -> LeaderRecoveryState:
    try:
        return LeaderRecoveryState(number)
    except ValueError as error:
        raise InvalidRequest(f"There is no leader recovery state {number}.") from error


def isr_answers(
    answer: AlterPartitionResponse, changes: Sequence[IsrChange], image: MetadataImage
) -> list[PartitionImage | StrandlineError]:
    """What the controller says to each change. The message has no replicas: those are as in the newest image."""
    found = dict(_by_partition(answer))
    return [_answer_to(change, found, image) for change in changes]


def _by_partition(answer: AlterPartitionResponse) -> Iterator[tuple[tuple[uuid.UUID, int], ResponsePartitionData]]:
    for topic in answer.topics:
        for one in topic.partitions:
            yield (topic.topic_id, one.partition_index), one


def _answer_to(
    change: IsrChange, found: Mapping[tuple[uuid.UUID, int], ResponsePartitionData], image: MetadataImage
) -> PartitionImage | StrandlineError:
    one = found.get((change.topic_id, change.partition))
    if one is None:
        return RequestTimedOut("The controller has not answered for this partition. Ask again.")
    if one.error_code:
        return error_of(one.error_code)
    topic = image.topics_by_id.get(change.topic_id)
    known = None if topic is None else topic.partition(change.partition)
    if known is None:
        return UnknownTopicId("The topic was deleted after its in-sync set was changed.")
    return known._replace(
        isr=tuple(one.isr),
        leader=one.leader_id,
        leader_epoch=one.leader_epoch,
        partition_epoch=one.partition_epoch,
        leader_recovery_state=_recovery_state(one.leader_recovery_state),
    )


def isr_response(
    changes: Sequence[IsrChange],
    answers: Sequence[PartitionImage | StrandlineError],
    code_of: Callable[[StrandlineError], int],
) -> AlterPartitionResponse:
    """The message with these answers to the changes."""
    topics: dict[uuid.UUID, ResponseTopicData] = {}
    for change, answer in zip(changes, answers, strict=True):
        topic = topics.setdefault(change.topic_id, ResponseTopicData(topic_id=change.topic_id))
        if isinstance(answer, StrandlineError):
            refused = ResponsePartitionData(partition_index=change.partition, error_code=code_of(answer))
            topic.partitions.append(refused)
            continue
        topic.partitions.append(
            ResponsePartitionData(
                partition_index=change.partition,
                leader_id=answer.leader,
                leader_epoch=answer.leader_epoch,
                isr=list(answer.isr),
                leader_recovery_state=answer.leader_recovery_state,
                partition_epoch=answer.partition_epoch,
            )
        )
    return AlterPartitionResponse(topics=list(topics.values()))
