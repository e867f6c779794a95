"""Metadata, versions 0 to 13.

- All topics: null, or an empty list in version 0. No topics: an empty list from version 1 on.
- Topics by id from version 12 on; an unknown id gets UNKNOWN_TOPIC_ID and no name. Ids or missing names in versions
  that cannot speak of them get INVALID_REQUEST.
- An unknown name is created if the client allows it and auto.create.topics.enable is true. Unlike Kafka, which answers
  UNKNOWN_TOPIC_OR_PARTITION while the topic is being created, we wait for it and give its partitions at once.
- Brokers are named by the address of the listener the request came through.

Answers are kept per topic until the topic or the brokers change, so that a broker with thousands of partitions does
not describe them anew for each client.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from strandline.errors import InvalidRequest, StrandlineError, UnknownTopicId
from strandline.metadata import Images, MetadataImage, TopicImage
from strandline.model import ZERO_UUID
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import (
    CLUSTER_OPERATIONS,
    OPERATIONS_NOT_ASKED,
    TOPIC_OPERATIONS,
    ServedTopics,
    is_internal,
    outcome,
    unknown_topic,
)
from strandline.server.handlers.topics.auto_creation import TopicAutoCreator
from strandline.server.handlers.topics.view import TopicViews, bootstrap_endpoints
from strandline.wire.api import ApiKey
from strandline.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)

_TOPIC_IDS: Final = 12
_NO_OFFLINE_FILTER: Final = 1


class MetadataHandler:
    """Describes the brokers, and the leaders of partitions."""

    def __init__(self, images: Images, auto_creator: TopicAutoCreator, served: ServedTopics) -> None:
        self._images = images
        self._auto_creator = auto_creator
        self._views = TopicViews(served)

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {ApiKey.METADATA: self.metadata}

    async def metadata(self, request: MetadataRequest, context: RequestContext) -> MetadataResponse:
        """Brokers, controller, and the topics asked for."""
        topics = await self._topics(request, context)
        image = self._images.image
        if request.include_topic_authorized_operations:
            topics = [_with_operations(topic) for topic in topics]
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=broker.node_id, host=listener.host, port=listener.port, rack=broker.rack)
                for broker, listener in bootstrap_endpoints(image, context.listener)
            ],
            cluster_id=image.cluster_id,
            controller_id=image.controller_id if image.is_active(image.controller_id) else -1,
            topics=topics,
            cluster_authorized_operations=(
                CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else OPERATIONS_NOT_ASKED
            ),
        )

    async def _topics(self, request: MetadataRequest, context: RequestContext) -> list[MetadataResponseTopic]:
        image = self._images.image
        if request.topics is None or (context.api_version == 0 and not request.topics):
            return [self._describe(image, image.topics[name], context) for name in sorted(image.topics)]
        if context.api_version < _TOPIC_IDS and any(_needs_ids(topic) for topic in request.topics):
            refusal = InvalidRequest("Topic ids, and topics without a name, need version 12 of Metadata.")
            return [_failed(refusal, topic.name or "", topic.topic_id) for topic in request.topics]
        if any(topic.topic_id != ZERO_UUID for topic in request.topics):
            return [self._by_id(image, topic.topic_id, context) for topic in _distinct_ids(request.topics)]
        names = list(dict.fromkeys(topic.name for topic in request.topics if topic.name is not None))
        return await self._by_names(names, request, context)

    def _by_id(self, image: MetadataImage, topic_id: UUID, context: RequestContext) -> MetadataResponseTopic:
        topic = image.topics_by_id.get(topic_id)
        if topic is None:
            return _failed(UnknownTopicId(f"No topic has the id {topic_id}."), None, topic_id)
        return self._describe(image, topic, context)

    async def _by_names(
        self, names: list[str], request: MetadataRequest, context: RequestContext
    ) -> list[MetadataResponseTopic]:
        failures: Mapping[str, StrandlineError] = {}
        missing = [name for name in names if name not in self._images.image.topics]
        if missing:
            if request.allow_auto_topic_creation and self._auto_creator.is_enabled:
                failures = await self._auto_creator.create(missing)
            else:
                failures = {name: unknown_topic(name) for name in missing}
        image = self._images.image  # newer, if topics were created
        found = [name for name in names if name in image.topics]
        return [
            *(self._describe(image, image.topics[name], context) for name in found),
            *(
                _failed(failures.get(name) or unknown_topic(name), name, ZERO_UUID)
                for name in names
                if name not in image.topics
            ),
        ]

    def _describe(self, image: MetadataImage, topic: TopicImage, context: RequestContext) -> MetadataResponseTopic:
        return self._views.describe(
            image, topic, context.listener, only_alive_replicas=context.api_version < _NO_OFFLINE_FILTER
        )


def _needs_ids(topic: MetadataRequestTopic) -> bool:
    return topic.name is None or topic.topic_id != ZERO_UUID


def _distinct_ids(topics: Iterable[MetadataRequestTopic]) -> list[MetadataRequestTopic]:
    """Kafka ignores names as soon as one topic has an id."""
    return list({topic.topic_id: topic for topic in topics if topic.topic_id != ZERO_UUID}.values())


def _failed(error: StrandlineError, name: str | None, topic_id: UUID) -> MetadataResponseTopic:
    code, _ = outcome(error)
    internal = name is not None and is_internal(name)
    return MetadataResponseTopic(error_code=code, name=name, topic_id=topic_id, is_internal=internal)


def _with_operations(topic: MetadataResponseTopic) -> MetadataResponseTopic:
    """A copy: the described topic is shared between answers."""
    return MetadataResponseTopic(
        error_code=topic.error_code,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=topic.partitions,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )
