"""Topics that are created because a client asks for their metadata, or because the brokers need them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from strandline.errors import NotController, StrandlineError, TopicAlreadyExists, UnknownTopicOrPartition
from strandline.metadata import ControllerUnreachable, Images, NewTopic, TopicImage, validate_topic_name, wanted_topic
from strandline.server.handlers.common import CurrentSettings, ServedTopics


class TopicMaker(Protocol):
    """Creates topics. Implemented by `ActiveController`."""

    async def create_topics(self, topics: Sequence[NewTopic]) -> Sequence[TopicImage | StrandlineError]:
        """One answer per topic. Raises StrandlineError for the request as a whole."""


class TopicAutoCreator:
    """Creates topics by name with the broker's defaults. Requests for the same name share one attempt."""

    def __init__(self, images: Images, controller: TopicMaker, settings: CurrentSettings, served: ServedTopics) -> None:
        self._images = images
        self._served = served
        self._controller = controller
        self._settings = settings
        self._one_at_a_time = asyncio.Lock()

    @property
    def is_enabled(self) -> bool:
        """Whether clients may create topics by asking for them."""
        return self._settings().cluster.auto_create_topics_enable

    async def create(self, names: Sequence[str]) -> Mapping[str, StrandlineError]:
        """Create the topics that do not exist. Returns why some could not be; the others exist now."""
        failures: dict[str, StrandlineError] = {}
        legal: list[str] = []
        for name in names:
            try:
                validate_topic_name(name)
            except StrandlineError as error:
                failures[name] = error
            else:
                legal.append(name)
        if legal:
            async with self._one_at_a_time:
                failures.update(await self._create(legal))
            await self._served.wait_served(legal)
        return failures

    async def _create(self, names: Sequence[str]) -> dict[str, StrandlineError]:
        image, settings = self._images.image, self._settings()
        wanted = [wanted_topic(name, settings, image) for name in names if name not in image.topics]
        if not wanted:
            return {}
        try:
            answers = await self._controller.create_topics(wanted)
        except (NotController, ControllerUnreachable) as error:
            # Clients try again for an unknown topic, and would give up on these errors.
            return {
                topic.name: UnknownTopicOrPartition(f"{topic.name} does not exist yet: {error}") for topic in wanted
            }
        except StrandlineError as error:
            return {topic.name: error for topic in wanted}
        return {
            topic.name: answer
            for topic, answer in zip(wanted, answers, strict=True)
            if isinstance(answer, StrandlineError) and not isinstance(answer, TopicAlreadyExists)
        }
