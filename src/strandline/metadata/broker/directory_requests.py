"""Translates log directories of replicas, and what a controller says to them, into AssignReplicasToDirs messages."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

from strandline.errors import RequestTimedOut, StrandlineError
from strandline.metadata.requests import DirectoryAssignment
from strandline.wire.errors import error_of
from strandline.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    RequestDirectoryData,
    RequestPartitionData,
    RequestTopicData,
    ResponseDirectoryData,
    ResponsePartitionData,
    ResponseTopicData,
)


def directories_request(
    node_id: int, broker_epoch: int, assignments: Sequence[DirectoryAssignment]
) -> AssignReplicasToDirsRequest:
    """The message that names these directories."""
    directories: dict[uuid.UUID, RequestDirectoryData] = {}
    topics: dict[tuple[uuid.UUID, uuid.UUID], RequestTopicData] = {}
    for one in assignments:
        directory = directories.setdefault(one.directory, RequestDirectoryData(id_=one.directory))
        topic = topics.get((one.directory, one.topic_id))
        if topic is None:
            topic = topics[one.directory, one.topic_id] = RequestTopicData(topic_id=one.topic_id)
            directory.topics.append(topic)
        topic.partitions.append(RequestPartitionData(partition_index=one.partition))
    return AssignReplicasToDirsRequest(
        broker_id=node_id, broker_epoch=broker_epoch, directories=list(directories.values())
    )


def directory_assignments_of(request: AssignReplicasToDirsRequest) -> list[DirectoryAssignment]:
    """The directories in this message, in its order."""
    return [
        DirectoryAssignment(topic.topic_id, partition.partition_index, directory.id_)
        for directory in request.directories
        for topic in directory.topics
        for partition in topic.partitions
    ]


def directory_answers(
    answer: AssignReplicasToDirsResponse, assignments: Sequence[DirectoryAssignment]
) -> list[StrandlineError | None]:
    """What the controller says to each; None: it holds."""
    codes = {
        DirectoryAssignment(topic.topic_id, partition.partition_index, directory.id_): partition.error_code
        for directory in answer.directories
        for topic in directory.topics
        for partition in topic.partitions
    }
    return [_outcome(codes.get(one)) for one in assignments]


def _outcome(code: int | None) -> StrandlineError | None:
    if code is None:
        return RequestTimedOut("The controller has not answered for this partition. Ask again.")
    return error_of(code) if code else None


def directories_response(
    assignments: Sequence[DirectoryAssignment],
    answers: Sequence[StrandlineError | None],
    code_of: Callable[[StrandlineError], int],
) -> AssignReplicasToDirsResponse:
    """The message with these answers."""
    directories: dict[uuid.UUID, ResponseDirectoryData] = {}
    topics: dict[tuple[uuid.UUID, uuid.UUID], ResponseTopicData] = {}
    for one, answer in zip(assignments, answers, strict=True):
        directory = directories.setdefault(one.directory, ResponseDirectoryData(id_=one.directory))
        topic = topics.get((one.directory, one.topic_id))
        if topic is None:
            topic = topics[one.directory, one.topic_id] = ResponseTopicData(topic_id=one.topic_id)
            directory.topics.append(topic)
        code = 0 if answer is None else code_of(answer)
        topic.partitions.append(ResponsePartitionData(partition_index=one.partition, error_code=code))
    return AssignReplicasToDirsResponse(directories=list(directories.values()))
