"""ElectLeaders, versions 0 to 2: preferred (the only kind in version 0) and unclean elections.

A list of partitions gets an answer for each; null stands for all partitions, of which only those are answered that
had an election. Another type of election gets INVALID_REQUEST for the whole request.
"""

from __future__ import annotations

from collections.abc import Mapping

from strandline.errors import InvalidRequest, StrandlineError
from strandline.metadata import Controller, ElectionType
from strandline.model import TopicPartition
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.wire.api import ApiKey
from strandline.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)


class ElectionsHandler:
    """Holds elections that administrators ask for."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {ApiKey.ELECT_LEADERS: self.elect_leaders}

    async def elect_leaders(self, request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
        """Hold the elections."""
        wanted = None
        if request.topic_partitions is not None:
            wanted = [
                TopicPartition(topic.topic, index) for topic in request.topic_partitions for index in topic.partitions
            ]
        try:
            answers = await self._controller.elect_leaders(_election(request.election_type), wanted)
        except StrandlineError as error:
            code, _ = outcome(error)
            return ElectLeadersResponse(
                error_code=code, replica_election_results=_results(request, dict.fromkeys(wanted or (), error))
            )
        return ElectLeadersResponse(replica_election_results=_results(request, answers))


def _election(number: int) -> ElectionType:
    if number == ElectionType.PREFERRED:
        return ElectionType.PREFERRED
    if number == ElectionType.UNCLEAN:
        return ElectionType.UNCLEAN
    raise InvalidRequest(f"There is no election of type {number}.")


def _results(
    request: ElectLeadersRequest, answers: Mapping[TopicPartition, StrandlineError | None]
) -> list[ReplicaElectionResult]:
    """By topic, in the order of the request; topics named without partitions are answered too, as by Kafka."""
    topics: dict[str, list[PartitionResult]] = {topic.topic: [] for topic in request.topic_partitions or ()}
    for partition, answer in answers.items():
        code, message = outcome(answer)
        topics.setdefault(partition.topic, []).append(
            PartitionResult(partition_id=partition.partition, error_code=code, error_message=message)
        )
    return [ReplicaElectionResult(topic=topic, partition_result=results) for topic, results in topics.items()]
