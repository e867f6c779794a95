"""CreateTopics (versions 2 to 7), DeleteTopics (1 to 6) and CreatePartitions (0 to 3).

The controller decides; each topic gets its own answer. Called on a broker that is not the active controller, every
topic gets NOT_CONTROLLER and the client finds the right one in the metadata. Topics named twice, and topics named both
by name and id, get INVALID_REQUEST. With delete.topic.enable=false old versions of DeleteTopics get INVALID_REQUEST,
since TOPIC_DELETION_DISABLED came with version 3.

Known gap: timeout_ms is not looked at; a change is made before the answer is given, however long that takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from strandline.config.describe import describe_topic
from strandline.errors import (
    InvalidReplicaAssignment,
    InvalidRequest,
    StrandlineError,
    TopicDeletionDisabled,
)
from strandline.metadata import Controller, Images, NewPartitions, NewTopic, TopicImage
from strandline.model import ZERO_UUID
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import CurrentSettings, ServedTopics, outcome
from strandline.wire.api import ApiKey
from strandline.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from strandline.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from strandline.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

_TELLS_CONFIGS: Final = 5
_BY_ID: Final = 6
_KNOWS_DELETION_DISABLED: Final = 3


class TopicsHandler:
    """Creates, grows and deletes topics."""

    def __init__(self, controller: Controller, images: Images, settings: CurrentSettings, served: ServedTopics) -> None:
        self._controller = controller
        self._images = images
        self._settings = settings
        self._served = served

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {
            ApiKey.CREATE_TOPICS: self.create_topics,
            ApiKey.DELETE_TOPICS: self.delete_topics,
            ApiKey.CREATE_PARTITIONS: self.create_partitions,
        }

    # CreateTopics

    async def create_topics(self, request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
        """Create the topics, or only say whether they could be created."""
        refusals = [self._refusal(topic) for topic in request.topics]
        wanted = [topic for topic, refusal in zip(request.topics, refusals, strict=True) if refusal is None]
        made: list[TopicImage | StrandlineError] = []
        if wanted:
            try:
                made = await self._controller.create_topics(
                    [_new_topic(topic) for topic in wanted], request.validate_only
                )
            except StrandlineError as error:
                made = [error] * len(wanted)
            await self._served.wait_served([topic.name for topic in made if isinstance(topic, TopicImage)])
        answers = iter(made)
        return CreateTopicsResponse(
            topics=[
                self._created(topic, next(answers) if refusal is None else refusal, context.api_version)
                for topic, refusal in zip(request.topics, refusals, strict=True)
            ]
        )

    def _refusal(self, topic: CreatableTopic) -> StrandlineError | None:
        """Why a topic is not even tried; None if it is."""
        if not _has_clear_assignments(topic):
            return _UNCLEAR
        return self._served.why_not_creatable(topic.name, {config.name: config.value for config in topic.configs})

    def _created(
        self, topic: CreatableTopic, answer: TopicImage | StrandlineError, version: int
    ) -> CreatableTopicResult:
        if isinstance(answer, StrandlineError):
            code, message = outcome(answer)
            return CreatableTopicResult(name=topic.name, error_code=code, error_message=message)
        result = CreatableTopicResult(
            name=topic.name,
            topic_id=answer.topic_id,
            num_partitions=len(answer.partitions),
            replication_factor=len(answer.partitions[0].replicas),
        )
        if version >= _TELLS_CONFIGS:
            result.configs = [
                CreatableTopicConfigs(
                    name=entry.name,
                    value=entry.value,
                    read_only=entry.read_only,
                    config_source=entry.source,
                    is_sensitive=entry.is_sensitive,
                )
                for entry in describe_topic(self._settings(), self._overrides(topic, answer))
            ]
        return result

    def _overrides(self, topic: CreatableTopic, made: TopicImage) -> Mapping[str, str]:
        """The topic's own settings: those that the controller gave it, or those asked for if it was not created."""
        image = self._images.image
        if made.topic_id in image.topics_by_id:
            return image.topic_overrides(made.name)
        return {config.name: config.value for config in topic.configs if config.value is not None}

    # DeleteTopics

    async def delete_topics(self, request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
        """Delete topics by name, or from version 6 on by id."""
        states = request.topics
        if context.api_version < _BY_ID:
            states = [DeleteTopicState(name=name) for name in request.topic_names]
        refused = _refused_deletions(states)
        wanted = [state for index, state in enumerate(states) if index not in refused]
        deleted: Sequence[TopicImage | StrandlineError] = []
        if wanted:
            try:
                deleted = await self._controller.delete_topics([_name_or_id(state) for state in wanted])
            except StrandlineError as error:
                deleted = [error] * len(wanted)
        answers = iter(deleted)
        return DeleteTopicsResponse(
            responses=[
                _deleted(state, refused[index] if index in refused else next(answers), context.api_version)
                for index, state in enumerate(states)
            ]
        )

    # CreatePartitions

    async def create_partitions(
        self, request: CreatePartitionsRequest, context: RequestContext
    ) -> CreatePartitionsResponse:
        """Add partitions to topics."""
        answers: Sequence[TopicImage | StrandlineError]
        try:
            answers = await self._controller.create_partitions(
                [_new_partitions(topic) for topic in request.topics], request.validate_only
            )
        except StrandlineError as error:
            answers = [error] * len(request.topics)
        await self._served.wait_served([topic.name for topic in answers if isinstance(topic, TopicImage)])
        results = []
        for topic, answer in zip(request.topics, answers, strict=True):
            code, message = outcome(answer)
            results.append(CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=message))
        return CreatePartitionsResponse(results=results)


_UNCLEAR: Final = InvalidReplicaAssignment("The manual assignment names a partition more than once.")


def _has_clear_assignments(topic: CreatableTopic) -> bool:
    return len({assignment.partition_index for assignment in topic.assignments}) == len(topic.assignments)


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments={assignment.partition_index: assignment.broker_ids for assignment in topic.assignments},
        configs={config.name: config.value for config in topic.configs},
    )


def _new_partitions(topic: CreatePartitionsTopic) -> NewPartitions:
    assignments = None if topic.assignments is None else [assignment.broker_ids for assignment in topic.assignments]
    return NewPartitions(name=topic.name, count=topic.count, assignments=assignments)


def _name_or_id(state: DeleteTopicState) -> str | UUID:
    return state.topic_id if state.name is None else state.name


def _refused_deletions(states: Sequence[DeleteTopicState]) -> dict[int, StrandlineError]:
    """Topics that cannot be meant, by their place in the request."""
    times = Counter(_name_or_id(state) for state in states)
    refused: dict[int, StrandlineError] = {}
    for index, state in enumerate(states):
        if state.name is not None and state.topic_id != ZERO_UUID:
            refused[index] = InvalidRequest("You may not specify both topic name and topic id.")
        elif state.name is None and state.topic_id == ZERO_UUID:
            refused[index] = InvalidRequest("Neither topic name nor id were specified.")
        elif times[_name_or_id(state)] > 1:
            what = "id" if state.name is None else "name"
            refused[index] = InvalidRequest(f"Duplicate topic {what}.")
    return refused


def _deleted(state: DeleteTopicState, answer: TopicImage | StrandlineError, version: int) -> DeletableTopicResult:
    if isinstance(answer, StrandlineError):
        if isinstance(answer, TopicDeletionDisabled) and version < _KNOWS_DELETION_DISABLED:
            answer = InvalidRequest(str(answer))
        code, message = outcome(answer)
        return DeletableTopicResult(name=state.name, topic_id=state.topic_id, error_code=code, error_message=message)
    return DeletableTopicResult(name=answer.name, topic_id=answer.topic_id)
