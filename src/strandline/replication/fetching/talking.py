"""ListOffsets as a follower sends it, which is rarely."""

from __future__ import annotations

from strandline.model import BrokerId
from strandline.replication.fetching.ranges import OffsetAnswer, OffsetQuestion
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.registry import Message


def offset_request(question: OffsetQuestion, node_id: BrokerId) -> ListOffsetsRequest:
    """The message. With its own id a follower is told of the whole log, not only of what is replicated."""
    topics: dict[str, ListOffsetsTopic] = {}
    for followed in question.followed:
        name, number = followed.partition.topic_partition
        topic = topics.setdefault(name, ListOffsetsTopic(name=name))
        topic.partitions.append(
            ListOffsetsPartition(
                partition_index=number, current_leader_epoch=followed.leader_epoch, timestamp=question.timestamp
            )
        )
    return ListOffsetsRequest(replica_id=node_id, topics=list(topics.values()))


def offset_answers(answer: Message) -> list[OffsetAnswer]:
    """The rows of the answer."""
    return [
        OffsetAnswer(topic.name, row.partition_index, row.error_code, row.offset)
        for topic in answer.topics
        for row in topic.partitions
    ]
